//! The kernel's counters as plain values, summed over CPUs. Knows nothing of maps or metrics.

use limiter_common::counters::{Count, RuleCount};
use limiter_common::packet::Fault;
use limiter_common::verdict::Exit;

/// All counts at one moment. They only ever grow while the maps live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// One per [`Exit`], in the order of [`Exit::ALL`].
    pub exits: Vec<(Exit, Count)>,
    /// One per [`Fault`], in the order of [`Fault::ALL`].
    pub faults: Vec<(Fault, Count)>,
    /// The rules that have a counter row, in the order of the rows.
    pub rules: Vec<RuleCounts>,
}

/// One rule's counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCounts {
    /// The rule's name.
    pub name: String,
    /// In the order of [`RuleCount::ALL`].
    pub counts: Vec<(RuleCount, Count)>,
}
