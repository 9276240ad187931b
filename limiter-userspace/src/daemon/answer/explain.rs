//! `limiter explain`: every pool of an address, and what the next packet would meet.

use limiter_common::bucket::UNLIMITED;
use limiter_common::key::{Key, Level, Source};
use limiter_common::layout::RuleEntry;
use limiter_common::packet::Address;

use super::{ends_in_ms, unit, units};
use crate::control::model::{LevelExplanation, RuleExplanation};
use crate::datapath::table::Use;
use crate::policy::{AppliesTo, Limit, Mode, Policy, Rule};
use crate::snapshot::ModeOverrides;

/// Bytes of the smallest Ethernet frame, as XDP sees it.
const SMALLEST: u32 = 60;

/// Each rule of the policy for this source. `entries` are the rules as compiled, `find` looks a pool up,
/// `now` is Unix nanoseconds.
pub(in super::super) fn explain(
    policy: &Policy,
    entries: &[RuleEntry],
    modes: &ModeOverrides,
    source: Source,
    now: u64,
    find: impl Fn(&RuleEntry, Key) -> Option<Use>,
) -> Vec<RuleExplanation> {
    let rules = policy.rules().iter().zip(entries);
    rules
        .map(|(rule, entry)| {
            let uses: Vec<_> = rule
                .limits()
                .map(|(level, limit)| (level, limit, find(entry, source.key(level))))
                .collect();
            let mode = modes.mode_of(rule);
            RuleExplanation {
                rule: rule.name().to_string(),
                mode: mode.to_string(),
                matches: AppliesTo(rule).to_string(),
                unit: unit(entry).to_owned(),
                next: next(entry, mode, &uses),
                levels: uses
                    .into_iter()
                    .map(|(level, limit, usage)| {
                        pool(rule, entry, source, level, limit, usage, now)
                    })
                    .collect(),
            }
        })
        .collect()
}

fn pool(
    rule: &Rule,
    entry: &RuleEntry,
    source: Source,
    level: Level,
    limit: Limit,
    usage: Option<Use>,
    now: u64,
) -> LevelExplanation {
    LevelExplanation {
        level: level.name().to_owned(),
        key: key_name(source.key(level)),
        limit: limit.finite(),
        used: usage.map_or(0, |usage| units(entry, usage.used)),
        window_ms: u64::from(rule.window().ticks()).saturating_mul(100),
        ends_in_ms: usage.map_or(0, |usage| ends_in_ms(&usage, now)),
    }
}

/// What the next packet of this rule would get, were it the smallest: levels are judged coarse first.
fn next(entry: &RuleEntry, mode: Mode, uses: &[(Level, Limit, Option<Use>)]) -> String {
    let cost = entry.cost((1, SMALLEST));
    let full = uses.iter().find(|(level, _, usage)| {
        let used = usage.map_or(0, |usage| usage.used);
        let limit = entry.limit(*level).unwrap_or(UNLIMITED);
        limit != UNLIMITED && used.saturating_add(cost) > limit
    });
    match (full, mode) {
        (None, _) => "pass".to_owned(),
        (Some((level, ..)), Mode::Enforce) => format!("refuse ({})", level.name()),
        (Some((level, ..)), Mode::Shadow) => format!("pass, would refuse ({})", level.name()),
    }
}

/// A key as people write it: a host without its length, `all` for the total.
pub(super) fn key_name(key: Key) -> String {
    match key.network() {
        None => "all".to_owned(),
        Some((Address::V4(bytes), 32)) => std::net::Ipv4Addr::from(bytes).to_string(),
        Some((Address::V4(bytes), length)) => {
            format!("{}/{length}", std::net::Ipv4Addr::from(bytes))
        }
        Some((Address::V6(bytes), length)) => {
            format!("{}/{length}", std::net::Ipv6Addr::from(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Registry, Snapshot, UnixNanos};
    use limiter_common::key::Family;
    use limiter_common::word::Heat;

    const NOW: u64 = 1_700_000_000_050_000_000;

    fn compiled(text: &str) -> (Policy, Snapshot) {
        let policy = Policy::parse(text).unwrap().policy;
        let none = ModeOverrides::default();
        let snapshot =
            Snapshot::compile(&policy, &Registry::default(), &none, 1, UnixNanos(NOW)).unwrap();
        (policy, snapshot)
    }

    fn used(used: u32) -> Option<Use> {
        Some(Use { used, heat: Heat::Hot, ticks_left: 4 })
    }

    #[test]
    fn levels_come_coarse_first_and_the_first_full_one_refuses() {
        let (policy, snapshot) = compiled(
            "schema = 1\n[[rule]]\nname = \"syn\"\nmatch = [{ protocol = \"tcp\", packets = \"tcp-syn\" }]\n\
             limit = { source = 20, prefix = 200 }\nwindow = \"10s\"\n",
        );
        let source = Source::from_bits(Family::V4, 0xc000_0207);
        let explained =
            explain(&policy, &snapshot.rules, &ModeOverrides::default(), source, NOW, |_, key| {
                used(if key.level() == Level::Source { 20 } else { 199 })
            });
        let rule = &explained[0];
        assert_eq!((rule.mode.as_str(), rule.next.as_str()), ("enforce", "refuse (source)"));
        let keys: Vec<_> = rule.levels.iter().map(|level| level.key.as_str()).collect();
        assert_eq!(keys, ["192.0.2.0/24", "192.0.2.7"]);
        let source = &rule.levels[1];
        assert_eq!((source.used, source.limit, source.window_ms), (20, Some(20), 10_000));
        assert_eq!(source.ends_in_ms, 350);
    }

    #[test]
    fn a_shadow_rule_passes_and_says_what_it_would_do() {
        let (policy, snapshot) = compiled(
            "schema = 1\n[[rule]]\nname = \"all\"\nmatch = [{ protocol = \"udp\" }]\nmode = \"shadow\"\n\
             limit = { total = 0 }\nwindow = \"1s\"\n",
        );
        let source = Source::from_bits(Family::V6, 0x2001_0db8_0000_0001);
        let explained =
            explain(&policy, &snapshot.rules, &ModeOverrides::default(), source, NOW, |_, _| None);
        assert_eq!(explained[0].next, "pass, would refuse (total)");
        assert_eq!(explained[0].levels[0].key, "all");
        assert_eq!(explained[0].levels[0].ends_in_ms, 0);
    }

    #[test]
    fn bytes_are_shown_in_bytes() {
        let (policy, snapshot) = compiled(
            "schema = 1\n[[rule]]\nname = \"vol\"\nmatch = [{ protocol = \"udp\" }]\nunit = \"bytes\"\n\
             limit = { source = 50000000 }\nwindow = \"1s\"\n",
        );
        let source = Source::from_bits(Family::V4, 1);
        let explained =
            explain(&policy, &snapshot.rules, &ModeOverrides::default(), source, NOW, |_, _| {
                used(1_000)
            });
        let shift = policy.rules()[0].quantum().shift();
        assert_eq!(explained[0].unit, "bytes");
        assert_eq!(explained[0].levels[0].used, 1_000 << shift);
        assert_eq!(explained[0].levels[0].limit, Some(50_000_000));
    }
}
