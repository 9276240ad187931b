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

    /// Clears words that no window needs, in every bucket, and returns how many. See [`clear_dead`] for what
    /// must be true of `now`.
    pub fn clear_dead(&self, now: Tick, span: u32) -> u64 {
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
mod tests;
