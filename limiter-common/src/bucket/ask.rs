//! What is asked of a pool, and what the asker knows of it: whether a word still counts, whether the cost
//! fits, how warm the word becomes. Touches no bucket.

use crate::clock::{Tick, WindowLength};
use crate::key::Level;
use crate::word::{END_MASK, Fingerprint, Heat, MAX_VALUE, Word};

/// A later clock than ours is believed up to this many ticks (1 s), or one window if that is more.
const LATEST: u64 = 10;

/// A limit that never refuses: the key's use is counted and shown.
pub const UNLIMITED: u32 = u32::MAX;

/// What a look at a pool says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Room {
    /// Less than [`Ask::cost`] is left.
    None = 0,
    /// [`Ask::cost`] would be granted.
    Cost = 1,
    /// [`Ask::more`] would be.
    More = 2,
}

impl Room {
    /// The reverse of `as u32`.
    #[inline(always)]
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Cost,
            _ => Self::More,
        }
    }
}

/// What is asked of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Which key, within its bucket.
    pub fingerprint: Fingerprint,
    /// The time of this packet.
    pub now: Tick,
    /// The rule's window.
    pub window: WindowLength,
    /// The end of the window that holds `now`.
    pub end: Tick,
    /// Quanta per window, at most [`MAX_VALUE`], or [`UNLIMITED`].
    pub limit: u32,
    /// Quanta that must be had, or nothing is.
    pub cost: u32,
    /// Quanta that are taken instead where plenty is left: at least `cost`. See `Ask::amount`.
    pub more: u32,
    /// How plenty that is: `more` fits this often into what is left, as a power of two (8 × CPUs).
    pub share: u32,
    /// The longest life of any word under the present policy, in ticks: see [`life`].
    pub span: u32,
    /// From so much use on, the key's address is written down.
    pub known_from: u32,
    /// How warm the word is at least: see [`floor`].
    pub floor: Heat,
}

/// How warm a word of a level is from its first claim on. Who forges sources makes words of sources,
/// each for one packet: these must not push out what holds the flood as a whole. A rule's total is never
/// displaced, a prefix only once no source is as cold.
#[inline(always)]
#[must_use]
pub const fn floor(level: Level) -> Heat {
    match level {
        Level::Total => Heat::Hot,
        Level::Prefix => Heat::Warm,
        Level::Source => Heat::Cold,
    }
}

/// The longest that a word of a rule with this window can matter, in ticks: the window, and what a
/// CPU with a later clock may have put behind it.
#[must_use]
pub const fn life(window: WindowLength) -> u32 {
    let ticks = window.ticks();
    ticks.wrapping_add(if ticks > 10 { ticks } else { 10 })
}

impl Ask {
    /// Whether `word`, one of this key, still counts: it belongs to the window of `now`, or to a
    /// later one, which another CPU has begun already and which nobody reopens.
    #[inline(always)]
    pub(super) fn counts(&self, word: Word) -> bool {
        let later = word.end().wrapping_sub(self.end.low()) & END_MASK;
        if later == 0 {
            return true;
        }
        let length = u64::from(self.window.ticks());
        let latest = if length > LATEST { length } else { LATEST };
        later <= latest && later.checked_rem(length) == Some(0)
    }

    /// What a claim takes beside what was used: `more` only where so much is left that nobody feels it,
    /// else `cost`, else `None`.
    #[inline(always)]
    pub(super) fn amount(&self, used: u32) -> Option<u32> {
        let left = self.limit.saturating_sub(used);
        if left < self.cost {
            None
        } else if left >> (self.share & 31) >= self.more {
            Some(self.more)
        } else {
            Some(self.cost)
        }
    }

    /// The same as an answer to whoever only looks.
    #[inline(always)]
    pub(super) fn room(&self, used: u32) -> Room {
        match self.amount(used) {
            None => Room::None,
            Some(amount) if amount >= self.more => Room::More,
            Some(_) => Room::Cost,
        }
    }

    /// From the second claim on. Below half of the limit a word may still be displaced, but not by those
    /// who come once: else a source that begins under a flood loses its count time and again.
    #[inline(always)]
    pub(super) fn heat(&self, used: u32) -> Heat {
        let heat = if used >= self.limit.div_ceil(2) { Heat::Hot } else { Heat::Warm };
        warmer(heat, self.floor)
    }

    /// The word of a key whose window begins with a claim of so much. However much that is, it is as cold
    /// as its level allows: one packet must not make a slot hard to move.
    #[inline(always)]
    pub(super) fn first(&self, amount: u32) -> Word {
        Word::new(self.fingerprint, self.end, self.floor, self.capped(amount))
    }

    /// Only an unlimited pool can count further than a word.
    #[inline(always)]
    pub(super) fn capped(&self, used: u32) -> u32 {
        if used > MAX_VALUE { MAX_VALUE } else { used }
    }
}

#[inline(always)]
pub(super) fn warmer(one: Heat, other: Heat) -> Heat {
    if one > other { one } else { other }
}
