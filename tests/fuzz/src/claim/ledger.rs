//! What each key has used, kept without words, slots or swaps: what the bucket has to agree with.

use std::collections::BTreeMap;

use limiter_common::bucket::{Ask, UNLIMITED};
use limiter_common::clock::Tick;

use super::world::SHARE;

/// A key that has a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The tick at which its window ends.
    pub(super) end: u64,
    pub(super) used: u64,
    /// It claimed more than once.
    pub(super) warm: bool,
    /// Nobody may displace it: it was refused, or a claim after its first brought it to half its limit.
    pub(super) kept: bool,
}

impl Entry {
    /// To the tick of its window's end: a CPU may be a tick late.
    pub(super) fn needs_its_slot(&self, now: Tick) -> bool {
        self.end >= now.0
    }
}

/// All keys that have a slot, and what passed in every window.
#[derive(Default)]
pub(super) struct Ledger {
    entries: BTreeMap<u64, Entry>,
    windows: BTreeMap<(u64, u64), Passed>,
}

/// Of one key, in one window.
#[derive(Clone, Copy, Default)]
struct Passed {
    granted: u64,
    /// The highest limit at any grant.
    limit: u64,
    /// What was in words that others displaced.
    lost: u64,
}

impl Ledger {
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, Entry)> {
        self.entries.iter().map(|(key, entry)| (*key, *entry))
    }

    pub(super) fn entry(&self, key: u64) -> Option<Entry> {
        self.entries.get(&key).copied()
    }

    /// What has to be granted, if the claim is judged: the chunk where plenty is left, else the cost.
    pub(super) fn expects(&self, ask: &Ask) -> Option<u32> {
        let used = self.open(ask).map_or(0, |entry| entry.used);
        let left = u64::from(ask.limit).saturating_sub(used);
        match ask.limit {
            UNLIMITED => Some(ask.more),
            _ if u64::from(ask.cost) > left => None,
            _ if u64::from(ask.more) << SHARE <= left => Some(ask.more),
            _ => Some(ask.cost),
        }
    }

    pub(super) fn grant(&mut self, ask: &Ask, amount: u32) {
        let (key, cost) = (ask.fingerprint.get(), u64::from(amount));
        let entry = match self.open(ask) {
            Some(entry) => {
                let used = entry.used + cost;
                let kept = entry.kept || used >= u64::from(ask.limit.div_ceil(2));
                Entry { used, kept, warm: true, ..entry }
            }
            None => Entry { end: ask.end.0, used: cost, warm: false, kept: false },
        };
        self.entries.insert(key, entry);
        let passed = self.windows.entry((key, entry.end)).or_default();
        passed.granted += cost;
        passed.limit = passed.limit.max(u64::from(ask.limit));
        assert!(
            passed.granted <= passed.limit + passed.lost,
            "key {key} passes {} of {} in the window to {}, and lost {}",
            passed.granted,
            passed.limit,
            entry.end,
            passed.lost
        );
    }

    /// A refusal for want of tokens.
    pub(super) fn refuse(&mut self, ask: &Ask) {
        if self.open(ask).is_some() {
            self.entries.entry(ask.fingerprint.get()).and_modify(|entry| entry.kept = true);
        }
    }

    /// A grant goes back, if the window it was asked for is still open.
    pub(super) fn refund(&mut self, ask: &Ask) {
        let (key, end) = (ask.fingerprint.get(), ask.end.0);
        let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.end == end) else {
            return;
        };
        entry.used = entry.used.saturating_sub(u64::from(ask.cost));
        if let Some(passed) = self.windows.get_mut(&(key, end)) {
            passed.granted -= u64::from(ask.cost);
        }
    }

    /// A key loses its slot. With its word it loses that the windows before are over: a late CPU may
    /// open the last one again.
    pub(super) fn lose(&mut self, key: u64) {
        let Some(entry) = self.entries.remove(&key) else {
            return;
        };
        for (_, passed) in self.windows.range_mut((key, 0)..(key, entry.end)) {
            passed.lost = passed.granted;
        }
        if let Some(passed) = self.windows.get_mut(&(key, entry.end)) {
            passed.lost += entry.used;
        }
    }

    /// The key's entry, if its window is the asker's, or a later one that another CPU began.
    fn open(&self, ask: &Ask) -> Option<Entry> {
        let entry = self.entries.get(&ask.fingerprint.get()).copied();
        entry.filter(|entry| entry.end >= ask.end.0)
    }
}
