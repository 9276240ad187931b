//! Taking a packet's cost out of all pools that apply, coarse first, or out of none (promise A8): every
//! pool is read before any is claimed from, so that a refusal debits nobody; what a lost race has
//! claimed already goes back.

use crate::border::{Drawn, Space, Taken, Why};
use crate::bucket::{Room, TRIES};
use crate::key::Level;
use crate::layout::{MAX_RULES, RuleSet};
use crate::want::Want;

/// All pools of a packet at one level: one for each rule that judges it.
pub trait LevelPools {
    /// What there is room for: [`room_each`].
    fn room(&self, want: Want) -> Space;

    /// Debits each rule's pool by the least that is wanted, up to the first that refuses: [`draw_each`].
    fn draw(&self, want: Want) -> Drawn;

    /// Undoes [`LevelPools::draw`].
    fn give_back(&self, want: Want, drawn: Drawn);
}

/// Debits every pool of the three levels, or none: for a chunk if all have plenty, else for one packet.
#[inline(always)]
pub fn take<P: LevelPools>(total: &P, prefix: &P, source: &P, want: Want) -> Taken {
    let (room, refused) = room(total, prefix, source, want);
    if room == Room::None {
        return refused;
    }
    if room == Room::More && want.more() != want.least() {
        let taken = draw(total, prefix, source, want.chunk());
        // Others were faster: there may still be enough for one.
        if taken.why() != Some(Why::NoRoom) {
            return if taken == Taken::ONE { Taken::CHUNK } else { taken };
        }
    }
    draw(total, prefix, source, want.one())
}

/// The least room of all, and the refusal if there is none.
#[inline(always)]
fn room<P: LevelPools>(total: &P, prefix: &P, source: &P, want: Want) -> (Room, Taken) {
    let refused = |level, space: Space| Taken::refused(Why::NoRoom, level, space.place());
    let totals = total.room(want);
    if totals.room() == Room::None {
        return (Room::None, refused(Level::Total, totals));
    }
    let prefixes = prefix.room(want);
    if prefixes.room() == Room::None {
        return (Room::None, refused(Level::Prefix, prefixes));
    }
    let sources = source.room(want);
    if sources.room() == Room::None {
        return (Room::None, refused(Level::Source, sources));
    }
    let all = totals.room() == Room::More
        && prefixes.room() == Room::More
        && sources.room() == Room::More;
    (if all { Room::More } else { Room::Cost }, Taken::ONE)
}

/// Only a lost race makes a pool refuse here.
#[inline(always)]
fn draw<P: LevelPools>(total: &P, prefix: &P, source: &P, want: Want) -> Taken {
    let totals = total.draw(want);
    if !totals.complete() {
        total.give_back(want, totals);
        return totals.at(Level::Total);
    }
    let prefixes = prefix.draw(want);
    if !prefixes.complete() {
        prefix.give_back(want, prefixes);
        total.give_back(want, totals);
        return prefixes.at(Level::Prefix);
    }
    let sources = source.draw(want);
    if !sources.complete() {
        source.give_back(want, sources);
        prefix.give_back(want, prefixes);
        total.give_back(want, totals);
        return sources.at(Level::Source);
    }
    Taken::ONE
}

/// Asks the pool of each enforced rule of the set until one says no; the answer is the least room.
#[inline(always)]
pub fn room_each(set: &RuleSet, room: impl Fn(u32) -> Room) -> Space {
    let (mut least, mut i) = (Space::MORE, 0_u32);
    while i < MAX_RULES && i < set.enforced() {
        let place = set.place(i);
        match room(place) {
            Room::None => return Space::new(Room::None, place),
            Room::Cost => least = Space::new(Room::Cost, 0),
            Room::More => {}
        }
        i = i.wrapping_add(1);
    }
    least
}

/// What one try at one pool came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The rule doesn't limit this level, or its bucket has no place for the key: nothing debited,
    /// nothing refused.
    Nothing,
    /// Debited.
    Debited,
    /// Too little is left.
    NoRoom,
    /// Another CPU was faster.
    Again,
}

impl Step {
    /// As a number below 4.
    #[inline(always)]
    #[must_use]
    pub const fn pack(self) -> u32 {
        self as u32
    }

    /// The reverse of [`Step::pack`].
    #[inline(always)]
    #[must_use]
    pub const fn unpack(number: u32) -> Self {
        match number {
            0 => Self::Nothing,
            1 => Self::Debited,
            2 => Self::NoRoom,
            _ => Self::Again,
        }
    }
}

/// A number in memory that the kernel's verifier doesn't follow.
pub trait Memory {
    /// Reads it.
    fn get(&self) -> u64;
    /// Writes it.
    fn set(&self, number: u64);
}

/// Debits the pool of each enforced rule of the set until one refuses. Which were debited is noted in
/// `memory`: in a register, Linux 6.1 would check what follows once for every set of rules.
#[inline(always)]
pub fn draw_each(set: &RuleSet, memory: &impl Memory, step: impl Fn(u32) -> Step) -> Drawn {
    memory.set(0);
    let mut i = 0_u32;
    while i < MAX_RULES && i < set.enforced() {
        let place = set.place(i);
        match draw_one(place, &step) {
            Step::Nothing => {}
            Step::Debited => memory.set(memory.get() | 1 << place),
            Step::NoRoom => return Drawn::refused(memory.get(), Why::NoRoom, place),
            Step::Again => return Drawn::refused(memory.get(), Why::Changing, place),
        }
        i = i.wrapping_add(1);
    }
    Drawn(memory.get())
}

/// [`Step::Again`] only after [`TRIES`].
#[inline(always)]
fn draw_one(place: u32, step: &impl Fn(u32) -> Step) -> Step {
    let mut tries = 0_u32;
    let mut answer = Step::Again;
    while answer == Step::Again && tries < TRIES {
        answer = step(place);
        tries = tries.wrapping_add(1);
    }
    answer
}

/// Calls `give_back` for each rule that was debited.
#[inline(always)]
pub fn give_back_each(drawn: Drawn, give_back: impl Fn(u32)) {
    let mut place = 0_u32;
    while place < MAX_RULES {
        if drawn.rules() >> place & 1 != 0 {
            give_back(place);
        }
        place = place.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests;
