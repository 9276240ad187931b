//! The table as user space sees it: words and addresses, read beside the running program. The daemon
//! inserts nothing and debits nothing here; it only clears words that no window needs any more.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;

use aya::maps::MapData;
use limiter_common::bucket::life;
use limiter_common::clock::Tick;
use limiter_common::hash::{KeyHash, Seed};
use limiter_common::key::Key;
use limiter_common::layout::{AddressEntry, RuleEntry, SLOTS, map};
use limiter_common::word::{Heat, RESERVED, Word};

use super::error::MapError;
use super::mapping::{Access, Mapping};

const SLOTS_PER_BUCKET: usize = SLOTS as usize;
/// What has used less was seen once: a flood of forged sources is made of such.
const SHOWN_FROM: u32 = 2;

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

    /// Shows the pools of these rules that have a window open to `each`, in no order, and returns how many
    /// words of any pool have one. Only pools that claimed twice have an address to be shown with, or were
    /// refused; a word whose address is overwritten at this moment is left out. `each` answers with the
    /// least use that it still wants to see: most words are then passed over without a look at what lies
    /// beside them.
    pub fn visit(
        &self,
        rules: &[RuleEntry],
        now: Tick,
        mut each: impl FnMut(LiveKey) -> u32,
    ) -> u64 {
        let span = rules.iter().map(|rule| life(rule.window())).max().unwrap_or(0);
        let (mut live, mut least) = (0, 0);
        for (slot, word) in self.words.words().iter().enumerate() {
            let word = Word(word.load(Relaxed));
            if word == Word::EMPTY || !is_alive(word, now, span) {
                continue;
            }
            live += 1;
            let anonymous = word.value() < SHOWN_FROM && word.heat() != Heat::Spent;
            if anonymous || word.value() < least {
                continue;
            }
            if let Some(key) = self.read(slot, word, rules, now) {
                least = each(key);
            }
        }
        live
    }

    /// Words that some window under this longest life needs.
    #[must_use]
    pub fn count_live(&self, now: Tick, span: u32) -> u64 {
        let words = self.words.words().iter().map(|word| Word(word.load(Relaxed)));
        words.filter(|word| *word != Word::EMPTY && is_alive(*word, now, span)).count() as u64
    }

    /// Clears words that no window needs. Ends are kept modulo seven hours: a word left lying would
    /// seem alive again some day. Returns how many.
    pub fn clear_dead(&self, now: Tick, span: u32) -> u64 {
        let mut cleared = 0;
        for slot in self.words.words() {
            let word = Word(slot.load(Relaxed));
            if word != Word::EMPTY
                && !word.occupied(now, span)
                // If the program has just begun a new window there, the word stays.
                && slot.compare_exchange(word.0, Word::EMPTY.0, Relaxed, Relaxed).is_ok()
            {
                cleared += 1;
            }
        }
        cleared
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

    /// What is shown, and how many live.
    fn visited(table: &Table, rules: &[RuleEntry]) -> (Vec<LiveKey>, u64) {
        let mut seen = Vec::new();
        let live = table.visit(rules, NOW, |live| {
            seen.push(live);
            0
        });
        (seen, live)
    }

    #[test]
    fn a_living_key_is_found_and_visited() {
        let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
        let key = source(0x0a00_0001);
        put(&table, &addresses, &rule, key, 6, word(&table, &rule, key, Tick(NOW.0 + 40), 7));
        let usage = Use { used: 7, heat: Heat::Warm, ticks_left: 40 };
        assert_eq!(table.find(&rule, key, NOW), Some(usage));
        assert_eq!(table.find(&rule, source(0x0a00_0002), NOW), None);
        let rules = [super::tests::rule(4, 1), rule];
        assert_eq!(visited(&table, &rules), (vec![LiveKey { key, rule: 1, usage }], 1));
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
        assert_eq!(visited(&table, &[rule]), (vec![], 1));
    }

    #[test]
    fn who_claimed_once_is_counted_and_not_shown_unless_it_is_refused() {
        let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
        for (slot, (used, heat)) in
            [(1, Heat::Cold), (1, Heat::Spent), (2, Heat::Cold)].into_iter().enumerate()
        {
            let key = source(slot as u64);
            let word = word(&table, &rule, key, Tick(NOW.0 + 40), used);
            put(&table, &addresses, &rule, key, slot, word.with(heat, used));
        }
        let (seen, live) = visited(&table, &[rule]);
        let mut keys: Vec<u64> = seen.iter().map(|live| live.key.bits()).collect();
        keys.sort_unstable();
        assert_eq!((keys, live), (vec![1, 2], 3));
    }

    #[test]
    fn use_below_what_is_wanted_is_passed_over() {
        let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
        for bits in 0..10 {
            let key = source(bits);
            let word = word(&table, &rule, key, Tick(NOW.0 + 40), 10);
            put(&table, &addresses, &rule, key, 0, word);
        }
        let mut seen = 0;
        let live = table.visit(&[rule], NOW, |_| {
            seen += 1;
            11
        });
        assert_eq!(seen, 1);
        assert_eq!(live, table.count_live(NOW, 200));
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
