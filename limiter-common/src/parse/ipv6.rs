//! IPv6 (RFC 8200): source and the bounded walk over extension headers.
//!
//! Only what IANA lists as an extension header is walked through. An unknown next header is the
//! packet's protocol, whatever its bytes look like; so are ESP and "no next header".

use network_types::ip::{IpProto, Ipv6Hdr};

use super::icmpv6;
use super::transport::{self, Payload};
use crate::frame::Frame;
use crate::packet::{Address, Fault, Kind, Packet, Parsed, Protocol};

const HOP_BY_HOP: u8 = IpProto::HopOpt as u8;
const ROUTING: u8 = IpProto::Ipv6Route as u8;
const FRAGMENT: u8 = IpProto::Ipv6Frag as u8;
const AUTHENTICATION: u8 = IpProto::Ah as u8;
const DESTINATION_OPTIONS: u8 = IpProto::Ipv6Opts as u8;
const MOBILITY: u8 = IpProto::MobilityHeader as u8;
const HOST_IDENTITY: u8 = IpProto::Hip as u8;
const SHIM6: u8 = IpProto::Shim6 as u8;

/// The shortest extension header, and the length of every fragment header.
const SHORTEST: usize = 8;
/// The 13 bits of the fragment offset in the second 16 bits of a fragment header.
const OFFSET: u16 = 0xfff8;

/// Reads an IPv6 packet whose header starts at `offset`.
#[inline(always)]
pub(super) fn parse<F: Frame + ?Sized>(frame: &F, offset: usize) -> F::Report {
    let Some(header) = frame.read::<{ Ipv6Hdr::LEN }>(offset) else {
        return frame.report(Parsed::Fault(Fault::CutOff, None));
    };
    if header[0] >> 4 != 6 {
        // No field of another version can be trusted, the address neither.
        return frame.report(Parsed::Fault(Fault::Malformed, None));
    }
    let source = source(&header);
    let start = offset.wrapping_add(Ipv6Hdr::LEN);
    let mut at = Position { next: header[6], offset: start, fragment: 0, later: 0 };
    let walked = walk(frame, &mut at);
    let packet = Packet {
        source: Address::V6(source),
        protocol: Protocol::UNKNOWN,
        destination_port: None,
        kind: Kind::Other,
        fragment: at.fragment != 0,
    };
    let protocol = match walked {
        Ok(protocol) => protocol,
        Err(fault) => return frame.report(Parsed::Fault(fault, Some(packet))),
    };
    let packet = Packet { protocol, ..packet };
    let payload = Payload {
        start: at.offset,
        end: transport::end(start, u16::from_be_bytes([header[4], header[5]])),
        has_header: at.later == 0,
    };
    if protocol == Protocol::ICMPV6 && at.fragment == 0 {
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
    next: u8,
    /// Where that starts.
    offset: usize,
    /// Not 0 after a fragment header, be it the first of several fragments or of none (RFC 6946).
    fragment: usize,
    /// Not 0 in a fragment other than the first, where no header follows.
    later: usize,
}

/// Steps over at most [`super::MAX_EXTENSION_HEADERS`] headers, one call for each, to the protocol.
#[inline(always)]
fn walk<F: Frame + ?Sized>(frame: &F, at: &mut Position) -> Result<Protocol, Fault> {
    step(frame, at)?;
    step(frame, at)?;
    step(frame, at)?;
    step(frame, at)?;
    step(frame, at)?;
    step(frame, at)?;
    match (is_extension(at.next), at.later != 0) {
        (false, _) => Ok(Protocol::new(at.next)),
        // The rest of the chain was in the first fragment. What looks like a header here is none.
        (true, true) => Ok(Protocol::UNKNOWN),
        (true, false) => Err(Fault::HeaderDepth),
    }
}

/// Steps over one extension header, if there is one. It must show its first 8 bytes; if the frame
/// ends later inside it, whoever reads the payload finds out.
///
/// All kinds of headers take the same way through: with a branch for each kind, the kernel's verifier
/// looked at every sequence of kinds, and used up half of the instructions it allows a program.
#[inline(always)]
fn step<F: Frame + ?Sized>(frame: &F, at: &mut Position) -> Result<(), Fault> {
    if !is_extension(at.next) || at.later != 0 {
        return Ok(());
    }
    let [next, length, high, low, ..] = frame.read::<SHORTEST>(at.offset).ok_or(Fault::CutOff)?;
    let fragment = !mask_unless_equal(at.next, FRAGMENT);
    at.fragment |= fragment;
    at.later = usize::from(u16::from_be_bytes([high, low]) & OFFSET) & fragment;
    at.offset = frame.forget(at.offset.wrapping_add(header_length(at.next, length)));
    at.next = next;
    Ok(())
}

/// In bytes. The length byte counts what exceeds the first 8 bytes, in units of 8 (RFC 8200 §4.3,
/// RFC 6564 §4) or, in an authentication header, of 4 (RFC 4302 §2.2). A fragment header has none.
#[inline(always)]
fn header_length(header: u8, length: u8) -> usize {
    let fours = usize::from(length).wrapping_mul(4) & mask_unless_equal(header, FRAGMENT);
    let eights = fours & mask_unless_equal(header, AUTHENTICATION);
    SHORTEST.wrapping_add(fours).wrapping_add(eights)
}

/// 0 if they are equal, else all ones; without a branch, and in steps whose bounds the verifier of
/// Linux 6.1 can follow.
#[inline(always)]
fn mask_unless_equal(a: u8, b: u8) -> usize {
    let differ = usize::from(a ^ b).wrapping_add(0xff) >> 8;
    differ.wrapping_neg()
}

#[inline(always)]
const fn is_extension(next: u8) -> bool {
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
