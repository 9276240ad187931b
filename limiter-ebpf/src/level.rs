//! A packet's pools, one level at a time: the loops over its rules, and this CPU's tickets for prefix and
//! total before them. What a loop comes to goes through [`Notes::forget`]: the verifier would follow each
//! way to come to it.

use limiter_common::border::{Drawn, Space, Subject, Taken, Why};
use limiter_common::bucket::Room;
use limiter_common::key::Level;
use limiter_common::layout::RuleSet;
use limiter_common::take::{Step, draw_each, give_back_each, room_each};
use limiter_common::ticket::Cover;
use limiter_common::want::Want;

use crate::maps::Notes;
use crate::pool;
use crate::ticket::{self, Open};

/// What sources have room for.
#[inline(always)]
pub fn source_look(notes: &Notes, set: &RuleSet, want: Want) -> Space {
    if set.limits(Level::Source) { look(notes, set, Level::Source, want.0) } else { Space::MORE }
}

#[inline(always)]
pub fn source_draw(notes: &Notes, set: &RuleSet, want: Want) -> Drawn {
    if set.limits(Level::Source) { draw(notes, set, Level::Source, want.0) } else { Drawn(0) }
}

/// In the notes as a level's room: nothing has to be drawn; the ticket has enough, or no rule limits it.
const ENOUGH: u32 = u32::MAX;

/// Whether this CPU has a ticket for the packet's prefix, if one is needed.
#[inline(always)]
pub fn has_prefix_ticket(notes: &Notes, set: &RuleSet) -> bool {
    let (source, subject) = (notes.source.get(), Subject(notes.subject.get()));
    if !set.limits(Level::Prefix) {
        return true;
    }
    match Open::find(source, Level::Prefix, subject, notes.now.get()) {
        Some(open) => open.ticket.holds(open.holder, open.moment),
        None => true,
    }
}

/// What prefixes or totals have room for, this CPU's ticket first.
#[inline(always)]
pub fn coarse_look(notes: &Notes, set: &'static RuleSet, level: Level, want: Want) -> Space {
    let room = notes.room(level as usize);
    room.set(ENOUGH);
    if !set.limits(level) {
        return Space::MORE;
    }
    let (source, subject) = (notes.source.get(), Subject(notes.subject.get()));
    let Some(open) = Open::find(source, level, subject, notes.now.get()) else {
        return Space::MORE;
    };
    let mut open = open.own();
    notes.ticket(level as usize).set(open.number);
    match open.ticket.cover(want, notes.length.get(), set.byte_shift()) {
        Cover::Enough => Space::MORE,
        Cover::Refused(taken) => Space::new(Room::None, taken.place()),
        Cover::Lacks(lacks) => {
            let space = look(notes, set, level, notes.forget(lacks.0));
            if space.room() == Room::None {
                open.refuse(Taken::refused(Why::NoRoom, level, space.place()), notes);
            }
            room.set(space.room() as u32);
            space
        }
    }
}

/// Draws what the ticket for prefix or total lacks.
#[inline(always)]
pub fn coarse_draw(notes: &Notes, set: &'static RuleSet, level: Level, want: Want) -> Drawn {
    let room = notes.room(level as usize).get();
    if room == ENOUGH {
        return Drawn(0);
    }
    let Some(ticket) = ticket::at(notes.ticket(level as usize).get()) else {
        return Drawn(0);
    };
    let Cover::Lacks(lacks) = ticket.cover(want, notes.length.get(), set.byte_shift()) else {
        return Drawn(0);
    };
    let lacks = if room == Room::More as u32 { lacks.chunk() } else { lacks.one() };
    let lacks = Want(notes.forget(lacks.0));
    let drawn = draw(notes, set, level, lacks.0);
    if drawn.complete() {
        let end = notes.end_of(set.window()).unix_nanos();
        ticket.add(lacks.least(), set.byte_shift(), end);
    }
    drawn
}

/// Takes what a source's ticket gets off the ticket of its prefix or total.
#[inline(always)]
pub fn coarse_spend(notes: &Notes, set: &RuleSet, level: Level, want: Want) {
    if set.limits(level)
        && let Some(ticket) = ticket::at(notes.ticket(level as usize).get())
    {
        let (packets, bytes) = want.least();
        ticket.spend(packets, bytes);
    }
}

#[inline(always)]
fn look(notes: &Notes, set: &RuleSet, level: Level, want: u64) -> Space {
    let name = pool::name(Subject(notes.subject.get()).generation(), level as u32);
    Space(notes.forget(room_each(set, |place| pool::room(name | place, want)).0 as u64) as u32)
}

/// All pools of the level, or none.
#[inline(always)]
fn draw(notes: &Notes, set: &RuleSet, level: Level, want: u64) -> Drawn {
    let name = pool::name(Subject(notes.subject.get()).generation(), level as u32);
    let step = |place| {
        let step = Step::unpack(pool::draw(name | place, want));
        if step == Step::Again {
            pool::find(name | place);
        }
        step
    };
    let drawn = Drawn(notes.forget(draw_each(set, &notes, step).0));
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
