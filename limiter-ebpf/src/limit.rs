//! Limiting: which of a set's rules refuse a packet, and which would in shadow. Counts the answer.

use limiter_common::border::{Subject, Taken, Why};
use limiter_common::counters::RuleCount;
use limiter_common::hash::Seed;
use limiter_common::judge::{Maps, Notes, ask};
use limiter_common::layout::{Bypass, MAX_CLASSES, MAX_RULES, RuleSet};
use limiter_common::ticket::Answer;
use limiter_common::verdict::Exit;

use crate::border::fill;
use crate::maps::Kernel;
use crate::stats;

/// Judges the packet in the notes by its set of rules. `now` is Unix time in nanoseconds.
#[inline(always)]
pub fn limit(seed: Seed, notes: &Notes, now: u64, length: u32) -> Exit {
    let subject = Subject(notes.subject.get());
    let Some(set) = Kernel.set(subject) else {
        return Exit::NoPolicy;
    };
    if set.enforced() != 0 {
        let taken = match ask(Kernel, seed, notes, now, length) {
            Answer::Pass => Taken::ONE,
            Answer::Refuse(taken) => taken,
            Answer::Ask => fill(notes, now, length),
        };
        if let Some(why) = taken.why() {
            return refused(taken, why, notes, length);
        }
        passed(set, length);
    }
    if set.shadow() != 0 {
        in_shadow(notes, now, length);
    }
    Exit::Admitted
}

#[inline(always)]
fn passed(set: &RuleSet, length: u32) {
    let mut i = 0_u32;
    while i < MAX_RULES && i < set.enforced() {
        stats::rule(set.row(i), RuleCount::Passed, length);
        i = i.wrapping_add(1);
    }
}

/// Judges each rule in shadow as the only addition to what is enforced, with a ticket of its own. (The
/// pools are asked from here: deeper, there would be no stack left for them.)
#[inline(always)]
fn in_shadow(notes: &Notes, now: u64, length: u32) {
    notes.class.set(notes.subject.get());
    let mut i = 0_u32;
    while i < MAX_RULES && shadow(i, now, length) != 0 {
        if notes.taken.get() == ASK {
            notes.taken.set(fill(notes, now, length).0);
        }
        count_shadow(i, length);
        i = i.wrapping_add(1);
    }
}

/// In the notes: no [`Taken`], the pools must be asked.
const ASK: u32 = u32::MAX;

/// Asks the ticket of the `i`-th rule in shadow; the answer is in the notes. 0 once there is no such rule.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn shadow(i: u32, now: u64, length: u32) -> u32 {
    let Some(notes) = Kernel.notes() else {
        return 0;
    };
    let class = Subject(notes.class.get());
    let (Some(set), Some(meta)) = (Kernel.set(class), Kernel.meta()) else {
        return 0;
    };
    if i >= set.shadow() {
        return 0;
    }
    notes.subject.set(class.with_set(MAX_CLASSES | set.place(set.enforced().wrapping_add(i))).0);
    notes.taken.set(match ask(Kernel, meta.seed(), notes, now, length) {
        Answer::Pass => Taken::ONE.0,
        Answer::Refuse(taken) => taken.0,
        Answer::Ask => ASK,
    });
    1
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn count_shadow(i: u32, length: u32) -> u32 {
    let Some(notes) = Kernel.notes() else {
        return 0;
    };
    let Some(set) = Kernel.set(Subject(notes.class.get())) else {
        return 0;
    };
    let taken = Taken(notes.taken.get());
    let seen = match taken.why() {
        None => RuleCount::Passed,
        Some(Why::NoRoom) => RuleCount::WouldRefuse(taken.level()),
        Some(Why::Changing) => RuleCount::Contended,
    };
    stats::rule(set.row(set.enforced().wrapping_add(i)), seen, length);
    0
}

/// Counts a refusal where it was decided.
#[inline(always)]
fn refused(taken: Taken, why: Why, notes: &Notes, length: u32) -> Exit {
    let (count, exit) = match (why, Bypass::from_number(notes.bypass.get())) {
        (Why::Changing, _) => (RuleCount::Contended, Exit::Contended),
        (Why::NoRoom, Bypass::Shadow) => (RuleCount::WouldRefuse(taken.level()), Exit::Refused),
        (Why::NoRoom, _) => (RuleCount::Refused(taken.level()), Exit::Refused),
    };
    stats::rule(taken.row(), count, length);
    exit
}
