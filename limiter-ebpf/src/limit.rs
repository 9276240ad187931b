//! Limiting: which of a set's rules refuse a packet, and which would in shadow. Counts the answer.

use limiter_common::border::{Subject, Taken, Why};
use limiter_common::counters::RuleCount;
use limiter_common::layout::{Bypass, MAX_CLASSES, MAX_RULES, RuleSet};
use limiter_common::verdict::Exit;

use crate::{maps, stats, ticket};

/// Judges a packet by its set of rules; the answer is an [`Exit`]. `now` is Unix time in nanoseconds. The
/// verifier checks this function apart from the parser, whose many paths would multiply with the loops
/// here.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn limit(bits: u64, subject: u64, now: u64, length: u32) -> u32 {
    judge(bits, Subject(subject), now, length)
}

/// In the answer of [`limit`]: [`shadow`] is to be called too. (From there it would need more stack than
/// there is.)
pub const IN_SHADOW: u32 = 0x100;

#[inline(always)]
fn judge(bits: u64, subject: Subject, now: u64, length: u32) -> u32 {
    let Some(set) = maps::set(subject) else {
        return Exit::NoPolicy as u32;
    };
    if set.enforced() != 0 {
        let taken = ticket::judge(bits, subject, now, length);
        if let Some(why) = taken.why() {
            return refused(subject, taken, why, length) as u32;
        }
        passed(set, length);
    }
    Exit::Admitted as u32 | if set.shadow() != 0 { IN_SHADOW } else { 0 }
}

#[inline(always)]
fn passed(set: &RuleSet, length: u32) {
    let mut i = 0_u32;
    while i < MAX_RULES && i < set.enforced() {
        stats::rule(set.row(i), RuleCount::Passed, length);
        i = i.wrapping_add(1);
    }
}

/// Judges the `i`-th rule in shadow as the only addition to what is enforced, with a ticket of its own. 0
/// once there is none.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn shadow(bits: u64, subject: u64, now: u64, length: u32, i: u32) -> u32 {
    let subject = Subject(subject);
    let Some(set) = maps::set(subject) else {
        return 0;
    };
    if i >= set.shadow() {
        return 0;
    }
    let at = set.enforced().wrapping_add(i);
    let alone = subject.with_set(MAX_CLASSES | set.place(at));
    let taken = ticket::judge(bits, alone, now, length);
    let seen = match taken.why() {
        None => RuleCount::Passed,
        Some(Why::NoRoom) => RuleCount::WouldRefuse(taken.level()),
        Some(Why::Changing) => RuleCount::Contended,
    };
    stats::rule(set.row(at), seen, length);
    1
}

/// Counts a refusal where it was decided.
#[inline(always)]
fn refused(subject: Subject, taken: Taken, why: Why, length: u32) -> Exit {
    let Some(rule) = maps::rule(subject.generation(), taken.place()) else {
        return Exit::NoPolicy;
    };
    match why {
        Why::NoRoom => {
            stats::rule(rule.row(), refusal(taken), length);
            Exit::Refused
        }
        Why::Changing => {
            stats::rule(rule.row(), RuleCount::Contended, length);
            Exit::Contended
        }
    }
}

#[inline(always)]
fn refusal(taken: Taken) -> RuleCount {
    match maps::bypass() {
        Bypass::Shadow => RuleCount::WouldRefuse(taken.level()),
        Bypass::Off | Bypass::Pass => RuleCount::Refused(taken.level()),
    }
}
