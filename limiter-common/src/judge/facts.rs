//! The parser's outcome, as numbers in a CPU's notes.

use super::Notes;
use crate::key::Source;
use crate::packet::{Packet, Parsed};
use crate::verdict::Exit;

/// In the notes instead of an exit: rules may apply, the packet is noted too.
pub const TO_JUDGE: u32 = 0xff;

/// The same, but [`FAULT`] decides first which fault it is: in the lowest bits.
pub const FAULT: u32 = 0x80;
/// With [`FAULT`]: no packet is noted.
pub const NO_PACKET: u32 = 0x40;

/// In the notes, a port that isn't there.
pub const NO_PORT: u32 = 1 << 16;

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
