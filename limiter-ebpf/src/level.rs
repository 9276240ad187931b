//! A packet's pools, one level at a time: the loops over its rules, and this CPU's tickets for prefix and
//! total before them. Functions of their own, so that sets of rules are just numbers to the verifier: it
//! would follow each of 2^32 ways to come to one.

use limiter_common::border::{Drawn, Space, Subject, Taken, Why};
use limiter_common::bucket::Room;
use limiter_common::key::Level;
use limiter_common::layout::RuleSet;
use limiter_common::take::{Step, draw_each, give_back_each, room_each};
use limiter_common::ticket::Cover;
use limiter_common::want::Want;

use crate::maps::{self, Notes};
use crate::pool;
use crate::ticket::Open;

/// A packed [`Space`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn source_look(want: u64) -> u32 {
    match maps::notes().and_then(|notes| Some((notes, maps::set(Subject(notes.subject.get()))?))) {
        Some((notes, set)) if set.limits(Level::Source) => {
            look(notes, set, Level::Source as u32, want).0
        }
        _ => Space::MORE.0,
    }
}

/// A packed [`Drawn`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn source_draw(want: u64) -> u64 {
    match maps::notes().and_then(|notes| Some((notes, maps::set(Subject(notes.subject.get()))?))) {
        Some((notes, set)) if set.limits(Level::Source) => {
            draw(notes, set, Level::Source as u32, want).0
        }
        _ => 0,
    }
}

/// This CPU's ticket for the packet's prefix or total, if some rule of its set limits that level.
#[inline(always)]
fn coarse(level: u32) -> Option<(&'static Notes, Open)> {
    let notes = maps::notes()?;
    let (source, now) = (notes.source.get(), notes.now.get());
    let subject = Subject(notes.subject.get());
    let open = if level == Level::Total as u32 {
        Open::find(source, Level::Total, subject, now)?
    } else {
        Open::find(source, Level::Prefix, subject, now)?
    };
    if open.set.limits(Level::from_index(level)) { Some((notes, open)) } else { None }
}

/// A packed [`Space`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn coarse_look(level: u32, want: u64) -> u32 {
    let Some((notes, open)) = coarse(level) else {
        return Space::MORE.0;
    };
    let mut open = open.own();
    let space = match open.ticket.cover(Want(want), notes.length.get(), open.set.byte_shift()) {
        Cover::Enough => Space::MORE,
        Cover::Refused(taken) => Space::new(Room::None, taken.place()),
        Cover::Lacks(lacks) => {
            let space = look(notes, open.set, level, lacks.0);
            if space.room() == Room::None {
                let level = Level::from_index(level);
                open.refuse(Taken::refused(Why::NoRoom, level, space.place()), notes);
            }
            space
        }
    };
    notes.room(level as usize).set(space.room() as u32);
    space.0
}

/// A packed [`Drawn`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn coarse_draw(level: u32, want: u64) -> u64 {
    let Some((notes, mut open)) = coarse(level) else {
        return 0;
    };
    let Cover::Lacks(lacks) =
        open.ticket.cover(Want(want), notes.length.get(), open.set.byte_shift())
    else {
        return 0;
    };
    let plenty = notes.room(level as usize).get() == Room::More as u32;
    let lacks = if plenty { lacks.chunk() } else { lacks.one() };
    let drawn = draw(notes, open.set, level, lacks.0);
    if drawn.complete() {
        open.add(lacks.least(), notes);
    }
    drawn.0
}

/// Takes what a source's ticket gets off the ticket of its prefix or total.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn coarse_spend(level: u32, want: u64) -> u32 {
    if let Some((_, open)) = coarse(level) {
        let (packets, bytes) = Want(want).least();
        open.ticket.spend(packets, bytes);
    }
    0
}

#[inline(always)]
fn look(notes: &Notes, set: &RuleSet, level: u32, want: u64) -> Space {
    let name = pool::name(Subject(notes.subject.get()).generation(), level);
    room_each(set, |place| pool::room(name | place, want))
}

/// All pools of the level, or none.
#[inline(always)]
fn draw(notes: &Notes, set: &RuleSet, level: u32, want: u64) -> Drawn {
    let name = pool::name(Subject(notes.subject.get()).generation(), level);
    let step = |place| {
        let step = Step::unpack(pool::draw(name | place, want));
        if step == Step::Again {
            pool::find(name | place);
        }
        step
    };
    let drawn = draw_each(set, &notes, step);
    if !drawn.complete() {
        level_give_back(drawn.0, name, want);
    }
    drawn
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_give_back(drawn: u64, name: u32, want: u64) -> u32 {
    give_back_each(Drawn(drawn), |place| {
        pool::pool_give_back(name | place, want);
    });
    0
}
