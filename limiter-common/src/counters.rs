//! Where each count lies in the per-CPU map `COUNTERS`. A packet adds to exactly one [`Exit`] row,
//! to at most one fault row, and to rows of the rules that judged it.

use crate::key::Level;
use crate::layout::RULE_ROWS;
use crate::verdict::Exit;

/// One row: packets, and their frames' lengths in bytes (Ethernet header included, FCS not).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What a rule's rows count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleCount {
    /// Packets that the rule had room for: for an enforced rule those that passed, for a shadow rule
    /// those it would have let pass.
    Passed,
    /// Packets that the rule refused at this level (it was the first in the order of judging).
    Refused(Level),
    /// Packets that the rule, in shadow or under `limiter bypass shadow`, would have refused at this
    /// level.
    WouldRefuse(Level),
    /// Packets that this level could not judge, its bucket being full of keys at their limits.
    Crowded(Level),
    /// Keys that lost their count at this level for a new one (in a full bucket, the coldest).
    Displaced(Level),
    /// Packets refused since other CPUs kept changing the same words; for a rule in shadow those that it
    /// could not judge for that reason.
    Contended,
}

const FAULT_ROWS: u32 = 16;
const RULES_FROM: u32 = FAULT_ROWS + 4;
const PER_RULE: u32 = 16;

/// Rows in the map.
pub const ROWS: u32 = RULES_FROM + RULE_ROWS * PER_RULE;

impl RuleCount {
    /// All, in the order of their rows.
    pub const ALL: [Self; 14] = [
        Self::Passed,
        Self::Refused(Level::Total),
        Self::Refused(Level::Prefix),
        Self::Refused(Level::Source),
        Self::WouldRefuse(Level::Total),
        Self::WouldRefuse(Level::Prefix),
        Self::WouldRefuse(Level::Source),
        Self::Crowded(Level::Total),
        Self::Crowded(Level::Prefix),
        Self::Crowded(Level::Source),
        Self::Displaced(Level::Total),
        Self::Displaced(Level::Prefix),
        Self::Displaced(Level::Source),
        Self::Contended,
    ];

    const fn place(self) -> u32 {
        match self {
            Self::Passed => 0,
            Self::Refused(level) => (level as u32).wrapping_add(1),
            Self::WouldRefuse(level) => (level as u32).wrapping_add(4),
            Self::Crowded(level) => (level as u32).wrapping_add(7),
            Self::Displaced(level) => (level as u32).wrapping_add(10),
            Self::Contended => 13,
        }
    }

    /// The row of this count for the rule with this counter row number (below [`RULE_ROWS`]).
    #[inline(always)]
    #[must_use]
    pub const fn row(self, rule: u32) -> u32 {
        let rule = rule & (RULE_ROWS - 1);
        RULES_FROM.wrapping_add(rule.wrapping_mul(PER_RULE)).wrapping_add(self.place())
    }
}

/// The row of an exit.
#[inline(always)]
#[must_use]
pub const fn exit_row(exit: Exit) -> u32 {
    exit as u32
}

/// The row of a parsing fault (by its number), counted besides the exit.
#[inline(always)]
#[must_use]
pub const fn fault_row(fault: u32) -> u32 {
    FAULT_ROWS.wrapping_add(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Fault;

    #[test]
    fn no_two_counts_share_a_row() {
        let mut rows: Vec<u32> = Exit::ALL.map(exit_row).to_vec();
        rows.extend(Fault::ALL.map(|fault| fault_row(fault as u32)));
        for rule in 0..RULE_ROWS {
            rows.extend(RuleCount::ALL.map(|count| count.row(rule)));
        }
        let all = rows.len();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), all);
        assert!(rows.iter().all(|row| *row < ROWS));
    }
}
