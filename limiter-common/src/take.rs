//! Taking a packet's cost out of all pools that apply, coarse first, or out of none (promise A8): every
//! pool is read before any is claimed from, so that a refusal debits nobody; what a lost race has
//! claimed already goes back.

use crate::border::{Drawn, Taken, Why};
use crate::bucket::TRIES;
use crate::key::Level;
use crate::layout::MAX_RULES;

/// All pools of a packet at one level: one for each rule that judges it.
pub trait LevelPools {
    /// The place of the first rule that has no room for the packet, or [`MAX_RULES`]:
    /// [`first_without_room`].
    fn without_room(&self) -> u32;

    /// Debits each rule's pool, up to the first that refuses: [`draw_each`].
    fn draw(&self) -> Drawn;

    /// Undoes [`LevelPools::draw`].
    fn give_back(&self, drawn: Drawn);
}

/// Debits every pool of the three levels, or none.
#[inline(always)]
pub fn take<P: LevelPools>(total: &P, prefix: &P, source: &P) -> Taken {
    let refused = without_room(total, prefix, source);
    if refused == Taken::ALL { draw(total, prefix, source) } else { refused }
}

#[inline(always)]
fn without_room<P: LevelPools>(total: &P, prefix: &P, source: &P) -> Taken {
    let place = total.without_room();
    if place < MAX_RULES {
        return Taken::refused(Why::NoRoom, Level::Total, place);
    }
    let place = prefix.without_room();
    if place < MAX_RULES {
        return Taken::refused(Why::NoRoom, Level::Prefix, place);
    }
    let place = source.without_room();
    if place < MAX_RULES {
        return Taken::refused(Why::NoRoom, Level::Source, place);
    }
    Taken::ALL
}

/// Only a lost race makes a pool refuse here.
#[inline(always)]
fn draw<P: LevelPools>(total: &P, prefix: &P, source: &P) -> Taken {
    let totals = total.draw();
    if !totals.complete() {
        total.give_back(totals);
        return totals.at(Level::Total);
    }
    let prefixes = prefix.draw();
    if !prefixes.complete() {
        prefix.give_back(prefixes);
        total.give_back(totals);
        return prefixes.at(Level::Prefix);
    }
    let sources = source.draw();
    if !sources.complete() {
        source.give_back(sources);
        prefix.give_back(prefixes);
        total.give_back(totals);
        return sources.at(Level::Source);
    }
    Taken::ALL
}

/// Asks the pool of each rule in `rules` (bits by place) until one says no.
#[inline(always)]
pub fn first_without_room(rules: u32, has_room: impl Fn(u32) -> bool) -> u32 {
    let mut place = 0_u32;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 && !has_room(place) {
            return place;
        }
        place = place.wrapping_add(1);
    }
    MAX_RULES
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

/// Debits the pool of each rule in `rules` until one refuses. Which were debited is noted in `memory`:
/// in a register, Linux 6.1 would check what follows once for every set of rules.
#[inline(always)]
pub fn draw_each(rules: u32, memory: &impl Memory, step: impl Fn(u32) -> Step) -> Drawn {
    memory.set(0);
    let mut place = 0_u32;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 {
            match draw_one(place, &step) {
                Step::Nothing => {}
                Step::Debited => memory.set(memory.get() | 1 << place),
                Step::NoRoom => return Drawn::refused(memory.get(), Why::NoRoom, place),
                Step::Again => return Drawn::refused(memory.get(), Why::Changing, place),
            }
        }
        place = place.wrapping_add(1);
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

/// Calls `give_back` for each rule in `rules`.
#[inline(always)]
pub fn give_back_each(rules: u32, give_back: impl Fn(u32)) {
    let mut place = 0_u32;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 {
            give_back(place);
        }
        place = place.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests;
