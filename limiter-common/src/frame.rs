//! The one way the parser sees bytes. The kernel implements it over packet pointers, everything
//! else over slices.

/// The bytes of a received frame, from the Ethernet destination address on.
pub trait Frame {
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
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        self.get(offset..)?.first_chunk::<N>().copied()
    }
}
