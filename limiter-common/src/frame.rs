//! The one way the parser sees bytes, and says what it saw. The kernel implements it over packet pointers,
//! everything else over slices.

use crate::packet::Parsed;

/// The bytes of a received frame, from the Ethernet destination address on.
pub trait Frame {
    /// What [`Frame::report`] makes of the outcome.
    type Report;

    /// Called once per frame, with the outcome, where it is known. (A value that is handed up through the
    /// parser has fields that mean nothing for some outcomes, and the kernel's verifier refuses a copy of
    /// such a field.)
    fn report(&self, parsed: Parsed) -> Self::Report;

    /// Reads `N` bytes at `offset`, or `None` if the frame ends before that.
    ///
    /// An implementation may refuse offsets above [`MAX_OFFSET`]; the parser never needs more.
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]>;

    /// The same offset. The kernel's verifier forgets here how it was come by: without that, it would
    /// check all that follows once for every number of tags.
    #[inline(always)]
    fn forget(&self, offset: usize) -> usize {
        offset
    }
}

/// The largest offset the parser reads at: Ethernet, four tags, IPv6 and six extension headers of
/// 2,048 bytes each stay below it. The kernel's verifier needs such a bound.
pub const MAX_OFFSET: usize = 0x3fff;

impl Frame for [u8] {
    type Report = Parsed;

    fn report(&self, parsed: Parsed) -> Parsed {
        parsed
    }

    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.get(offset..)?.first_chunk::<N>().copied()
    }
}
