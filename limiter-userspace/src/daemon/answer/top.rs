//! `limiter top`: the keys that use most of their limits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use limiter_common::bucket::UNLIMITED;
use limiter_common::key::Level;
use limiter_common::layout::RuleEntry;
use limiter_common::word::Heat;

use super::explain::key_name;
use super::{ends_in_ms, unit, units};
use crate::control::command::TopBy;
use crate::control::model::{Top, TopRow};
use crate::datapath::table::LiveKey;
use crate::policy::{Mode, Policy, Rule};
use crate::snapshot::ModeOverrides;

/// Sorts by the share of the limit, then by use; of equals who was seen first stays, so that a flood of
/// keys that used the same isn't sorted through.
type Rank = (u64, u32, Reverse<u64>);

/// The first `rows` keys. `visit` shows living keys to its argument, which answers with the least use that
/// can still matter, and returns how many live; `rules` are the policy's, as written and as compiled, and
/// the modes set over theirs; `now` is Unix nanoseconds.
pub(in super::super) fn top(
    rules: (&Policy, &[RuleEntry], &ModeOverrides),
    by: TopBy,
    rows: usize,
    now: u64,
    visit: impl FnOnce(&mut dyn FnMut(LiveKey) -> u32) -> u64,
) -> Top {
    let (policy, entries, modes) = rules;
    let level = match by {
        TopBy::Source => Level::Source,
        TopBy::Prefix => Level::Prefix,
    };
    let mut best = Best::new(entries, level, rows);
    let live = visit(&mut |key| best.offer(key));
    let row = |key: LiveKey| {
        let rule = policy.rules().get(key.rule)?;
        Some(row(rule, modes.mode_of(rule), entries.get(key.rule)?, key, now))
    };
    let rows = best.into_sorted().filter_map(row).collect();
    Top { by: by_name(by).to_owned(), live, rows }
}

/// The best so far.
struct Best<'a> {
    entries: &'a [RuleEntry],
    level: Level,
    rows: usize,
    /// The tightest limit of any rule at this level: nobody's share is larger than under it.
    tightest: u32,
    seen: u64,
    /// The least of them lies on top, to be displaced: memory stays at `rows`.
    heap: BinaryHeap<Reverse<(Rank, Listed)>>,
}

impl<'a> Best<'a> {
    fn new(entries: &'a [RuleEntry], level: Level, rows: usize) -> Self {
        let limits = entries.iter().filter_map(|entry| entry.limit(level));
        let tightest = limits.min().unwrap_or(UNLIMITED);
        Self { entries, level, rows, tightest, seen: 0, heap: BinaryHeap::new() }
    }

    /// Keeps a key if it is among the best; the least use with which another one could be.
    fn offer(&mut self, key: LiveKey) -> u32 {
        self.seen += 1;
        let limit = self.entries.get(key.rule).and_then(|entry| entry.limit(self.level));
        if let Some(limit) = limit
            && key.key.level() == self.level
        {
            let used = key.usage.used;
            let rank = (share(used, limit), used, Reverse(self.seen));
            if self.heap.len() == self.rows && self.least().is_some_and(|least| rank > least) {
                self.heap.pop();
            }
            if self.heap.len() < self.rows {
                self.heap.push(Reverse((rank, Listed(key))));
            }
        }
        self.enough()
    }

    fn least(&self) -> Option<Rank> {
        self.heap.peek().map(|Reverse((rank, _))| *rank)
    }

    /// Whoever used less than this is not among the best, whichever its rule.
    fn enough(&self) -> u32 {
        match self.least() {
            Some((share, used, _)) if self.heap.len() == self.rows => {
                enough(share, used, self.tightest)
            }
            _ => 0,
        }
    }

    fn into_sorted(self) -> impl Iterator<Item = LiveKey> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse((_, Listed(key)))| key)
    }
}

/// A key that takes no part in the order.
struct Listed(LiveKey);

impl PartialEq for Listed {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Listed {}
impl PartialOrd for Listed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Listed {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

const MILLION: u64 = 1_000_000;

/// In millionths of the limit; unlimited keys come last, by use.
fn share(used: u32, limit: u32) -> u64 {
    match limit {
        UNLIMITED => 0,
        0 => u64::MAX,
        _ => u64::from(used) * MILLION / u64::from(limit),
    }
}

/// The least use that can come before this share and use, if no limit is below `tightest`.
fn enough(least: u64, used: u32, tightest: u32) -> u32 {
    if tightest == UNLIMITED {
        return used.saturating_add(1);
    }
    let as_much = least.saturating_mul(u64::from(tightest)).div_ceil(MILLION);
    let as_much = u32::try_from(as_much).unwrap_or(u32::MAX);
    // An equal share with no more use comes later.
    if as_much <= used && share(as_much, tightest) <= least {
        as_much.saturating_add(1)
    } else {
        as_much
    }
}

fn row(rule: &Rule, mode: Mode, entry: &RuleEntry, key: LiveKey, now: u64) -> TopRow {
    let spent = key.usage.heat == Heat::Spent;
    TopRow {
        key: key_name(key.key),
        rule: rule.name().to_string(),
        used: units(entry, key.usage.used),
        limit: rule.limit(key.key.level()).and_then(|limit| limit.finite()),
        unit: unit(entry).to_owned(),
        refused: spent && mode == Mode::Enforce,
        would_refuse: spent && mode == Mode::Shadow,
        ends_in_ms: ends_in_ms(&key.usage, now),
    }
}

fn by_name(by: TopBy) -> &'static str {
    match by {
        TopBy::Source => "source",
        TopBy::Prefix => "prefix",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::table::Use;
    use crate::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};
    use limiter_common::key::{Family, Source};

    #[test]
    fn the_largest_shares_come_first_and_no_more_than_asked_for() {
        let policy = Policy::parse(
            "schema = 1\n[[rule]]\nname = \"a\"\nmatch = [{ protocol = \"udp\" }]\nlimit = { source = 10, prefix = 50 }\n\
             window = \"1s\"\n[[rule]]\nname = \"b\"\nmatch = [{ protocol = \"tcp\" }]\nlimit = { source = 1000 }\n\
             window = \"1s\"\n",
        )
        .unwrap()
        .policy;
        let none = ModeOverrides::default();
        let snapshot =
            Snapshot::compile(&policy, &Registry::default(), &none, 1, UnixNanos(0)).unwrap();
        let key = |bits, level, rule, used| LiveKey {
            key: Source::from_bits(Family::V4, bits).key(level),
            rule,
            usage: Use { used, heat: Heat::Spent, ticks_left: 1 },
        };
        let keys = [
            key(0x0a00_0001, Level::Source, 0, 5),
            key(0x0a00_0002, Level::Source, 1, 100),
            key(0x0a00_0003, Level::Source, 0, 10),
            key(0x0a00_0004, Level::Source, 1, 900),
            key(0x0a00_0004, Level::Prefix, 0, 50),
            // No level of this rule any more: it is alive, but no row.
            key(0x0a00_0004, Level::Prefix, 1, 50),
        ];
        let modes = ModeOverrides::default();
        let top = |by, rows| {
            top((&policy, &snapshot.rules, &modes), by, rows, 0, |each| {
                keys.into_iter().map(each).count() as u64
            })
        };
        let sources = top(TopBy::Source, 3);
        assert_eq!(sources.live, 6);
        let rows: Vec<_> = sources.rows.iter().map(|row| (row.key.as_str(), row.used)).collect();
        assert_eq!(rows, [("10.0.0.3", 10), ("10.0.0.4", 900), ("10.0.0.1", 5)]);
        let prefixes = top(TopBy::Prefix, 3);
        assert_eq!(prefixes.rows.len(), 1);
        assert_eq!(
            (prefixes.rows[0].key.as_str(), prefixes.rows[0].limit),
            ("10.0.0.0/24", Some(50))
        );
    }

    #[test]
    fn what_is_passed_over_would_not_have_been_listed() {
        let limits = [1, 3, 10, 20, 30, 999, 1_000, 4_000_000, UNLIMITED];
        for (at, tightest) in limits.into_iter().enumerate() {
            for least_limit in &limits[at..] {
                for least_used in [1, 2, 7, 20, 995] {
                    let least = (share(least_used, *least_limit), least_used);
                    let enough = enough(least.0, least.1, tightest);
                    let passed_over = enough.saturating_sub(3)..enough;
                    for (used, limit) in
                        passed_over.flat_map(|u| limits[at..].iter().map(move |l| (u, *l)))
                    {
                        assert!((share(used, limit), used) <= least, "{used} {limit} {least:?}");
                    }
                }
            }
        }
        assert_eq!(enough(share(2, 1_000), 2, 1_000), 3, "equals are passed over");
        assert_eq!(enough(share(2, 30), 2, 30), 3);
        assert_eq!(enough(share(995, 1_000), 995, 10), 10, "a smaller limit may be spent");
        assert!(enough(share(5, 10), 5, 0) <= 1, "a limit of 0 is exceeded by any use");
    }

    #[test]
    fn unlimited_keys_come_after_limited_ones() {
        assert!(share(1, 1_000_000) > share(4_000_000, UNLIMITED));
        assert!(share(0, 0) > share(10, 10));
    }
}
