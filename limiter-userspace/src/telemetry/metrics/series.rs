//! The series of metrics, out of plain values. Pure; every label's values are bounded by the policy.

use limiter_common::counters::{Count, RuleCount};

use super::metric::Sample;
use crate::telemetry::counts::Counts;

/// A gauge is a float in the format itself; none of ours comes near 2^53.
#[expect(clippy::cast_precision_loss, reason = "see above")]
pub(super) const fn wide(value: u64) -> f64 {
    value as f64
}

pub(super) fn one(value: f64) -> Vec<Sample<f64>> {
    vec![Sample { labels: Vec::new(), value }]
}

/// 1, with what matters in the label.
pub(super) fn info(label: &'static str, value: &str) -> Vec<Sample<f64>> {
    vec![Sample { labels: vec![(label, value.to_owned())], value: 1.0 }]
}

/// One sample per possible state, 1 for the present one.
pub(super) fn states(
    all: &[&str],
    now: &str,
    label: &'static str,
    others: &[(&'static str, String)],
) -> Vec<Sample<f64>> {
    all.iter()
        .map(|state| {
            let mut labels = others.to_vec();
            labels.push((label, (*state).to_owned()));
            Sample { labels, value: f64::from(u8::from(*state == now)) }
        })
        .collect()
}

/// The states of several things.
pub(super) fn each(
    things: &[(String, String)],
    label: &'static str,
    state: &'static str,
    all: &[&str],
) -> Vec<Sample<f64>> {
    things
        .iter()
        .flat_map(|(name, now)| states(all, now, state, &[(label, name.clone())]))
        .collect()
}

pub(super) fn exits(counts: &Counts, value: fn(&Count) -> u64) -> Vec<Sample<u64>> {
    let sample =
        |exit: &str, count| Sample { labels: vec![("exit", exit.to_owned())], value: value(count) };
    counts.exits.iter().map(|(exit, count)| sample(exit.name(), count)).collect()
}

pub(super) fn faults(counts: &Counts) -> Vec<Sample<u64>> {
    let sample = |fault: &str, value| Sample { labels: vec![("fault", fault.to_owned())], value };
    counts.faults.iter().map(|(fault, count)| sample(fault.name(), count.packets)).collect()
}

/// The labels of a rule's count, beside the rule's name; `None` if it belongs to another metric.
pub(super) type Labels = fn(RuleCount) -> Option<Vec<(&'static str, String)>>;

pub(super) fn rules(counts: &Counts, labels: Labels, value: fn(&Count) -> u64) -> Vec<Sample<u64>> {
    let mut samples = Vec::new();
    for rule in &counts.rules {
        for (kind, count) in &rule.counts {
            let Some(more) = labels(*kind) else { continue };
            let mut labels = vec![("rule", rule.name.clone())];
            labels.extend(more);
            samples.push(Sample { labels, value: value(count) });
        }
    }
    samples
}

pub(super) fn verdict(kind: RuleCount) -> Option<Vec<(&'static str, String)>> {
    // An empty label is an absent one; written out, so that the series of a family look alike.
    let (verdict, level) = match kind {
        RuleCount::Passed => ("passed", ""),
        RuleCount::Refused(level) => ("refused", level.name()),
        RuleCount::WouldRefuse(level) => ("would-refuse", level.name()),
        RuleCount::Contended => ("contended", ""),
        RuleCount::Crowded(_) | RuleCount::Displaced(_) => return None,
    };
    Some(vec![("verdict", verdict.to_owned()), ("level", level.to_owned())])
}

pub(super) fn crowded(kind: RuleCount) -> Option<Vec<(&'static str, String)>> {
    let RuleCount::Crowded(level) = kind else {
        return None;
    };
    Some(vec![("level", level.name().to_owned())])
}

pub(super) fn displaced(kind: RuleCount) -> Option<Vec<(&'static str, String)>> {
    let RuleCount::Displaced(level) = kind else {
        return None;
    };
    Some(vec![("level", level.name().to_owned())])
}
