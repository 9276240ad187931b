//! IPv4 (RFC 791): source, protocol, options, fragments.

use network_types::ip::Ipv4Hdr;

use super::transport::{self, Payload};
use crate::frame::Frame;
use crate::packet::{Address, Fault, Kind, Packet, Parsed, Protocol};

/// The 13 bits of the fragment offset.
const OFFSET: u16 = 0x1fff;
/// "More fragments". The bit above it is "don't fragment", which makes no fragment.
const MORE: u16 = 0x2000;

/// Reads an IPv4 packet whose header starts at `offset`.
#[inline(always)]
pub(super) fn parse<F: Frame + ?Sized>(frame: &F, offset: usize) -> F::Report {
    let Some(header) = frame.read::<{ Ipv4Hdr::LEN }>(offset) else {
        return frame.report(Parsed::Fault(Fault::CutOff, None));
    };
    if header[0] >> 4 != 4 {
        // No field of another version can be trusted, the address neither.
        return frame.report(Parsed::Fault(Fault::Malformed, None));
    }
    let header_length = usize::from(header[0] & 0x0f).wrapping_mul(4);
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let packet = Packet {
        source: Address::V4([header[12], header[13], header[14], header[15]]),
        protocol: Protocol::new(header[9]),
        destination_port: None,
        kind: Kind::Other,
        fragment: fragment & (MORE | OFFSET) != 0,
    };
    if header_length < Ipv4Hdr::LEN {
        return frame.report(Parsed::Fault(Fault::Malformed, Some(packet)));
    }
    let payload = Payload {
        start: offset.wrapping_add(header_length),
        end: transport::end(offset, u16::from_be_bytes([header[2], header[3]])),
        has_header: fragment & OFFSET == 0,
    };
    transport::complete(frame, payload, packet)
}
