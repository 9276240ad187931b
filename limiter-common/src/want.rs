//! What a packet asks of each pool it draws from: enough for itself, or a chunk for those like it that
//! will follow on the same CPU.

use crate::border::low;
use crate::layout::RuleEntry;
use crate::quantum::Quantum;

/// Packets that a chunk is for, at most.
pub const MAX_CHUNK: u32 = 64;

/// Bytes that can be asked for: far more than [`MAX_CHUNK`] of the largest frames.
const MAX_BYTES: u32 = (1 << 24) - 1;

/// Amounts in packets (for rules that count packets) and in bytes (for those that count bytes), packed
/// into one number for the way between the kernel's functions. Zero where the ticket has enough left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want(pub u64);

impl Want {
    /// What this packet lacks, and what a chunk lacks: packets below 256, bytes below 2^24.
    #[inline(always)]
    #[must_use]
    pub const fn new(one: (u32, u32), chunk: (u32, u32)) -> Self {
        Self(
            cap(one.1) as u64
                | (cap(chunk.1) as u64) << 24
                | (one.0 as u64 & 0xff) << 48
                | (chunk.0 as u64 & 0xff) << 56,
        )
    }

    /// The same with the chunk as what must be had.
    #[inline(always)]
    #[must_use]
    pub const fn chunk(self) -> Self {
        Self::new(self.more(), self.more())
    }

    /// The same without the chunk.
    #[inline(always)]
    #[must_use]
    pub const fn one(self) -> Self {
        Self::new(self.least(), self.least())
    }

    /// Packets and bytes that this packet lacks.
    #[inline(always)]
    #[must_use]
    pub const fn least(self) -> (u32, u32) {
        (low(self.0 >> 48) & 0xff, low(self.0) & MAX_BYTES)
    }

    /// Packets and bytes that a chunk lacks.
    #[inline(always)]
    #[must_use]
    pub const fn more(self) -> (u32, u32) {
        (low(self.0 >> 56), low(self.0 >> 24) & MAX_BYTES)
    }

    /// Bytes rounded up to the quantum that a rule charges in.
    #[inline(always)]
    #[must_use]
    pub const fn round(bytes: u32, shift: u32) -> u32 {
        Quantum::ceil(shift, bytes) << (shift & 31)
    }

    /// What a rule charges for the packet, and for the chunk, in its quanta.
    #[inline(always)]
    #[must_use]
    pub const fn costs(self, rule: &RuleEntry) -> (u32, u32) {
        (rule.cost(self.least()), rule.cost(self.more()))
    }
}

#[inline(always)]
const fn cap(bytes: u32) -> u32 {
    if bytes > MAX_BYTES { MAX_BYTES } else { bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::WindowLength;
    use crate::layout::Unit;
    use crate::quantum::MAX_BYTE_SHIFT;

    #[test]
    fn amounts_come_back() {
        let want = Want::new((1, 1_514), (64, 96_896));
        assert_eq!((want.least(), want.more()), ((1, 1_514), (64, 96_896)));
        assert_eq!(want.one(), Want::new((1, 1_514), (1, 1_514)));
        assert_eq!(want.chunk(), Want::new((64, 96_896), (64, 96_896)));
        assert_eq!(Want::new((1, u32::MAX), (1, u32::MAX)).least(), (1, MAX_BYTES));
    }

    #[test]
    fn a_rule_charges_packets_or_whole_quanta_of_bytes() {
        let rule = |unit| RuleEntry::new(1, 0, WindowLength::MIN, unit, 0);
        let bytes = |shift| rule(Unit::Bytes(Quantum::from_shift(shift).unwrap()));
        let want = Want::new((1, 1_514), (10, 15_140));
        assert_eq!(want.costs(&rule(Unit::Packets)), (1, 10));
        assert_eq!(want.costs(&bytes(0)), (1_514, 15_140));
        assert_eq!(want.costs(&bytes(4)), (95, 947));
        // A ticket that has bytes left lacks packets alone, and the other way round.
        assert_eq!(Want::new((1, 0), (1, 0)).costs(&bytes(4)), (0, 0));
        assert_eq!(Want::new((0, 1), (0, 1)).costs(&rule(Unit::Packets)), (0, 0));
    }

    #[test]
    fn bytes_are_rounded_up_to_the_quantum_and_never_twice() {
        for shift in 0..=MAX_BYTE_SHIFT {
            for bytes in [0, 1, 63, 64, 65, 1_514, 96_896] {
                let rounded = Want::round(bytes, shift);
                assert!(rounded >= bytes && rounded - bytes < 1 << shift, "{bytes} by {shift}");
                assert_eq!(Want::round(rounded, shift), rounded);
            }
        }
    }
}
