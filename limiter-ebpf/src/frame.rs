//! All packet pointers: the parser's view of a frame in the kernel.

use aya_ebpf::helpers::generated::bpf_xdp_get_buff_len;
use aya_ebpf::programs::XdpContext;
use limiter_common::frame::{Frame, MAX_OFFSET};
use limiter_common::judge::{Notes, facts};
use limiter_common::packet::Parsed;

/// Bytes of the whole frame, Ethernet header included, in however many buffers it came.
#[inline(always)]
pub fn length(context: &XdpContext) -> u32 {
    // SAFETY: the context is the one the kernel called the program with.
    unsafe { bpf_xdp_get_buff_len(context.ctx) as u32 }
}

/// The first buffer of a frame, which holds all headers.
pub struct XdpFrame<'a> {
    start: usize,
    end: usize,
    notes: &'a Notes,
}

impl<'a> XdpFrame<'a> {
    #[inline(always)]
    pub fn new(context: &XdpContext, notes: &'a Notes) -> Self {
        Self { start: context.data(), end: context.data_end(), notes }
    }
}

impl Frame for XdpFrame<'_> {
    type Report = ();

    #[inline(always)]
    fn report(&self, parsed: Parsed) {
        facts::note(self.notes, parsed);
    }

    #[inline(always)]
    fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        // The verifier needs a constant bound on what is added to a packet pointer. The parser never
        // reads beyond it, so the mask changes nothing; a comparison would be as good, but makes the
        // verifier follow each of the ways to come to an offset.
        let from = self.start + (offset & MAX_OFFSET);
        if from + N > self.end {
            return None;
        }
        // SAFETY: `from … from + N` lies between the frame's start and end, as just compared; the
        // verifier proves it again. Any bytes are a valid array of bytes.
        Some(unsafe { core::ptr::read_unaligned(from as *const [u8; N]) })
    }

    #[inline(always)]
    fn forget(&self, offset: usize) -> usize {
        self.notes.forget(offset as u64) as usize & MAX_OFFSET
    }
}
