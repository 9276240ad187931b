//! Taking a packet's cost out of all pools that apply, coarse first, or out of none (promise A8): every
//! pool is read before any is claimed from, so that a refusal debits nobody; what a lost race has
//! claimed already goes back.

use crate::border::{Drawn, Space, Taken, Why};
use crate::bucket::{Room, TRIES};
use crate::key::Level;
use crate::layout::{MAX_RULES, RuleSet};
use crate::want::Want;

/// All pools of a packet, one for each rule and level.
pub trait Pools {
    /// What a level has room for; nothing is debited.
    fn look(&self, level: Level, want: Want) -> Space;

    /// Debits all pools of a level by the least that is wanted, or none. What prefixes and totals give goes
    /// onto this CPU's ticket for them.
    fn draw(&self, level: Level, want: Want) -> Drawn;

    /// Takes that off this CPU's tickets for prefix and total again.
    fn spend(&self, want: Want);
}

/// Debits every pool of the three levels, or none: for a chunk if all have plenty, else for one packet.
///
/// What was drawn for prefix and total before a lost race made the source refuse stays on this CPU's
/// tickets, for its next packet. Sources come last, so nothing has to be given back after them.
#[inline(always)]
pub fn take(pools: &impl Pools, want: Want) -> Taken {
    let (room, refused) = look(pools, want);
    if room == Room::None {
        return refused;
    }
    if room == Room::More && want.more() != want.least() {
        let taken = draw(pools, want.chunk());
        // Others were faster: there may still be enough for one.
        if taken.why() != Some(Why::NoRoom) {
            return if taken == Taken::ONE { Taken::CHUNK } else { taken };
        }
    }
    draw(pools, want.one())
}

/// The least room of all, and the refusal if there is none.
#[inline(always)]
fn look(pools: &impl Pools, want: Want) -> (Room, Taken) {
    let refused = |level, space: Space| (Room::None, Taken::refused(Why::NoRoom, level, space.place()));
    let total = pools.look(Level::Total, want);
    if total.room() == Room::None {
        return refused(Level::Total, total);
    }
    let prefix = pools.look(Level::Prefix, want);
    if prefix.room() == Room::None {
        return refused(Level::Prefix, prefix);
    }
    let source = pools.look(Level::Source, want);
    if source.room() == Room::None {
        return refused(Level::Source, source);
    }
    let all = [total, prefix, source].map(|space| space.room() == Room::More);
    (if all == [true; 3] { Room::More } else { Room::Cost }, Taken::ONE)
}

/// Only a lost race makes a pool refuse here.
#[inline(always)]
fn draw(pools: &impl Pools, want: Want) -> Taken {
    let total = pools.draw(Level::Total, want);
    if !total.complete() {
        return total.at(Level::Total);
    }
    let prefix = pools.draw(Level::Prefix, want);
    if !prefix.complete() {
        return prefix.at(Level::Prefix);
    }
    let source = pools.draw(Level::Source, want);
    if !source.complete() {
        return source.at(Level::Source);
    }
    pools.spend(want);
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
