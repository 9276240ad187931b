//! Amounts in quanta. A word has 22 bits for what was used; a rule over bytes counts in units of
//! 2^shift bytes when its limit needs more.

use crate::word::MAX_VALUE;

/// The largest shift for bytes: 64, the smallest Ethernet frame. Above it, the rounding up of small
/// frames would be worth more than the frames.
pub const MAX_BYTE_SHIFT: u32 = 6;

/// The unit a rule counts in: 2^shift packets or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantum(u32);

impl Quantum {
    /// Single packets, single bytes.
    pub const ONE: Self = Self(0);

    /// `None` above [`MAX_BYTE_SHIFT`].
    #[must_use]
    pub const fn from_shift(shift: u32) -> Option<Self> {
        if shift <= MAX_BYTE_SHIFT { Some(Self(shift)) } else { None }
    }

    /// The smallest quantum in which this many bytes fit a word; `None` if none does.
    #[must_use]
    pub const fn for_bytes(limit: u64) -> Option<Self> {
        let mut shift = 0;
        while shift <= MAX_BYTE_SHIFT {
            if limit >> shift <= MAX_VALUE as u64 {
                return Some(Self(shift));
            }
            #[expect(clippy::arithmetic_side_effects, reason = "at most 7")]
            {
                shift += 1;
            }
        }
        None
    }

    /// log2 of the unit.
    #[must_use]
    pub const fn shift(self) -> u32 {
        self.0
    }

    /// A limit in quanta, rounded down so that it is never exceeded; `None` if a word can't hold it.
    #[must_use]
    pub const fn floor(self, amount: u64) -> Option<u32> {
        let quanta = amount >> (self.0 & 63);
        if quanta > MAX_VALUE as u64 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most 22 bits, just checked")]
        Some(quanta as u32)
    }

    /// A cost in quanta, rounded up. Frames are shorter than 2^31 bytes.
    #[inline(always)]
    #[must_use]
    pub const fn ceil(shift: u32, amount: u32) -> u32 {
        let shift = shift & 31;
        let whole = amount >> shift;
        if whole << shift == amount { whole } else { whole.wrapping_add(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chooses_the_smallest_unit_that_fits() {
        assert_eq!(Quantum::for_bytes(4_194_302), Some(Quantum::ONE));
        assert_eq!(Quantum::for_bytes(4_194_304), Quantum::from_shift(1));
        assert_eq!(Quantum::for_bytes(50_000_000), Quantum::from_shift(4));
        assert_eq!(Quantum::for_bytes(268_435_391), Quantum::from_shift(6));
        assert_eq!(Quantum::for_bytes(u64::MAX), None);
    }

    #[test]
    fn a_limit_rounds_down_and_a_cost_rounds_up() {
        let sixteen = Quantum::from_shift(4).unwrap();
        assert_eq!(sixteen.floor(47), Some(2));
        assert_eq!(Quantum::ceil(4, 33), 3);
        assert_eq!(Quantum::ceil(4, 32), 2);
        assert_eq!(Quantum::ceil(0, 1500), 1500);
    }
}
