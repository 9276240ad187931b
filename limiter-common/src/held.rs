//! What a CPU holds of a prefix's or a total's pool, to fill its tickets from: else a flood of new sources
//! would have all CPUs fight over one word. Belongs to one CPU, so nothing here is atomic; tokens that go
//! stale are lost, none is ever spent twice.

use crate::bucket::{Room, life};
use crate::clock::{Tick, WindowLength};
use crate::want::MAX_CHUNK;

/// What is claimed ahead is at most this part of what was drawn here in the window.
const DRAWN_PER_TOKEN: u32 = 100;

/// One entry of map `HELD`; all zeros: nothing is held.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// [`Pool::name`].
    name: u64,
    generation: u32,
    /// The window's end: the lower half of a [`Tick`].
    end: u32,
    /// Quanta.
    left: u32,
    /// Quanta that were taken from here in this window.
    drawn: u32,
    /// 1: the pool has nothing left in this window.
    spent: u32,
    reserved: u32,
}

/// Which pool, and when.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// 64 bits that tell a rule's pool for a key from others.
    pub name: u64,
    /// Number of the policy: with each new one, nothing is held.
    pub generation: u32,
    /// Now.
    pub now: Tick,
    /// The rule's window.
    pub window: WindowLength,
}

impl Held {
    /// Whether this is that pool's, in this window.
    #[inline(always)]
    #[must_use]
    pub fn is_of(&self, pool: &Pool) -> bool {
        let left = self.end.wrapping_sub(low(pool.now)).wrapping_sub(1);
        self.name == pool.name && self.generation == pool.generation && left < life(pool.window)
    }

    /// Makes it that pool's, holding nothing yet.
    #[inline(always)]
    pub fn begin(&mut self, pool: &Pool) {
        // Field by field: a whole value would be a call of `memset` in the kernel.
        (self.name, self.generation) = (pool.name, pool.generation);
        self.end = low(pool.window.end_of(pool.now));
        (self.left, self.drawn, self.spent) = (0, 0, 0);
    }

    /// What is lacking for these costs: what to ask the pool for.
    #[inline(always)]
    #[must_use]
    pub fn lacks(&self, (cost, more): (u32, u32)) -> (u32, u32) {
        (cost.saturating_sub(self.left), more.saturating_sub(self.left))
    }

    /// What is known without asking the pool; `None` if it must be asked.
    #[inline(always)]
    #[must_use]
    pub fn room(&self, (_, more): (u32, u32)) -> Option<Room> {
        if self.spent != 0 {
            Some(Room::None)
        } else if self.left >= more {
            Some(Room::More)
        } else {
            None
        }
    }

    /// What to claim from the pool for this cost, at least and at best. `None`: nothing, enough is here.
    #[inline(always)]
    #[must_use]
    pub fn claim(&self, cost: u32) -> Option<(u32, u32)> {
        let (lack, _) = self.lacks((cost, cost));
        if lack == 0 {
            return None;
        }
        let (ahead, most) = (self.drawn / DRAWN_PER_TOKEN, cost.saturating_mul(MAX_CHUNK));
        Some((lack, lack.saturating_add(if ahead < most { ahead } else { most })))
    }

    /// Adds what was claimed, and takes the cost.
    #[inline(always)]
    pub fn take(&mut self, claimed: u32, cost: u32) {
        self.left = self.left.saturating_add(claimed).saturating_sub(cost);
        self.drawn = self.drawn.saturating_add(cost);
    }

    /// Undoes [`Held::take`].
    #[inline(always)]
    pub fn give_back(&mut self, cost: u32) {
        self.left = self.left.saturating_add(cost);
        self.drawn = self.drawn.saturating_sub(cost);
    }

    /// Notes that the pool has nothing left in this window.
    #[inline(always)]
    pub fn set_spent(&mut self) {
        self.spent = 1;
    }
}

#[inline(always)]
const fn low(tick: Tick) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "it comes round after 13 years")]
    let low = tick.0 as u32;
    low
}

const _: () = assert!(size_of::<Held>() == 32);

#[cfg(test)]
mod tests;
