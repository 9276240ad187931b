//! Gives each packet another source, then hands it to the program under test. So programs meet a
//! million sources without a generator, and without knowing it. Everything measured with such sources
//! goes through here, and `wrapper` tells what this alone costs.

use aya_ebpf::bindings::xdp_action::XDP_ABORTED;
use aya_ebpf::helpers::generated::bpf_get_prandom_u32;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{PerCpuArray, ProgramArray};
use aya_ebpf::programs::XdpContext;

use crate::constant;

/// The program under test.
#[map]
static TARGET: ProgramArray = ProgramArray::with_max_entries(1, 0);
/// The packets of each CPU so far.
#[map]
static SENT: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// Sources are `SOURCE_BASE | (number & SOURCE_MASK)`.
#[unsafe(no_mangle)]
static SOURCE_BASE: u32 = 0;
#[unsafe(no_mangle)]
static SOURCE_MASK: u32 = 0;
/// 1: the number is random. 0: each number comes once before any comes again.
#[unsafe(no_mangle)]
static SOURCE_RANDOM: u32 = 1;

/// Odd, so that multiplying by it is a bijection; large, so that neighbours land far apart.
const SPREAD: u32 = 0x9e37_79b1;

/// Bytes up to the end of an IPv4 source address.
const SOURCE_END: usize = 14 + 16;

/// Rewrites the source of an IPv4 frame without VLAN tags and runs [`TARGET`]. The checksum is left:
/// nobody who is measured looks at it.
#[xdp(frags)]
pub fn sources(context: XdpContext) -> u32 {
    let start = context.data();
    if start + SOURCE_END > context.data_end() {
        return XDP_ABORTED;
    }
    let source = next();
    // SAFETY: within the frame, as just compared.
    unsafe { core::ptr::write_unaligned((start + 26) as *mut u32, source.to_be()) };
    // SAFETY: the map holds programs of this kind; a missing one lets us go on.
    unsafe { TARGET.tail_call(&context, 0) };
    XDP_ABORTED
}

#[inline(always)]
pub fn next() -> u32 {
    let number = if constant::read(&SOURCE_RANDOM) == 1 {
        // SAFETY: the helper takes nothing and touches nothing.
        unsafe { bpf_get_prandom_u32() }
    } else {
        count().wrapping_mul(SPREAD)
    };
    constant::read(&SOURCE_BASE) | (number & constant::read(&SOURCE_MASK))
}

#[inline(always)]
fn count() -> u32 {
    let Some(sent) = SENT.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: this CPU's own value.
    unsafe {
        *sent = (*sent).wrapping_add(1);
        *sent
    }
}
