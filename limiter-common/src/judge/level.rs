//! A packet's pools, one level at a time: the loops over its rules, and this CPU's tickets for prefix and
//! total before them. What a loop comes to goes through [`Notes::forget`]: the verifier would follow each
//! way to come to it.

use super::open::{Open, add, holder};
use super::{Maps, Notes, pool};
use crate::border::{Drawn, Space, Subject, Taken, Why};
use crate::bucket::Room;
use crate::key::Level;
use crate::layout::RuleSet;
use crate::take::{Step, draw_each, room_each};
use crate::ticket::Cover;
use crate::want::Want;

/// What sources have room for.
#[inline(always)]
pub(super) fn source_look(
    maps: impl Maps,
    notes: &'static Notes,
    set: &RuleSet,
    want: Want,
) -> Space {
    if set.limits(Level::Source) {
        look(maps, notes, set, Level::Source, want)
    } else {
        Space::MORE
    }
}

#[inline(always)]
pub(super) fn source_draw(maps: impl Maps, set: &RuleSet, want: Want) -> Drawn {
    if set.limits(Level::Source) { maps.draw_level(Level::Source, want) } else { Drawn(0) }
}

/// In the notes as a level's room: nothing has to be drawn; the ticket has enough, or no rule limits it.
const ENOUGH: u32 = u32::MAX;

/// Finds the packet's ticket for its prefix or total, and notes it; whether it is this CPU's already, or none
/// is needed.
#[inline(always)]
pub(super) fn find_ticket(
    maps: impl Maps,
    notes: &'static Notes,
    set: &RuleSet,
    level: Level,
) -> bool {
    let (source, subject) = (notes.source.get(), Subject(notes.subject.get()));
    if !set.limits(level) {
        return true;
    }
    match Open::find(maps, source, level, subject, notes.now.get()) {
        Some(open) => {
            notes.ticket(level as usize).set(open.number);
            open.ticket.holds(open.holder, open.moment)
        }
        None => true,
    }
}

/// What prefixes or totals have room for, this CPU's ticket first.
#[inline(always)]
pub(super) fn coarse_look(
    maps: impl Maps,
    notes: &'static Notes,
    set: &'static RuleSet,
    level: Level,
    want: Want,
) -> Space {
    let room = notes.room(level as usize);
    room.set(ENOUGH);
    if !set.limits(level) {
        return Space::MORE;
    }
    let (source, subject) = (notes.source.get(), Subject(notes.subject.get()));
    let (number, holder) = (notes.ticket(level as usize).get(), holder(source, level, subject));
    let Some(open) = Open::at(maps, number, holder, subject, notes.now.get()) else {
        return Space::MORE;
    };
    let mut open = open.own();
    match open.ticket.cover(want, notes.length.get(), set.byte_shift()) {
        Cover::Enough => Space::MORE,
        Cover::Refused(taken) => Space::new(Room::None, taken.place()),
        Cover::Lacks(lacks) => {
            let space = look(maps, notes, set, level, Want(notes.forget(lacks.0)));
            if space.room() == Room::None {
                open.refuse(maps, Taken::refused(Why::NoRoom, level, space.place()), notes);
            }
            room.set(space.room() as u32);
            space
        }
    }
}

/// Draws what the ticket for prefix or total lacks.
#[inline(always)]
pub(super) fn coarse_draw(
    maps: impl Maps,
    notes: &'static Notes,
    set: &'static RuleSet,
    level: Level,
    want: Want,
) -> Drawn {
    let room = notes.room(level as usize).get();
    if room == ENOUGH {
        return Drawn(0);
    }
    let Some(ticket) = maps.ticket(notes.ticket(level as usize).get()) else {
        return Drawn(0);
    };
    let Cover::Lacks(lacks) = ticket.cover(want, notes.length.get(), set.byte_shift()) else {
        return Drawn(0);
    };
    let lacks = if room == Room::More as u32 { lacks.chunk() } else { lacks.one() };
    let lacks = Want(notes.forget(lacks.0));
    let drawn = maps.draw_level(level, lacks);
    if drawn.complete() {
        add(ticket, set, lacks.least(), notes);
    }
    drawn
}

/// Takes what a source's ticket gets off the ticket of its prefix or total.
#[inline(always)]
pub(super) fn coarse_spend(
    maps: impl Maps,
    notes: &'static Notes,
    set: &RuleSet,
    level: Level,
    want: Want,
) {
    if set.limits(level)
        && let Some(ticket) = maps.ticket(notes.ticket(level as usize).get())
    {
        let (packets, bytes) = want.least();
        ticket.spend(packets, bytes);
    }
}

#[inline(always)]
fn look(maps: impl Maps, notes: &'static Notes, set: &RuleSet, level: Level, want: Want) -> Space {
    let name = pool::name(Subject(notes.subject.get()).generation(), level as u32);
    Space(notes.forget_half(room_each(set, |place| maps.look(name | place, want)).0))
}

/// Draws from all pools of the level, or from none.
#[inline(always)]
pub fn draw(maps: impl Maps, level: u32, want: Want) -> Drawn {
    let Some(notes) = maps.notes() else {
        return Drawn(0);
    };
    let subject = Subject(notes.subject.get());
    let Some(set) = maps.set(subject) else {
        return Drawn(0);
    };
    let name = pool::name(subject.generation(), level);
    let step = |place| {
        let step = maps.draw(name | place, want);
        if step == Step::Again {
            maps.find(name | place);
        }
        step
    };
    let drawn = Drawn(notes.forget(draw_each(set, &notes, step).0));
    if !drawn.complete() {
        maps.give_back(drawn, name, want);
    }
    drawn
}
