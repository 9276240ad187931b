//! Parsing and classifying: from a frame to the few numbers that limiting needs. They go into this CPU's
//! notes: what the verifier knows of the many ways through the parser ends there, without a call.

use aya_ebpf::programs::XdpContext;
use limiter_common::key::{Family, Source};
use limiter_common::layout::{Meta, OnFault};
use limiter_common::packet::{Packet, Parsed};
use limiter_common::parse::parse;
use limiter_common::verdict::Exit;

use crate::classify::{self, Policy};
use crate::frame::XdpFrame;
use crate::maps::Notes;
use crate::stats;

/// In the notes instead of an exit: rules may apply, the packet is noted too.
pub const TO_JUDGE: u32 = 0xff;

/// The same, but [`FAULT`] decides first which fault it is: in the lowest bits.
const FAULT: u32 = 0x80;
/// With [`FAULT`]: no packet is noted.
const NO_PACKET: u32 = 0x40;

/// In the notes, a port that isn't there.
const NO_PORT: u32 = 1 << 16;

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

/// What the parser calls.
#[inline(always)]
pub fn note(notes: &Notes, parsed: Parsed) {
    let (found, packet) = match parsed {
        Parsed::Arp => (Exit::Arp as u32, None),
        Parsed::NotIp => (Exit::NotIp as u32, None),
        Parsed::NeighbourDiscovery => (Exit::NeighbourDiscovery as u32, None),
        Parsed::MulticastListener => (Exit::MulticastListener as u32, None),
        Parsed::Packet(packet) => (TO_JUDGE, Some(packet)),
        Parsed::Fault(fault, Some(packet)) => (FAULT | fault as u32, Some(packet)),
        Parsed::Fault(fault, None) => (FAULT | NO_PACKET | fault as u32, None),
    };
    if let Some(packet) = packet {
        note_packet(notes, &packet);
    }
    notes.found.set(found);
}

#[inline(always)]
fn note_packet(notes: &Notes, packet: &Packet) {
    let source = Source::of(packet.source);
    notes.source.set(source.bits());
    notes.family.set(source.family() as u32);
    notes.protocol.set(packet.protocol.index());
    notes.kind.set(packet.kind as u32);
    notes.port.set(match packet.destination_port {
        Some(port) => port as u32,
        None => NO_PORT,
    });
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
