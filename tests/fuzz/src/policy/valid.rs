//! What docs/POLICY.md promises of every policy that is taken, checked from outside.

use std::collections::HashSet;

use limiter_userspace::policy::{Limit, Match, Packets, Policy, Rule, Unit};

pub(super) const MOST_RULES: usize = 32;
/// What 22 bits hold but for one; in bytes, in steps of 64.
const MOST_PACKETS: u64 = (1 << 22) - 2;
const MOST_BYTES: u64 = ((1 << 22) - 1) * 64 - 1;
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

pub(super) fn check(policy: &Policy) {
    assert!(policy.version() != Some(0));
    assert!(policy.rules().len() <= MOST_RULES, "{} rules", policy.rules().len());
    let names: HashSet<&str> = policy.rules().iter().map(|rule| rule.name().as_str()).collect();
    assert_eq!(names.len(), policy.rules().len(), "two rules share a name");
    policy.rules().iter().for_each(check_rule);
}

fn check_rule(rule: &Rule) {
    let name = rule.name().as_str();
    assert!((1..=48).contains(&name.len()), "{name:?}");
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(name.chars().all(allowed), "{name:?}");
    assert!((1..=36_000).contains(&rule.window().ticks()), "{:?}", rule.window());
    assert!(rule.limits().count() > 0, "{name} limits nothing");
    let most = if rule.unit() == Unit::Bytes { MOST_BYTES } else { MOST_PACKETS };
    for (level, limit) in rule.limits() {
        assert!(limit.finite().is_none_or(|amount| amount <= most), "{name} {level:?} {limit:?}");
        assert_ne!(limit, Limit::Finite(u64::MAX));
    }
    assert!((1..=32).contains(&rule.matches().len()), "{name}: {} matches", rule.matches().len());
    rule.matches().iter().for_each(check_match);
}

fn check_match(it: &Match) {
    assert!(it.ports().len() <= 256, "{} ports", it.ports().len());
    assert!(it.ports().iter().all(|range| !range.is_empty()), "{it:?}");
    let has_ports = it.protocol().is_some_and(|number| WITH_PORTS.contains(&number));
    assert!(it.ports().is_empty() || has_ports, "{it:?}");
    assert!(it.packets() != Packets::TcpSyn || it.protocol() == Some(6), "{it:?}");
}
