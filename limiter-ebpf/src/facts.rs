//! Parsing and classifying: from a frame to the few numbers that limiting needs. A function of its
//! own for the verifier: what it knows of the many ways through the parser ends here.

use aya_ebpf::bindings::xdp_md;
use aya_ebpf::programs::XdpContext;
use limiter_common::key::Source;
use limiter_common::layout::OnFault;
use limiter_common::packet::{Fault, Packet, Parsed};
use limiter_common::parse::parse;
use limiter_common::verdict::Exit;

use crate::classify::{self, Policy};
use crate::frame::XdpFrame;
use crate::stats;

/// The source's bits, and a packed [`limiter_common::border::Subject`].
#[repr(C)]
pub struct Facts {
    pub source: u64,
    pub subject: u64,
}

impl Facts {
    pub const NONE: Self = Self { source: 0, subject: 0 };
}

/// What [`find_out`] answers if rules apply and `facts` are filled in; else it is an [`Exit`].
pub const TO_JUDGE: u32 = 0xff;

/// Reads the frame. Answers [`TO_JUDGE`], or how the frame leaves without being limited.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn find_out(context: *mut xdp_md, length: u32, facts: *mut Facts) -> u32 {
    let frame = XdpFrame::new(&XdpContext::new(context));
    let Some(policy) = Policy::active() else {
        return Exit::NoPolicy as u32;
    };
    let packet = match parse(&frame) {
        Parsed::Arp => return Exit::Arp as u32,
        Parsed::NotIp => return Exit::NotIp as u32,
        Parsed::NeighbourDiscovery => return Exit::NeighbourDiscovery as u32,
        Parsed::MulticastListener => return Exit::MulticastListener as u32,
        Parsed::Packet(packet) => packet,
        Parsed::Fault(fault, packet) => match (unreadable(&policy, fault, length), packet) {
            (Some(exit), _) => return exit as u32,
            (None, Some(packet)) => packet,
            (None, None) => return Exit::UnreadablePassed as u32,
        },
    };
    classified(&policy, &packet, facts)
}

/// Counts the fault. `None` if the rules shall judge what could be read.
#[inline(always)]
fn unreadable(policy: &Policy, fault: Fault, length: u32) -> Option<Exit> {
    stats::fault(fault, length);
    match policy.on_fault(fault) {
        OnFault::Pass => Some(Exit::UnreadablePassed),
        OnFault::Drop => Some(Exit::UnreadableDropped),
        OnFault::Limit => None,
    }
}

#[inline(always)]
fn classified(policy: &Policy, packet: &Packet, facts: *mut Facts) -> u32 {
    let class = classify::class(policy, packet);
    if class == 0 || facts.is_null() {
        return Exit::Unmatched as u32;
    }
    let source = Source::of(packet.source);
    let found = Facts { source: source.bits(), subject: policy.subject(class, source.family()).0 };
    // SAFETY: not null, as just seen, and the caller's own; the verifier checks it as memory of this
    // size.
    unsafe { facts.write(found) };
    TO_JUDGE
}
