//! Entry point: runs the stages for one frame.

use aya_ebpf::{macros::xdp, programs::XdpContext};
use limiter_common::judge::facts::TO_JUDGE;
use limiter_common::judge::{Maps, Notes};
use limiter_common::layout::{Bypass, Meta};
use limiter_common::verdict::Exit;

use crate::limit::limit;
use crate::maps::Kernel;
use crate::{clock, facts, frame, maps, trace, verdict};

/// `frags`: interfaces with an MTU above a page hand over frames in several buffers; headers lie in
/// the first.
#[xdp(frags)]
pub fn limiter(context: XdpContext) -> u32 {
    let length = frame::length(&context);
    let bypass = maps::bypass();
    let exit = match (Kernel.meta(), Kernel.notes()) {
        _ if bypass == Bypass::Pass as u32 => Exit::BypassPass,
        (Some(meta), Some(notes)) => {
            notes.bypass.set(bypass);
            verdict::bypassed(decide(&context, meta, notes, length), notes)
        }
        _ => Exit::NoPolicy,
    };
    verdict::finish(exit, length)
}

#[inline(always)]
fn decide(context: &XdpContext, meta: &Meta, notes: &Notes, length: u32) -> Exit {
    let exit = facts::find_out(context, meta, length, notes);
    if exit != TO_JUDGE {
        return Exit::from_number(exit);
    }
    let exit = limit(meta.seed(), notes, clock::now(meta), length);
    if !exit.passes() {
        trace::refused(context, notes.source.get(), length);
    }
    exit
}

/// Never runs: every operation of the program is one that can't panic. A reachable panic would be
/// refused by the verifier (a function that ends in a call).
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// The kernel asks for it before it lends GPL-only helpers.
#[unsafe(no_mangle)]
#[unsafe(link_section = "license")]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";
