//! From a frame's bytes to what rules ask for: Ethernet, VLAN tags, IPv4 or IPv6, and the first
//! bytes of the transport header.
//!
//! This runs in the kernel too. Linux 6.1 refuses loops of the shape that a walk over headers
//! compiles to, so walks are written as repeated calls of one inlined step. No step may be able to
//! panic, and every byte is read through [`Frame::read`].

mod ethernet;
mod icmpv6;
mod ipv4;
mod ipv6;
mod transport;

#[cfg(test)]
mod tests;

use network_types::eth::{EthHdr, EtherType};
use network_types::ip::Ipv6Hdr;
use network_types::vlan::VlanHdr;

use crate::frame::{Frame, MAX_OFFSET};
use crate::packet::Parsed;

/// VLAN tags that are read through; a frame with more is [`crate::packet::Fault::VlanDepth`].
pub const MAX_VLAN_TAGS: usize = 4;

/// IPv6 extension headers that are read through, the fragment header among them; a packet with more
/// is [`crate::packet::Fault::HeaderDepth`].
pub const MAX_EXTENSION_HEADERS: usize = 6;

/// An extension header at its longest: length byte 255, in units of 8 bytes after the first 8.
const LONGEST_EXTENSION_HEADER: usize = 256 * 8;

const _: () = assert!(
    EthHdr::LEN
        + MAX_VLAN_TAGS * VlanHdr::LEN
        + Ipv6Hdr::LEN
        + MAX_EXTENSION_HEADERS * LONGEST_EXTENSION_HEADER
        <= MAX_OFFSET
);

/// Reads the headers of a frame.
///
/// The frame's own end bounds every read. The length field of IPv4 or IPv6 bounds the transport
/// header as well (0 means "not told", as in jumbograms), so that the padding of a short frame is
/// never taken for ports or flags. Lengths, checksums and options are not judged otherwise: the
/// receiving host does that.
#[inline(always)]
pub fn parse<F: Frame + ?Sized>(frame: &F) -> F::Report {
    let (ether_type, offset) = match ethernet::parse(frame) {
        Ok(payload) => (payload.ether_type, frame.forget(payload.offset)),
        Err(fault) => return frame.report(Parsed::Fault(fault, None)),
    };
    if ether_type == EtherType::Ipv4 as u16 {
        ipv4::parse(frame, offset)
    } else if ether_type == EtherType::Ipv6 as u16 {
        ipv6::parse(frame, offset)
    } else if ether_type == EtherType::Arp as u16 {
        frame.report(Parsed::Arp)
    } else {
        frame.report(Parsed::NotIp)
    }
}
