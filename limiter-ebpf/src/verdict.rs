//! The last stage, and the only one that names XDP's actions: bypass, action and exit count in one
//! place, so that no way out of the program goes around them.

use aya_ebpf::bindings::xdp_action;
use limiter_common::layout::Bypass;
use limiter_common::verdict::Exit;

use crate::stats;

#[inline(always)]
pub fn finish(exit: Exit, bypass: Bypass, length: u32) -> u32 {
    let exit = if exit.passes() {
        exit
    } else {
        match bypass {
            Bypass::Off => exit,
            Bypass::Shadow | Bypass::Pass => Exit::BypassShadow,
        }
    };
    stats::exit(exit, length);
    if exit.passes() { xdp_action::XDP_PASS } else { xdp_action::XDP_DROP }
}
