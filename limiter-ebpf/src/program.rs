//! Entry point: runs the stages for one frame.

use aya_ebpf::{macros::xdp, programs::XdpContext};
use limiter_common::layout::{Bypass, MAX_RULES};
use limiter_common::verdict::Exit;

use crate::facts::{self, Facts};
use crate::limit::{IN_SHADOW, limit, shadow};
use crate::{clock, frame, maps, trace, verdict};

/// `frags`: interfaces with an MTU above a page hand over frames in several buffers; headers lie in
/// the first.
#[xdp(frags)]
pub fn limiter(context: XdpContext) -> u32 {
    let length = frame::length(&context);
    let bypass = maps::bypass();
    let exit = match bypass {
        Bypass::Pass => Exit::BypassPass,
        Bypass::Off | Bypass::Shadow => decide(&context, length),
    };
    verdict::finish(exit, bypass, length)
}

#[inline(always)]
fn decide(context: &XdpContext, length: u32) -> Exit {
    let mut facts = Facts::NONE;
    let exit = facts::find_out(context.ctx, length, &raw mut facts);
    if exit != facts::TO_JUDGE {
        return Exit::from_number(exit);
    }
    let now = clock::now();
    let answer = limit(facts.source, facts.subject, now, length);
    let mut i = 0;
    while answer & IN_SHADOW != 0 && i < MAX_RULES {
        i = if shadow(facts.source, facts.subject, now, length, i) != 0 {
            i + 1
        } else {
            MAX_RULES
        };
    }
    let exit = Exit::from_number(answer & !IN_SHADOW);
    if !exit.passes() {
        trace::refused(context, facts.source, length);
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
