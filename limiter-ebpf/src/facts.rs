//! Parsing and classifying: from a frame to the few numbers that limiting needs. They go into this CPU's
//! notes: what the verifier knows of the many ways through the parser ends there, without a call.

use aya_ebpf::programs::XdpContext;
use limiter_common::judge::Notes;
use limiter_common::judge::facts::{FAULT, NO_PACKET, NO_PORT, TO_JUDGE};
use limiter_common::key::Family;
use limiter_common::layout::{Meta, OnFault};
use limiter_common::parse::parse;
use limiter_common::verdict::Exit;

use crate::classify::{self, Policy};
use crate::frame::XdpFrame;
use crate::stats;

/// Reads the frame, and notes how it leaves without being limited, or what is to be judged.
#[inline(always)]
pub fn find_out(context: &XdpContext, meta: &Meta, length: u32, notes: &Notes) -> u32 {
    let Some(policy) = Policy::active(meta) else {
        return Exit::NoPolicy as u32;
    };
    parse(&XdpFrame::new(context, notes));
    let found = notes.found.get();
    if found < FAULT {
        return found;
    }
    if found != TO_JUDGE
        && let Some(exit) = unreadable(&policy, found, length)
    {
        return exit as u32;
    }
    classified(&policy, notes)
}

/// Counts the fault. `None` if the rules shall judge what could be read.
#[inline(always)]
fn unreadable(policy: &Policy, found: u32, length: u32) -> Option<Exit> {
    stats::fault(found & 3, length);
    match policy.on_fault(found) {
        OnFault::Pass => Some(Exit::UnreadablePassed),
        OnFault::Drop => Some(Exit::UnreadableDropped),
        OnFault::Limit if found & NO_PACKET != 0 => Some(Exit::UnreadablePassed),
        OnFault::Limit => None,
    }
}

#[inline(always)]
fn classified(policy: &Policy, notes: &Notes) -> u32 {
    let port = notes.port.get();
    let port = if port < NO_PORT { Some(port as u16) } else { None };
    let class = classify::class(policy, notes.protocol.get(), notes.kind.get(), port);
    if class == 0 {
        return Exit::Unmatched as u32;
    }
    let family = if notes.family.get() == Family::V6 as u32 { Family::V6 } else { Family::V4 };
    notes.subject.set(policy.subject(class, family).0);
    TO_JUDGE
}
