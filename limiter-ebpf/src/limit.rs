//! Limiting: which of a class's rules refuse a packet, and which would in shadow. Counts the answer.

use limiter_common::counters::RuleCount;
use limiter_common::layout::MAX_RULES;
use limiter_common::verdict::{Judgement, Refusal};

use crate::take::{NO_ROOM, TAKEN, level_of, take, with_rules};
use crate::{classify, maps, stats};

/// Judges a packet by its class; the answer is a packed [`Judgement`]. The verifier checks this
/// function apart from the parser, whose many paths would multiply with the loops here.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn limit(bits: u64, what: u64, tick: u64, length: u32) -> u32 {
    judge(bits, what, tick, length).pack()
}

#[inline(always)]
fn judge(bits: u64, what: u64, tick: u64, length: u32) -> Judgement {
    let (class, generation, _) = classify::unpack(what);
    let Some(rules) = maps::class(generation, class) else {
        return Judgement::NoPolicy;
    };
    let (enforce, shadow) = (rules.enforce, rules.shadow);
    let taken = take(bits, with_rules(what, enforce), tick, length);
    if taken != TAKEN {
        return refused(generation, taken, length);
    }
    let mut place = 0;
    while place < MAX_RULES {
        if enforce >> place & 1 != 0 {
            stats::rule_at(generation, place, RuleCount::Passed, length);
        }
        // Each shadow rule is judged as the only addition to what is enforced.
        if shadow >> place & 1 != 0 {
            let taken = take(bits, with_rules(what, 1 << place), tick, length);
            let seen = if taken == TAKEN {
                RuleCount::Passed
            } else if taken & 0xff == NO_ROOM {
                RuleCount::WouldRefuse(level_of(taken))
            } else {
                RuleCount::Contended
            };
            stats::rule_at(generation, place, seen, length);
        }
        place += 1;
    }
    Judgement::Admitted
}

/// Counts a refusal where it was decided.
#[inline(always)]
fn refused(generation: u32, taken: u32, length: u32) -> Judgement {
    let place = taken >> 16;
    let Some(rule) = maps::rule(generation, place) else {
        return Judgement::NoPolicy;
    };
    if taken & 0xff == NO_ROOM {
        let level = level_of(taken);
        stats::rule(rule.row(), RuleCount::Refused(level), length);
        Judgement::Refused(Refusal { row: rule.row(), level })
    } else {
        stats::rule(rule.row(), RuleCount::Contended, length);
        Judgement::Contended
    }
}
