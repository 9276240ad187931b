//! The loops over a packet's rules, one level at a time. Functions of their own, so that sets of rules are
//! just numbers to the verifier: it would follow each of 2^32 ways to come to one.

use limiter_common::border::{Drawn, Space, Subject};
use limiter_common::layout::RuleSet;
use limiter_common::take::{Step, draw_each, give_back_each, room_each};

use crate::maps::{self, Notes};
use crate::pool;

/// The set of rules, and the pools' [`pool::name`] but for the place.
#[inline(always)]
fn names(notes: &'static Notes, level: u32) -> Option<(&'static RuleSet, u32)> {
    let subject = Subject(notes.subject.get());
    Some((maps::set(subject)?, pool::name(subject.generation(), level)))
}

/// A packed [`Space`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn level_room(level: u32, want: u64) -> u32 {
    match maps::notes().and_then(|notes| names(notes, level)) {
        Some((set, name)) => room_each(set, |place| pool::room(name | place, want)).0,
        None => Space::MORE.0,
    }
}

/// A packed [`Drawn`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn level_draw(level: u32, want: u64) -> u64 {
    let Some(notes) = maps::notes() else {
        return 0;
    };
    let Some((set, name)) = names(notes, level) else {
        return 0;
    };
    let step = |place| {
        let step = Step::unpack(pool::draw(name | place, want));
        if step == Step::Again {
            pool::find(name | place);
        }
        step
    };
    draw_each(set, &notes, step).0
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn level_give_back(level: u32, want: u64, drawn: u64) -> u32 {
    if let Some((_, name)) = maps::notes().and_then(|notes| names(notes, level)) {
        give_back_each(Drawn(drawn), |place| {
            pool::give_back(name | place, want);
        });
    }
    0
}
