//! The generator of the end-to-end part: run by test-run on live frames, it gives each its source and
//! sends it out of an interface. Unlike `sources`, it keeps the checksum right, since a real host reads
//! these packets.

use aya_ebpf::bindings::xdp_action::XDP_ABORTED;
use aya_ebpf::helpers::generated::bpf_redirect;
use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;

use crate::{constant, sources};

/// Index of the interface that frames leave by.
#[unsafe(no_mangle)]
static GENERATE_TO: u32 = 0;

/// Bytes up to the end of an IPv4 header without options.
const HEADERS: usize = 14 + 20;

#[xdp(frags)]
pub fn generate(context: XdpContext) -> u32 {
    let start = context.data();
    if start + HEADERS > context.data_end() {
        return XDP_ABORTED;
    }
    let (checksum, source) = ((start + 24) as *mut u16, (start + 26) as *mut u32);
    let new = sources::next().to_be();
    // SAFETY: within the frame, as just compared.
    unsafe {
        let old = core::ptr::read_unaligned(source);
        let sum = core::ptr::read_unaligned(checksum);
        core::ptr::write_unaligned(checksum, replaced(sum, old, new));
        core::ptr::write_unaligned(source, new);
    }
    // SAFETY: the helper only notes where the frame goes.
    unsafe { bpf_redirect(constant::read(&GENERATE_TO), 0) as u32 }
}

/// The checksum once `old` in the header has become `new` (RFC 1624).
#[inline(always)]
fn replaced(checksum: u16, old: u32, new: u32) -> u16 {
    let sum = !checksum as u64 + !old as u64 + new as u64;
    // One's complement sums may be folded as wide as one likes: 32 bits first, then 16.
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}
