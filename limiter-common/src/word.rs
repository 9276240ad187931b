//! One key's state in one 64-bit word, so that one compare-and-swap changes identity and state
//! together:
//!
//! ```text
//! 63            42 41          24 23  22 21             0
//! | fingerprint   | end          | heat | value         |
//! ```
//!
//! The word 0 is an empty slot.

use crate::clock::Tick;

const VALUE_BITS: u32 = 22;
const HEAT_SHIFT: u32 = 22;
const END_SHIFT: u32 = 24;
const FINGERPRINT_SHIFT: u32 = 42;
const FINGERPRINT_MASK: u64 = (1 << 22) - 1;

/// Bits of `end`: ticks modulo 2^18.
pub const END_MASK: u64 = (1 << 18) - 1;

/// Never a legal value: the slot is being filled by some CPU at this moment.
pub const RESERVED: u32 = (1 << VALUE_BITS) - 1;

/// The largest amount a word can hold, in quanta.
pub const MAX_VALUE: u32 = RESERVED - 1;

/// Tells the keys of a bucket apart: 1 … 2^22 − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// From the low 22 bits; 0 counts as 1.
    #[inline(always)]
    #[must_use]
    pub const fn new(bits: u64) -> Self {
        let bits = bits & FINGERPRINT_MASK;
        Self(if bits == 0 { 1 } else { bits })
    }

    /// 1 … 2^22 − 1.
    #[inline(always)]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// How much a slot is worth keeping when its bucket is full. Set by the claimer, who knows the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Heat {
    /// Claimed once: forged sources are all of this kind.
    Cold = 0,
    /// From the second claim on; a prefix from its first.
    Warm = 1,
    /// From half; a total from its first claim on.
    Hot = 2,
    /// Refused because the limit was reached.
    Spent = 3,
}

/// One slot's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// A free slot that was never used, or was cleared.
    pub const EMPTY: Self = Self(0);

    /// Packs the fields; `value` is at most [`RESERVED`].
    #[inline(always)]
    #[must_use]
    pub const fn new(fingerprint: Fingerprint, end: Tick, heat: Heat, value: u32) -> Self {
        Self(
            fingerprint.0 << FINGERPRINT_SHIFT
                | end.low() << END_SHIFT
                | (heat as u64) << HEAT_SHIFT
                | value as u64,
        )
    }

    /// Whether this is some word of the key with that fingerprint, alive or dead.
    #[inline(always)]
    #[must_use]
    pub const fn belongs_to(self, fingerprint: Fingerprint) -> bool {
        self.0 >> FINGERPRINT_SHIFT == fingerprint.0
    }

    /// The end's low 18 bits.
    #[inline(always)]
    #[must_use]
    pub const fn end(self) -> u64 {
        self.0 >> END_SHIFT & END_MASK
    }

    /// Ticks from `now` to the end, modulo 2^18: small while the word lives, 0 in the tick after,
    /// large once it is dead.
    #[inline(always)]
    #[must_use]
    pub const fn ticks_left(self, now: Tick) -> u64 {
        (self.0 >> END_SHIFT).wrapping_sub(now.0) & END_MASK
    }

    /// What was used, in quanta, or [`RESERVED`].
    #[inline(always)]
    #[must_use]
    pub const fn value(self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "22 bits are left")]
        let value = (self.0 & RESERVED as u64) as u32;
        value
    }

    /// How warm the slot is.
    #[inline(always)]
    #[must_use]
    pub const fn heat(self) -> Heat {
        match self.0 >> HEAT_SHIFT & 3 {
            0 => Heat::Cold,
            1 => Heat::Warm,
            2 => Heat::Hot,
            _ => Heat::Spent,
        }
    }

    /// The same key and window with another value and heat.
    #[inline(always)]
    #[must_use]
    pub const fn with(self, heat: Heat, value: u32) -> Self {
        const KEPT: u64 = !((1 << END_SHIFT) - 1);
        Self(self.0 & KEPT | (heat as u64) << HEAT_SHIFT | value as u64)
    }

    /// Whether other keys must leave this slot alone for its age: it lives, or its window ended
    /// less than a tick ago (a CPU that is a tick late would reopen the old window elsewhere).
    /// `span` is the longest life, in ticks, that the policy can give.
    #[inline(always)]
    #[must_use]
    pub const fn occupied(self, now: Tick, span: u32) -> bool {
        self.0 != 0 && self.ticks_left(now) <= span as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let word = Word::new(Fingerprint::new(0x2a_aaaa), Tick(0x7_1234), Heat::Hot, 77);
        assert!(word.belongs_to(Fingerprint::new(0x2a_aaaa)));
        assert_eq!(word.end(), 0x3_1234);
        assert_eq!((word.heat(), word.value()), (Heat::Hot, 77));
        assert_eq!(word.with(Heat::Spent, 78).end(), word.end());
        assert_eq!(word.with(Heat::Spent, 78).value(), 78);
    }

    #[test]
    fn no_key_looks_like_an_empty_slot() {
        assert_ne!(Word::new(Fingerprint::new(0), Tick(0), Heat::Cold, 0), Word::EMPTY);
    }

    #[test]
    fn a_word_is_free_for_others_one_tick_after_its_end_also_across_the_wrap() {
        for end in [100, END_MASK, END_MASK + 1, END_MASK + 2] {
            let word = Word::new(Fingerprint::new(9), Tick(end), Heat::Cold, 1);
            assert!(word.occupied(Tick(end - 1), 100));
            assert!(word.occupied(Tick(end), 100));
            assert!(!word.occupied(Tick(end + 1), 100));
        }
    }
}
