//! IPv6 (RFC 8200): source and the bounded walk over extension headers.
//!
//! Only what IANA lists as an extension header is walked through. An unknown next header is the
//! packet's protocol, whatever its bytes look like; so are ESP and "no next header".

use network_types::ip::{IpProto, Ipv6Hdr};

use super::icmpv6;
use super::transport::{self, Payload};
use crate::frame::Frame;
use crate::packet::{Address, Fault, Kind, Packet, Parsed, Protocol};

const HOP_BY_HOP: Protocol = Protocol::new(IpProto::HopOpt as u8);
const ROUTING: Protocol = Protocol::new(IpProto::Ipv6Route as u8);
const FRAGMENT: Protocol = Protocol::new(IpProto::Ipv6Frag as u8);
const AUTHENTICATION: Protocol = Protocol::new(IpProto::Ah as u8);
const DESTINATION_OPTIONS: Protocol = Protocol::new(IpProto::Ipv6Opts as u8);
const MOBILITY: Protocol = Protocol::new(IpProto::MobilityHeader as u8);
const HOST_IDENTITY: Protocol = Protocol::new(IpProto::Hip as u8);
const SHIM6: Protocol = Protocol::new(IpProto::Shim6 as u8);

/// The 13 bits of the fragment offset in the second 16 bits of a fragment header.
const OFFSET: u16 = 0xfff8;

/// Reads an IPv6 packet whose header starts at `offset`.
#[inline(always)]
pub(super) fn parse<F: Frame + ?Sized>(frame: &F, offset: usize) -> Parsed {
    let Some(header) = frame.read::<{ Ipv6Hdr::LEN }>(offset) else {
        return Parsed::Fault(Fault::CutOff, None);
    };
    if header[0] >> 4 != 6 {
        // No field of another version can be trusted, the address neither.
        return Parsed::Fault(Fault::Malformed, None);
    }
    let source = source(&header);
    let start = offset.wrapping_add(Ipv6Hdr::LEN);
    let mut at = Position::new(Protocol::new(header[6]), start);
    let walked = walk(frame, &mut at);
    let packet = Packet {
        source: Address::V6(source),
        protocol: Protocol::UNKNOWN,
        destination_port: None,
        kind: Kind::Other,
        fragment: at.fragment,
    };
    if let Err(fault) = walked {
        return Parsed::Fault(fault, Some(packet));
    }
    let packet = Packet {
        protocol: at.next,
        ..packet
    };
    let payload = Payload {
        start: at.offset,
        end: transport::end(start, u16::from_be_bytes([header[4], header[5]])),
        has_header: !at.later,
    };
    if at.next == Protocol::ICMPV6 && !at.fragment {
        return icmpv6::complete(frame, payload, packet, source, header[7]);
    }
    transport::complete(frame, payload, packet)
}

#[inline(always)]
fn source(header: &[u8; Ipv6Hdr::LEN]) -> [u8; 16] {
    let mut source = [0; 16];
    source.copy_from_slice(&header[8..24]);
    source
}

/// How far the walk has come.
struct Position {
    /// What the last header says comes next.
    next: Protocol,
    /// Where that starts.
    offset: usize,
    /// A fragment header was seen, be it one that makes no fragments (RFC 6946).
    fragment: bool,
    /// A fragment other than the first: what follows is no header.
    later: bool,
}

impl Position {
    #[inline(always)]
    const fn new(next: Protocol, offset: usize) -> Self {
        Self {
            next,
            offset,
            fragment: false,
            later: false,
        }
    }

    #[inline(always)]
    fn advance(&mut self, next: u8, length: usize) {
        self.next = Protocol::new(next);
        self.offset = self.offset.wrapping_add(length);
    }
}

/// Steps over at most [`super::MAX_EXTENSION_HEADERS`] headers, one call for each.
#[inline(always)]
fn walk<F: Frame + ?Sized>(frame: &F, at: &mut Position) -> Result<(), Fault> {
    step(frame, at).ok_or(Fault::CutOff)?;
    step(frame, at).ok_or(Fault::CutOff)?;
    step(frame, at).ok_or(Fault::CutOff)?;
    step(frame, at).ok_or(Fault::CutOff)?;
    step(frame, at).ok_or(Fault::CutOff)?;
    step(frame, at).ok_or(Fault::CutOff)?;
    if is_extension(at.next) {
        Err(Fault::HeaderDepth)
    } else {
        Ok(())
    }
}

/// Steps over one extension header, if there is one; `None` if the frame ends before it says how
/// long it is. (If the frame ends later, inside the header, the next read finds out.)
#[inline(always)]
fn step<F: Frame + ?Sized>(frame: &F, at: &mut Position) -> Option<()> {
    match at.next {
        FRAGMENT => step_fragment(frame, at)?,
        // RFC 4302 §2.2: in units of 4 bytes, minus 2.
        AUTHENTICATION => {
            let [next, length] = frame.read(at.offset)?;
            at.advance(next, usize::from(length).wrapping_add(2).wrapping_mul(4));
        }
        // RFC 8200 §4.3 and RFC 6564: in units of 8 bytes, minus 1.
        other if is_extension(other) => {
            let [next, length] = frame.read(at.offset)?;
            at.advance(next, usize::from(length).wrapping_add(1).wrapping_mul(8));
        }
        _ => {}
    }
    Some(())
}

#[inline(always)]
fn step_fragment<F: Frame + ?Sized>(frame: &F, at: &mut Position) -> Option<()> {
    let [next, _, high, low, _, _, _, _] = frame.read(at.offset)?;
    at.advance(next, 8);
    at.fragment = true;
    if u16::from_be_bytes([high, low]) & OFFSET != 0 {
        at.later = true;
        if is_extension(at.next) {
            // The rest of that header's chain was in the first fragment; these bytes are no header,
            // and whoever sent them may have made them look like one. This ends the walk.
            at.next = Protocol::UNKNOWN;
        }
    }
    Some(())
}

#[inline(always)]
const fn is_extension(next: Protocol) -> bool {
    matches!(
        next,
        HOP_BY_HOP
            | ROUTING
            | FRAGMENT
            | AUTHENTICATION
            | DESTINATION_OPTIONS
            | MOBILITY
            | HOST_IDENTITY
            | SHIM6
    )
}
