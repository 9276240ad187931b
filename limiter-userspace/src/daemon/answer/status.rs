//! `limiter status`: counts as one sees them at a glance.

use limiter_common::counters::{Count, RuleCount};

use crate::control::model::RuleStatus;
use crate::policy::Policy;
use crate::telemetry::counts::Counts;

use super::super::overlay::Overlay;

/// Frames that passed, and that were refused.
pub(in super::super) fn totals(counts: &Counts) -> (u64, u64) {
    let (passed, refused): (Vec<_>, Vec<_>) =
        counts.exits.iter().partition(|(exit, _)| exit.passes());
    let sum = |exits: Vec<&(_, Count)>| exits.iter().map(|(_, count)| count.packets).sum();
    (sum(passed), sum(refused))
}

/// Each rule of the policy in force.
pub(in super::super) fn rules(
    policy: &Policy,
    overlay: &Overlay,
    counts: &Counts,
) -> Vec<RuleStatus> {
    let overrides = overlay.overrides();
    let rules = policy.rules().iter();
    rules
        .map(|rule| {
            let name = rule.name().as_str();
            let sum = |which: fn(RuleCount) -> bool| packets(counts, name, which);
            RuleStatus {
                name: name.to_owned(),
                mode: overrides.mode_of(rule).to_string(),
                mode_override: overlay.modes.get(name).cloned(),
                passed: sum(|count| count == RuleCount::Passed),
                refused: sum(|count| matches!(count, RuleCount::Refused(_) | RuleCount::Contended)),
                would_refuse: sum(|count| matches!(count, RuleCount::WouldRefuse(_))),
            }
        })
        .collect()
}

fn packets(counts: &Counts, name: &str, which: fn(RuleCount) -> bool) -> u64 {
    let rows = counts.rules.iter().filter(|rule| rule.name == name);
    let counts = rows.flat_map(|rule| rule.counts.iter()).filter(|(count, _)| which(*count));
    counts.map(|(_, count)| count.packets).sum()
}
