//! A policy in the kernel's tables, against the policy read word for word: which rules a packet meets,
//! and what each rule limits.

use std::collections::BTreeSet;

use limiter_common::layout::{Classifier, MAX_RULES, RuleEntry, Unit};
use limiter_common::packet::{Kind, Protocol};
use limiter_userspace::policy::{Limit, Match, Mode, Packets, Policy, Rule};
use limiter_userspace::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};

const NOW: UnixNanos = UnixNanos(1_800_000_000_000_000_000);
/// Packets looked up at most: enough to meet every part of small policies, and some of large ones.
const MOST_PACKETS: usize = 400;

/// A packet as the classifier sees it.
#[derive(Clone, Copy, Debug)]
struct Subject {
    /// 256: hidden by the headers.
    protocol: u32,
    kind: Kind,
    port: Option<u16>,
}

/// What comes of it, if the kernel's tables are large enough.
pub(super) fn check(policy: &Policy) -> Option<Snapshot> {
    let compile = |registry: &Registry, version| {
        Snapshot::compile(policy, registry, &ModeOverrides::default(), version, NOW)
    };
    let snapshot = match compile(&Registry::default(), 1) {
        Ok(snapshot) => snapshot,
        // A table of the kernel is too small: said, with the rules that take part.
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return None;
        }
    };
    assert_eq!(snapshot.policy.version, 1);
    rules_say_what_they_said(policy, &snapshot.rules);
    packets_meet_their_rules(policy, &snapshot);
    match compile(&snapshot.registry, 2) {
        Ok(again) => {
            assert_eq!(again.rules, snapshot.rules, "compiled again, rules keep their places")
        }
        Err(error) => panic!("compiled once, but not twice: {error}"),
    }
    Some(snapshot)
}

fn rules_say_what_they_said(policy: &Policy, entries: &[RuleEntry]) {
    assert_eq!(entries.len(), MAX_RULES as usize);
    let used = || policy.rules().iter().zip(entries);
    let ids: BTreeSet<u32> = used().map(|(_, entry)| entry.id()).collect();
    let rows: BTreeSet<u32> = used().map(|(_, entry)| entry.row()).collect();
    assert_eq!((ids.len(), rows.len()), (policy.rules().len(), policy.rules().len()));
    used().for_each(|(rule, entry)| rule_says_what_it_said(rule, entry));
}

fn rule_says_what_it_said(rule: &Rule, entry: &RuleEntry) {
    let name = rule.name().as_str();
    assert_eq!(entry.window(), rule.window(), "{name}");
    let quantum = match entry.unit() {
        Unit::Packets => 1,
        Unit::Bytes(quantum) => 1_u64 << quantum.shift(),
    };
    for level in limiter_common::key::Level::ALL {
        let compiled = entry.limit(level).map(|quanta| u64::from(quanta) * quantum);
        match (rule.limit(level), compiled) {
            (None, None) => {}
            (Some(Limit::Unlimited), Some(_)) => {
                assert_eq!(entry.limit(level), Some(limiter_common::bucket::UNLIMITED), "{name}");
            }
            // Rounded down to whole quanta, so never more than was written.
            (Some(Limit::Finite(amount)), Some(compiled)) => {
                assert!(compiled <= amount && amount < compiled + quantum, "{name}: {compiled}");
            }
            other => panic!("{name} {level:?}: {other:?}"),
        }
    }
}

fn packets_meet_their_rules(policy: &Policy, snapshot: &Snapshot) {
    let subjects = subjects(policy);
    for subject in subjects.iter().step_by(subjects.len() / MOST_PACKETS + 1) {
        assert_eq!(look_up(snapshot, *subject), naive(policy, *subject), "{subject:?}");
    }
}

/// Packets of every protocol and on both sides of every edge of ports that the policy names.
fn subjects(policy: &Policy) -> Vec<Subject> {
    let matches = || policy.rules().iter().flat_map(Rule::matches);
    let named = matches().filter_map(Match::protocol).map(u32::from);
    let protocols: BTreeSet<u32> =
        named.chain([0, 6, 17, 255, Protocol::UNKNOWN.index()]).collect();
    let edges = matches().flat_map(Match::ports).flat_map(|range| {
        let (start, end) = (*range.start(), *range.end());
        [start.checked_sub(1), Some(start), Some(end), end.checked_add(1)]
    });
    let ports: BTreeSet<Option<u16>> = edges.chain([None, Some(0), Some(u16::MAX)]).collect();
    let mut subjects = Vec::new();
    for protocol in protocols {
        for kind in [Kind::Other, Kind::TcpSyn] {
            subjects.extend(ports.iter().map(|port| Subject { protocol, kind, port: *port }));
        }
    }
    subjects
}

/// The three look-ups of the kernel program: rules that refuse, and rules that only say so.
fn look_up(snapshot: &Snapshot, subject: Subject) -> (u32, u32) {
    let tables = &snapshot.classifier;
    let column = tables.protocol[subject.protocol as usize];
    let row = subject.port.map_or(Classifier::NO_PORT, |port| tables.port[usize::from(port)]);
    let class = tables.class[Classifier::cell(column, subject.kind as u32, row)];
    let set = snapshot.sets[usize::from(class)];
    (set.enforced_bits(), set.shadow_bits())
}

fn naive(policy: &Policy, subject: Subject) -> (u32, u32) {
    let accepts = |it: &Match| {
        let port = |port: u16| it.ports().iter().any(|range| range.contains(&port));
        let any_port = it.ports().is_empty();
        if subject.protocol == Protocol::UNKNOWN.index() {
            return any_port && it.packets() == Packets::All;
        }
        it.protocol().is_none_or(|number| u32::from(number) == subject.protocol)
            && (it.packets() == Packets::All || subject.kind == Kind::TcpSyn)
            && (any_port || subject.port.is_some_and(port))
    };
    let mut sets = (0, 0);
    for (rule, bit) in policy.rules().iter().zip(0..) {
        let set = if rule.mode() == Mode::Enforce { &mut sets.0 } else { &mut sets.1 };
        *set |= u32::from(rule.matches().iter().any(accepts)) << bit;
    }
    sets
}
