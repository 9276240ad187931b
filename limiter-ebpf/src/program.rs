//! Entry point: runs the stages for one frame.

use aya_ebpf::{macros::xdp, programs::XdpContext};
use limiter_common::key::Source;
use limiter_common::layout::{Bypass, OnFault};
use limiter_common::packet::{Packet, Parsed};
use limiter_common::parse::parse;
use limiter_common::verdict::{Exit, Judgement};

use crate::classify::{self, Policy};
use crate::frame::XdpFrame;
use crate::limit::limit;
use crate::{clock, maps, stats, verdict};

/// `frags`: interfaces with an MTU above a page hand over frames in several buffers; headers lie in
/// the first.
#[xdp(frags)]
pub fn limiter(context: XdpContext) -> u32 {
    let frame = XdpFrame::new(&context);
    let bypass = maps::bypass();
    let exit = match bypass {
        Bypass::Pass => Exit::BypassPass,
        Bypass::Off | Bypass::Shadow => decide(&frame),
    };
    verdict::finish(exit, bypass, frame.length())
}

#[inline(always)]
fn decide(frame: &XdpFrame) -> Exit {
    let (fault, packet) = match parse(frame) {
        Parsed::Arp => return Exit::Arp,
        Parsed::NotIp => return Exit::NotIp,
        Parsed::NeighbourDiscovery => return Exit::NeighbourDiscovery,
        Parsed::MulticastListener => return Exit::MulticastListener,
        Parsed::Packet(packet) => (None, Some(packet)),
        Parsed::Fault(fault, packet) => (Some(fault), packet),
    };
    let Some(policy) = Policy::active() else {
        return Exit::NoPolicy;
    };
    if let Some(fault) = fault {
        stats::fault(fault, frame.length());
        match policy.on_fault(fault) {
            OnFault::Pass => return Exit::UnreadablePassed,
            OnFault::Drop => return Exit::UnreadableDropped,
            OnFault::Limit => {}
        }
    }
    match packet {
        Some(packet) => judge(&policy, &packet, frame.length()),
        None => Exit::UnreadablePassed,
    }
}

#[inline(always)]
fn judge(policy: &Policy, packet: &Packet, length: u32) -> Exit {
    let class = classify::class(policy, packet);
    if class == 0 {
        return Exit::Unmatched;
    }
    let source = Source::of(packet.source);
    let what = classify::pack(policy, class, source.family());
    match Judgement::unpack(limit(source.bits(), what, clock::now(), length)) {
        Judgement::Unmatched => Exit::Unmatched,
        Judgement::Admitted => Exit::Admitted,
        Judgement::Refused(_) => Exit::Refused,
        Judgement::Contended => Exit::Contended,
        Judgement::NoPolicy => Exit::NoPolicy,
    }
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
