//! Limiting: which of a class's rules refuse a packet, and which would in shadow. Counts the answer.

use limiter_common::border::{Subject, Taken, Why};
use limiter_common::counters::RuleCount;
use limiter_common::key::Level;
use limiter_common::layout::{Bypass, MAX_RULES};
use limiter_common::verdict::Exit;

use crate::take::take;
use crate::{maps, stats};

/// Judges a packet by its class; the answer is an [`Exit`]. The verifier checks this
/// function apart from the parser, whose many paths would multiply with the loops here.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn limit(bits: u64, subject: u64, tick: u64, length: u32) -> u32 {
    judge(bits, Subject(subject), tick, length) as u32
}

#[inline(always)]
fn judge(bits: u64, subject: Subject, tick: u64, length: u32) -> Exit {
    let generation = subject.generation();
    let Some(rules) = maps::class(generation, subject.class()) else {
        return Exit::NoPolicy;
    };
    let (enforce, shadow) = (rules.enforce, rules.shadow);
    let taken = Taken(take(bits, subject.with_rules(enforce).0, tick, length));
    if let Some(why) = taken.why() {
        return refused(generation, taken, why, length);
    }
    let mut place = 0;
    while place < MAX_RULES {
        if enforce >> place & 1 != 0 {
            stats::rule_at(generation, place, RuleCount::Passed, length);
        }
        // Each shadow rule is judged as the only addition to what is enforced.
        if shadow >> place & 1 != 0 {
            let taken = Taken(take(bits, subject.with_rules(1 << place).0, tick, length));
            let seen = match taken.why() {
                None => RuleCount::Passed,
                Some(Why::NoRoom) => RuleCount::WouldRefuse(taken.level()),
                Some(Why::Changing) => RuleCount::Contended,
            };
            stats::rule_at(generation, place, seen, length);
        }
        place += 1;
    }
    Exit::Admitted
}

/// Counts a refusal where it was decided.
#[inline(always)]
fn refused(generation: u32, taken: Taken, why: Why, length: u32) -> Exit {
    let Some(rule) = maps::rule(generation, taken.place()) else {
        return Exit::NoPolicy;
    };
    match why {
        Why::NoRoom => {
            stats::rule(rule.row(), refusal(taken.level()), length);
            Exit::Refused
        }
        Why::Changing => {
            stats::rule(rule.row(), RuleCount::Contended, length);
            Exit::Contended
        }
    }
}

/// Under `limiter bypass shadow`, an enforced rule is as one in shadow.
#[inline(always)]
fn refusal(level: Level) -> RuleCount {
    match maps::bypass() {
        Bypass::Shadow => RuleCount::WouldRefuse(level),
        Bypass::Off | Bypass::Pass => RuleCount::Refused(level),
    }
}
