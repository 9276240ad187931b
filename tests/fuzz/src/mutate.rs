//! Changes inputs at random, from a fixed seed: the same inputs on every machine. This is for the smoke
//! test alone; libFuzzer, which sees what its inputs reach, has its own ways.

use crate::corpus::Seed;

/// Longer inputs than this take time and reach nothing new.
const LONGEST: usize = 4_096;
/// Changes to one input, at most.
const MOST_CHANGES: u64 = 6;
/// Numbers at which code tends to change its mind.
const EDGES: [u8; 12] = [0, 1, 2, 4, 5, 6, 8, 15, 16, 0x7f, 0x80, 0xff];

/// Makes inputs out of seeds.
#[derive(Debug)]
pub struct Mutator<'a> {
    seeds: &'a [Seed],
    words: &'a [Vec<u8>],
    state: u64,
}

impl<'a> Mutator<'a> {
    /// Out of these seeds (at least one), and words that may be put in whole.
    #[must_use]
    pub const fn new(seeds: &'a [Seed], words: &'a [Vec<u8>]) -> Self {
        Self { seeds, words, state: 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next input.
    pub fn input(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..=self.below(MOST_CHANGES) {
            self.change(&mut input);
        }
        input.truncate(LONGEST);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let (from, to) = self.range(input.len());
        match self.below(9) {
            0 => self.replace(input, from, |_, old| old ^ 0x80),
            1 => self.replace(input, from, |it, old| old ^ 1 << it.below(8)),
            2 => self.replace(input, from, |it, _| it.byte()),
            3 => self.replace(input, from, |it, _| EDGES[it.place(EDGES.len())]),
            4 => drop(input.drain(from..to)),
            5 => input.insert(from, self.byte()),
            6 => {
                let doubled = input[from..to].to_vec();
                splice(input, from, &doubled);
            }
            7 if !self.words.is_empty() => {
                splice(input, from, &self.words[self.place(self.words.len())]);
            }
            7 => input.truncate(from),
            _ => {
                let other = self.seed();
                let (start, end) = self.range(other.len());
                input.splice(from..to, other[start..end].iter().copied());
            }
        }
    }

    fn replace(&mut self, input: &mut [u8], place: usize, new: impl Fn(&mut Self, u8) -> u8) {
        if let Some(byte) = input.get_mut(place) {
            *byte = new(self, *byte);
        }
    }

    fn seed(&mut self) -> &'a [u8] {
        &self.seeds[self.place(self.seeds.len())].bytes
    }

    /// Mostly a short one, within `length`.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let from = self.place(length + 1);
        let reach = [2, 8, 64, length + 1][self.place(4)];
        (from, from + self.place(reach).min(length - from))
    }

    fn place(&mut self, below: usize) -> usize {
        self.below(below as u64) as usize
    }

    /// 0 … `end` − 1 (xorshift64*).
    fn below(&mut self, end: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end.max(1)
    }

    fn byte(&mut self) -> u8 {
        self.below(256).to_le_bytes()[0]
    }
}

fn splice(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

/// The words of a dictionary in libFuzzer's format: `"word"`, one a line, with `\n`, `\"` and `\\`.
#[must_use]
pub fn words(dictionary: &str) -> Vec<Vec<u8>> {
    let quoted = |line: &str| {
        let inner = line.trim().strip_prefix('"')?.strip_suffix('"')?;
        Some(inner.replace("\\x0A", "\n").replace("\\\"", "\"").replace("\\\\", "\\").into_bytes())
    };
    dictionary.lines().filter_map(quoted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_the_same_every_time_and_differ() {
        let seeds = [Seed { name: "a".into(), bytes: vec![7; 40] }];
        let inputs = || {
            let mut mutator = Mutator::new(&seeds, &[]);
            (0..100).map(|_| mutator.input()).collect::<Vec<_>>()
        };
        let (once, mut again) = (inputs(), inputs());
        assert_eq!(once, again);
        again.sort();
        again.dedup();
        assert!(again.len() > 60, "{}", again.len());
    }

    #[test]
    fn dictionaries_are_read() {
        assert_eq!(words("# a\n\"x = \\\"1\\\"\"\n"), [b"x = \"1\"".to_vec()]);
    }
}
