//! Answers to commands, made of plain values: what is asked of maps comes in as arguments. Changes
//! nothing.

mod explain;
mod status;
mod top;

pub(super) use explain::explain;
pub(super) use status::{rules, totals};
pub(super) use top::top;

use limiter_common::clock::NANOS_PER_TICK;
use limiter_common::layout::{RuleEntry, Unit};

use crate::datapath::table::Use;

/// What a rule's quanta are worth in its unit.
fn units(rule: &RuleEntry, quanta: u32) -> u64 {
    match rule.unit() {
        Unit::Packets => u64::from(quanta),
        Unit::Bytes(quantum) => u64::from(quanta) << quantum.shift(),
    }
}

/// The unit's word.
fn unit(rule: &RuleEntry) -> &'static str {
    match rule.unit() {
        Unit::Packets => "packets",
        Unit::Bytes(_) => "bytes",
    }
}

/// Milliseconds until the window ends, `now` being Unix nanoseconds.
fn ends_in_ms(usage: &Use, now: u64) -> u64 {
    let into_tick = now % NANOS_PER_TICK;
    usage.ticks_left.saturating_mul(NANOS_PER_TICK).saturating_sub(into_tick) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_common::word::Heat;

    #[test]
    fn the_end_is_exact_within_a_tick() {
        let usage = Use { used: 1, heat: Heat::Cold, ticks_left: 3 };
        assert_eq!(ends_in_ms(&usage, 1_000 * NANOS_PER_TICK), 300);
        assert_eq!(ends_in_ms(&usage, 1_000 * NANOS_PER_TICK + 40_000_000), 260);
    }
}
