//! The last stage, and the only one that names XDP's actions: bypass, action and exit count in one
//! place, so that no way out of the program goes around them.

use aya_ebpf::bindings::xdp_action;
use limiter_common::judge::Notes;
use limiter_common::layout::Bypass;
use limiter_common::verdict::Exit;

use crate::stats;

/// The exit under the operator's bypass.
#[inline(always)]
pub fn bypassed(exit: Exit, notes: &Notes) -> Exit {
    if exit.passes() {
        return exit;
    }
    match Bypass::from_number(notes.bypass.get()) {
        Bypass::Off => exit,
        Bypass::Shadow | Bypass::Pass => Exit::BypassShadow,
    }
}

/// Counts the exit and says it to the kernel.
#[inline(always)]
pub fn finish(exit: Exit, length: u32) -> u32 {
    stats::exit(exit, length);
    if exit.passes() { xdp_action::XDP_PASS } else { xdp_action::XDP_DROP }
}
