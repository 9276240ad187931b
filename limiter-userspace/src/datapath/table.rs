//! The table as user space sees it: words and addresses, read beside the running program. The daemon
//! inserts nothing and debits nothing here; it only clears words that no window needs any more.

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use aya::maps::MapData;
use limiter_common::bucket::{Bucket, clear_dead, life};
use limiter_common::clock::Tick;
use limiter_common::hash::{KeyHash, Seed};
use limiter_common::key::Key;
use limiter_common::layout::{AddressEntry, RuleEntry, SLOTS, map};
use limiter_common::word::{Heat, RESERVED, Word};

use super::error::MapError;
use super::mapping::{Access, Mapping};

const SLOTS_PER_BUCKET: usize = SLOTS as usize;

/// Both arrays.
#[derive(Debug)]
pub struct Table {
    words: Mapping<u64>,
    addresses: Mapping<AddressEntry>,
    mask: u32,
    seed: Seed,
}

/// What a pool has given out in its present window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// In quanta of the rule's unit.
    pub used: u32,
    /// [`Heat::Spent`] once it was refused.
    pub heat: Heat,
    /// Ticks until its window ends.
    pub ticks_left: u64,
}

/// A pool in use, with its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveKey {
    /// Whose.
    pub key: Key,
    /// The rule's place among those asked for.
    pub rule: usize,
    /// How much.
    pub usage: Use,
}

impl Table {
    pub(super) fn new(words: &MapData, addresses: &MapData, seed: Seed) -> Result<Self, MapError> {
        let info = words.info().map_err(|error| MapError::new(map::TABLE, error))?;
        Self::over(words.fd(), addresses.fd(), info.max_entries(), seed)
    }

    /// Over anything that can be mapped.
    fn over(
        words: impl AsFd,
        addresses: impl AsFd,
        buckets: u32,
        seed: Seed,
    ) -> Result<Self, MapError> {
        if !buckets.is_power_of_two() {
            return Err(MapError::new(
                map::TABLE,
                format!("{buckets} buckets are no power of two"),
            ));
        }
        let slots = buckets as usize * SLOTS_PER_BUCKET;
        let words = Mapping::new(words, slots, Access::Write);
        let addresses = Mapping::new(addresses, slots, Access::Read);
        Ok(Self {
            words: words.map_err(|cause| MapError::new(map::TABLE, cause))?,
            addresses: addresses.map_err(|cause| MapError::new(map::ADDRESSES, cause))?,
            mask: buckets - 1,
            seed,
        })
    }

    /// Keys it can hold at most.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.words.len() as u64
    }

    /// Memory of words and addresses.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.slots() * (size_of::<u64>() + size_of::<AddressEntry>()) as u64
    }

    /// What a key has used of a rule's pool; `None` if it has no window open.
    #[must_use]
    pub fn find(&self, rule: &RuleEntry, key: Key, now: Tick) -> Option<Use> {
        let hash = KeyHash::of(self.seed, key);
        let fingerprint = hash.fingerprint(rule.id());
        let first = hash.bucket(rule.group(), self.mask) as usize * SLOTS_PER_BUCKET;
        let slots = self.words.words().get(first..first + SLOTS_PER_BUCKET)?;
        let mut words = slots.iter().map(|slot| Word(slot.load(Relaxed)));
        usage(words.find(|word| word.belongs_to(fingerprint))?, rule, now)
    }

    /// Visits every pool of these rules that has a window open, in no order. A word whose address was
    /// overwritten at this moment is left out.
    pub fn visit(&self, rules: &[RuleEntry], now: Tick, mut each: impl FnMut(LiveKey)) {
        for (slot, word) in self.words.words().iter().enumerate() {
            let word = Word(word.load(Relaxed));
            if word == Word::EMPTY {
                continue;
            }
            if let Some(live) = self.read(slot, word, rules, now) {
                each(live);
            }
        }
    }

    /// Words that some window under this longest life needs.
    #[must_use]
    pub fn count_live(&self, now: Tick, span: u32) -> u64 {
        let words = self.words.words().iter().map(|word| Word(word.load(Relaxed)));
        words.filter(|word| *word != Word::EMPTY && is_alive(*word, now, span)).count() as u64
    }

    /// Clears words that no window needs, in every bucket, and returns how many. See [`clear_dead`] for what
    /// must be true of `now`.
    pub(super) fn clear_dead(&self, now: Tick, span: u32) -> u64 {
        let buckets = self.words.words().chunks_exact(SLOTS_PER_BUCKET).map(Shared);
        buckets.map(|bucket| u64::from(clear_dead(&bucket, now, span))).sum()
    }

    fn read(&self, slot: usize, word: Word, rules: &[RuleEntry], now: Tick) -> Option<LiveKey> {
        let entry = self.addresses.read(slot)?;
        let rule = rules.iter().position(|rule| rule.id() == entry.rule())?;
        let usage = usage(word, &rules[rule], now)?;
        let key = entry.key()?;
        // Addresses are written without a lock: only what hashes back to the word is believed.
        let hash = KeyHash::of(self.seed, key);
        let bucket = hash.bucket(rules[rule].group(), self.mask) as usize;
        let matches = bucket == slot / SLOTS_PER_BUCKET
            && word.belongs_to(hash.fingerprint(rules[rule].id()));
        matches.then_some(LiveKey { key, rule, usage })
    }
}

/// One bucket's words, while the program changes them too.
struct Shared<'a>(&'a [AtomicU64]);

impl Bucket for Shared<'_> {
    fn load(&self, slot: u32) -> Word {
        Word(self.0[slot as usize].load(Relaxed))
    }

    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        self.0[slot as usize].compare_exchange(old.0, new.0, SeqCst, Relaxed).is_ok()
    }
}

/// `None` if the word is dead for its own rule, or being filled at this moment.
fn usage(word: Word, rule: &RuleEntry, now: Tick) -> Option<Use> {
    let alive = is_alive(word, now, life(rule.window())) && word.value() != RESERVED;
    alive.then(|| Use { used: word.value(), heat: word.heat(), ticks_left: word.ticks_left(now) })
}

fn is_alive(word: Word, now: Tick, span: u32) -> bool {
    (1..=u64::from(span)).contains(&word.ticks_left(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_common::clock::WindowLength;
    use limiter_common::key::{Family, Level, Source};
    use limiter_common::layout::Unit;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    const BUCKETS: u32 = 64;
    const NOW: Tick = Tick(17_000_000_003);

    /// A table in plain memory, and the file behind its addresses.
    fn table(buckets: u32) -> (Table, File) {
        let slots = u64::from(buckets * SLOTS);
        let memory = |bytes| {
            let file = memfd_create("table", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&file, bytes).unwrap();
            file
        };
        let (words, addresses) = (memory(slots * 8), memory(slots * 16));
        let table = Table::over(&words, &addresses, buckets, Seed([7, 8])).unwrap();
        (table, File::from(addresses))
    }

    fn rule(id: u32, seconds: u32) -> RuleEntry {
        let window = WindowLength::from_ticks(seconds * 10).unwrap();
        RuleEntry::new(id, 0, window, Unit::Packets, 3).with_limit(Level::Source, 20)
    }

    fn source(bits: u64) -> Key {
        Source::from_bits(Family::V4, bits).key(Level::Source)
    }

    /// Puts a word where the program would, its address beside it.
    fn put(table: &Table, addresses: &File, rule: &RuleEntry, key: Key, slot: usize, word: Word) {
        let bucket = KeyHash::of(table.seed, key).bucket(rule.group(), table.mask) as usize;
        let slot = bucket * SLOTS_PER_BUCKET + slot;
        table.words.words()[slot].store(word.0, Relaxed);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&key.bits().to_ne_bytes());
        bytes[8..12].copy_from_slice(&rule.id().to_ne_bytes());
        bytes[12] = key.tag();
        addresses.write_all_at(&bytes, slot as u64 * 16).unwrap();
    }

    fn word(table: &Table, rule: &RuleEntry, key: Key, end: Tick, used: u32) -> Word {
        let fingerprint = KeyHash::of(table.seed, key).fingerprint(rule.id());
        Word::new(fingerprint, end, Heat::Warm, used)
    }

    #[test]
    fn a_living_key_is_found_and_visited() {
        let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
        let key = source(0x0a00_0001);
        put(&table, &addresses, &rule, key, 6, word(&table, &rule, key, Tick(NOW.0 + 40), 7));
        let usage = Use { used: 7, heat: Heat::Warm, ticks_left: 40 };
        assert_eq!(table.find(&rule, key, NOW), Some(usage));
        assert_eq!(table.find(&rule, source(0x0a00_0002), NOW), None);
        let mut seen = Vec::new();
        table.visit(&[super::tests::rule(4, 1), rule], NOW, |live| seen.push(live));
        assert_eq!(seen, [LiveKey { key, rule: 1, usage }]);
        assert_eq!(table.count_live(NOW, 100), 1);
    }

    #[test]
    fn neither_a_past_nor_a_reserved_word_counts() {
        let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
        let key = source(0x0a00_0001);
        put(&table, &addresses, &rule, key, 0, word(&table, &rule, key, NOW, 7));
        assert_eq!(table.find(&rule, key, NOW), None);
        let reserved = word(&table, &rule, key, Tick(NOW.0 + 4), RESERVED);
        put(&table, &addresses, &rule, key, 0, reserved);
        assert_eq!(table.find(&rule, key, NOW), None);
    }

    #[test]
    fn an_address_that_does_not_hash_back_is_not_believed() {
        let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
        let (key, other) = (source(0x0a00_0001), source(0x0a00_0002));
        let others = word(&table, &rule, other, Tick(NOW.0 + 4), 7);
        put(&table, &addresses, &rule, key, 0, others);
        table.visit(&[rule], NOW, |live| panic!("{live:?}"));
    }

    #[test]
    fn dead_words_are_cleared_and_others_left() {
        let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
        let keys = [1, 2, 3].map(source);
        let ends = [NOW.0 - 1, NOW.0, NOW.0 + 200].map(Tick);
        for (slot, (key, end)) in keys.into_iter().zip(ends).enumerate() {
            put(&table, &addresses, &rule, key, slot, word(&table, &rule, key, end, 1));
        }
        assert_eq!(
            table.clear_dead(NOW, 200),
            1,
            "the tick after the end still belongs to the key"
        );
        assert_eq!(table.clear_dead(NOW, 200), 0);
        assert!(table.find(&super::tests::rule(5, 20), keys[2], NOW).is_some());
    }
}
