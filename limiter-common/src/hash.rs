//! Where a key's word lies in the table, and how the word is told from others there.
//!
//! Multiply and fold, three times, with a random 128-bit seed: who doesn't know the seed can't aim at a
//! bucket or a fingerprint, and nothing that leaves the host tells about hashes. (SipHash-1-3, which this
//! was first, takes 250 instructions without a rotation, twice for each packet that has no ticket.)

use crate::key::Key;
use crate::ticket::Holder;
use crate::word::Fingerprint;

/// The secret of one table, made once when the table is made, kept as long as the table lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub [u64; 2]);

/// 64 keyed bits of a key: the lower ones choose the bucket, the upper 22 are the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(pub u64);

/// Maps rule ids to fingerprint differences one to one modulo 2^22, so that two rules of a source
/// in one bucket never look alike.
const RULE_STEP: u64 = 0x9e37_79b1;

impl KeyHash {
    /// Hashes level, family and address under the seed.
    #[inline(always)]
    #[must_use]
    pub const fn of(seed: Seed, key: Key) -> Self {
        Self(mix(seed, key.bits(), key.tag() as u64))
    }

    /// The bucket for rules of this group, in a table of `mask + 1` buckets (a power of two). The groups
    /// of one key are different buckets, but neighbours: they share a page, so that the second one costs
    /// no second walk through the page tables.
    #[inline(always)]
    #[must_use]
    pub const fn bucket(self, group: u32, mask: u32) -> u32 {
        let low = (self.0 & 0xffff_ffff) as u32;
        (low ^ group) & mask
    }

    /// The mark of a rule's word for this key.
    #[inline(always)]
    #[must_use]
    pub const fn fingerprint(self, rule: u32) -> Fingerprint {
        Fingerprint::new((self.0 >> 42) ^ (rule as u64).wrapping_mul(RULE_STEP))
    }
}

/// The place of a key's ticket: its upper bits. Multiplying by a secret odd number is enough here: a
/// collision costs time and changes no verdict.
#[inline(always)]
#[must_use]
pub const fn ticket_place(Seed([k0, k1]): Seed, holder: &Holder) -> u32 {
    let name = (holder.name() as u64).wrapping_mul(0x9e37_79b9 << 20);
    ((holder.key() ^ k0 ^ name).wrapping_mul(k1 | 1) >> 40) as u32
}

/// Both halves of the seed go in as secrets that the bits are multiplied by, with folds between, so that
/// each input bit reaches each output bit in a way that depends on the seed.
#[inline(always)]
const fn mix(Seed([k0, k1]): Seed, bits: u64, tag: u64) -> u64 {
    let mut hash = (bits ^ k0).wrapping_mul(k1 | 1);
    hash = (hash ^ hash >> 32 ^ tag << 48).wrapping_mul(k0 >> 1 | 1);
    hash = (hash ^ hash >> 29).wrapping_mul(k1 >> 1 | 1);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Family, Level, Source};

    /// As random as a seed that the kernel gives. (Seeds of few bits, such as `[1, 2]`, mix nothing: factors
    /// of 1 and 3.)
    fn random() -> impl FnMut() -> u64 {
        let mut random = std::iter::successors(Some(0x9e37_79b9_7f4a_7c15_u64), |x| {
            let x = x ^ (x << 13);
            let x = x ^ (x >> 7);
            Some(x ^ (x << 17))
        });
        move || random.next().unwrap()
    }

    /// Sources as they come: neighbours, strides, single bits. Each of 2^12 buckets must get its share.
    #[test]
    fn like_keys_spread_over_all_buckets() {
        const KEYS: u64 = 1 << 16;
        let mut next = random();
        for seed in [[next(), next()], [next(), next()], [0x0123_4567_89ab_cdef, next()]] {
            for shift in [0, 8, 16, 24, 40, 47] {
                for level in [Level::Prefix, Level::Source] {
                    let mut counts = vec![0_u64; 1 << 12];
                    for n in 0..KEYS {
                        let source = Source::from_bits(Family::V6, n.wrapping_mul(65_537) << shift);
                        let bucket = KeyHash::of(Seed(seed), source.key(level)).bucket(0, 0xfff);
                        counts[bucket as usize] += 1;
                    }
                    // Prefixes of neighbours are one key: only all keys apart must spread.
                    if level == Level::Source || shift >= 16 {
                        let most = counts.iter().max().unwrap();
                        assert!(*most < 60, "{seed:x?} << {shift} {level:?}: {most} of 16");
                    }
                }
            }
        }
    }

    /// A changed bit of a key changes each bit of its hash about half of the time, over random seeds.
    #[test]
    fn each_bit_reaches_each_bit() {
        let mut next = random();
        for bit in 0..64 {
            let mut changed = [0_u32; 64];
            for _ in 0..2_000 {
                let (seed, bits) = (Seed([next(), next()]), next());
                let difference = mix(seed, bits, 3) ^ mix(seed, bits ^ 1 << bit, 3);
                for (at, count) in changed.iter_mut().enumerate() {
                    *count += (difference >> at & 1) as u32;
                }
            }
            // The bits that choose bucket and fingerprint: 0–23 and 42–63.
            for at in (0..24).chain(42..64) {
                assert!((600..1_400).contains(&changed[at]), "{bit} → {at}: {}", changed[at]);
            }
        }
    }

    #[test]
    fn rules_of_one_source_have_different_marks_and_groups_different_buckets() {
        let source = Source::from_bits(Family::V4, 0x0a00_0001);
        let hash = KeyHash::of(Seed([1, 2]), source.key(Level::Source));
        let mut marks: Vec<u64> = (0..4096).map(|rule| hash.fingerprint(rule).get()).collect();
        marks.sort_unstable();
        marks.dedup();
        // One of the 4,096 may have met the reserved 0.
        assert!(marks.len() >= 4095);
        assert_ne!(hash.bucket(0, 0xffff), hash.bucket(1, 0xffff));
    }

    #[test]
    fn an_ipv4_source_and_a_prefix_with_the_same_bits_differ() {
        let seed = Seed([3, 4]);
        let source = Source::from_bits(Family::V4, 0x000a_0000);
        let prefix = Source::from_bits(Family::V4, 0x0a00_0000);
        assert_ne!(
            KeyHash::of(seed, source.key(Level::Source)),
            KeyHash::of(seed, prefix.key(Level::Prefix))
        );
    }
}
