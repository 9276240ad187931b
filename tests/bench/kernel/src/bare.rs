//! The lower bounds: a program that drops, and the least that can be called parsing.

use aya_ebpf::bindings::xdp_action::{XDP_DROP, XDP_PASS};
use aya_ebpf::helpers::generated::bpf_ktime_get_coarse_ns;
use aya_ebpf::macros::xdp;
use aya_ebpf::programs::XdpContext;

/// Looks at nothing.
#[xdp(frags)]
pub fn bare(_: XdpContext) -> u32 {
    XDP_DROP
}

/// Bytes up to the end of an IPv4 header without options.
const HEADERS: usize = 14 + 20;

/// Ethernet and IPv4 within bounds, a source, the coarse clock, drop.
#[xdp(frags)]
pub fn ref_parse_drop(context: XdpContext) -> u32 {
    let (start, end) = (context.data(), context.data_end());
    if start + HEADERS > end {
        return XDP_PASS;
    }
    // SAFETY: within the frame, as just compared.
    let (kind, version, source) = unsafe {
        (
            core::ptr::read_unaligned((start + 12) as *const u16),
            core::ptr::read((start + 14) as *const u8),
            core::ptr::read_unaligned((start + 26) as *const u32),
        )
    };
    if kind != 0x0800_u16.to_be() || version != 0x45 {
        return XDP_PASS;
    }
    // SAFETY: the helper takes nothing and touches nothing.
    let now = unsafe { bpf_ktime_get_coarse_ns() };
    // Both numbers decide, so that neither is optimised away.
    if now.wrapping_add(source as u64) == 7 { XDP_PASS } else { XDP_DROP }
}
