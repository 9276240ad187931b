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

/// Sorts by the share of the limit, then by use; the slot only makes the order total.
type Rank = (u64, u32, usize);

/// The first `rows` keys. `visit` shows every living key to its argument once; `rules` are the policy's,
/// as written and as compiled, and the modes set over theirs; `now` is Unix nanoseconds.
pub(in super::super) fn top(
    rules: (&Policy, &[RuleEntry], &ModeOverrides),
    by: TopBy,
    rows: usize,
    now: u64,
    visit: impl FnOnce(&mut dyn FnMut(LiveKey)),
) -> Top {
    let (policy, entries, modes) = rules;
    let level = match by {
        TopBy::Source => Level::Source,
        TopBy::Prefix => Level::Prefix,
    };
    // The smallest of the best lies on top, to be displaced: memory stays at `rows`.
    let mut best: BinaryHeap<Reverse<(Rank, Listed)>> = BinaryHeap::new();
    let mut live: usize = 0;
    visit(&mut |key: LiveKey| {
        live = live.saturating_add(1);
        if key.key.level() != level {
            return;
        }
        let Some(limit) = entries.get(key.rule).and_then(|entry| entry.limit(level)) else {
            return;
        };
        let rank = (share(key.usage.used, limit), key.usage.used, live);
        if best.len() < rows {
            best.push(Reverse((rank, Listed(key))));
        } else if best.peek().is_some_and(|Reverse((least, _))| rank > *least) {
            best.pop();
            best.push(Reverse((rank, Listed(key))));
        }
    });
    let sorted = best.into_sorted_vec().into_iter();
    let row = |Reverse((_, Listed(key)))| {
        let rule = policy.rules().get(key.rule)?;
        Some(row(rule, modes.mode_of(rule), entries.get(key.rule)?, key, now))
    };
    Top { by: by_name(by).to_owned(), live: live as u64, rows: sorted.filter_map(row).collect() }
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

/// In millionths of the limit; unlimited keys come last, by use.
fn share(used: u32, limit: u32) -> u64 {
    match limit {
        UNLIMITED => 0,
        0 => u64::MAX,
        _ => u64::from(used) * 1_000_000 / u64::from(limit),
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
                keys.into_iter().for_each(each)
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
    fn unlimited_keys_come_after_limited_ones() {
        assert!(share(1, 1_000_000) > share(4_000_000, UNLIMITED));
        assert!(share(0, 0) > share(10, 10));
    }
}
