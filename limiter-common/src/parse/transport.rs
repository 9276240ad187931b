//! The transport header behind IPv4 or IPv6: ports where the protocol has them, flags of TCP.

use network_types::ip::IpProto;
use network_types::sctp::SctpHdr;
use network_types::tcp::TcpHdr;
use network_types::udp::UdpHdr;

use crate::frame::Frame;
use crate::packet::{Fault, Kind, Packet, Parsed, Protocol};

const DCCP: Protocol = Protocol::new(IpProto::Dccp as u8);
const SCTP: Protocol = Protocol::new(IpProto::Sctp as u8);
const UDP_LITE: Protocol = Protocol::new(IpProto::UdpLite as u8);

/// The shorter of DCCP's generic headers (RFC 4340 §5.1).
const DCCP_LENGTH: usize = 12;

/// Flags in byte 13 of a TCP header.
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// What an IP packet carries, as offsets into the frame.
#[derive(Clone, Copy)]
pub(super) struct Payload {
    /// After the IP header and its options or extension headers.
    pub(super) start: usize,
    /// Where the packet ends by its own length field (see [`end`]).
    pub(super) end: usize,
    /// False in a later fragment: its bytes may look like a header but are none.
    pub(super) has_header: bool,
}

impl Payload {
    /// The first `N` bytes, or `None` if the packet or the frame ends before that. With `N` = 0 it
    /// still tells whether all headers before it were complete.
    #[inline(always)]
    pub(super) fn header<const N: usize>(self, frame: &(impl Frame + ?Sized)) -> Option<[u8; N]> {
        if self.start.wrapping_add(N) > self.end { None } else { frame.read(self.start) }
    }
}

/// Where a packet ends whose length field counts from `offset`. 0 means that the field doesn't tell
/// (a jumbogram, RFC 2675; Linux's own packets above 64 KiB): only the frame bounds it then.
///
/// Without this bound, someone could send a first fragment with the first 8 bytes of a TCP header,
/// and choose the flags we see in the padding and those the host sees in the next fragment.
#[inline(always)]
pub(super) fn end(offset: usize, length: u16) -> usize {
    if length == 0 { usize::MAX } else { offset.wrapping_add(usize::from(length)) }
}

/// The packet together with what its transport header says.
#[inline(always)]
pub(super) fn complete<F: Frame + ?Sized>(
    frame: &F,
    payload: Payload,
    packet: Packet,
) -> F::Report {
    match read(frame, payload, packet.protocol) {
        Some((destination_port, kind)) => {
            frame.report(Parsed::Packet(Packet { destination_port, kind, ..packet }))
        }
        None => frame.report(Parsed::Fault(Fault::CutOff, Some(packet))),
    }
}

/// Destination port and kind, or `None` if the header is cut off.
#[inline(always)]
fn read<F: Frame + ?Sized>(
    frame: &F,
    payload: Payload,
    protocol: Protocol,
) -> Option<(Option<u16>, Kind)> {
    if !payload.has_header {
        payload.header::<0>(frame)?;
        return Some((None, Kind::Other));
    }
    match protocol {
        Protocol::TCP => {
            let header = payload.header::<{ TcpHdr::LEN }>(frame)?;
            Some((destination_port(&header), tcp_kind(header[13])))
        }
        Protocol::UDP | UDP_LITE => {
            let header = payload.header::<{ UdpHdr::LEN }>(frame)?;
            Some((destination_port(&header), Kind::Other))
        }
        SCTP | DCCP => {
            const { assert!(SctpHdr::LEN == DCCP_LENGTH) };
            let header = payload.header::<DCCP_LENGTH>(frame)?;
            Some((destination_port(&header), Kind::Other))
        }
        _ => {
            payload.header::<0>(frame)?;
            Some((None, Kind::Other))
        }
    }
}

/// All five protocols have their ports in the same place.
#[inline(always)]
fn destination_port<const N: usize>(header: &[u8; N]) -> Option<u16> {
    const { assert!(N >= 4) };
    Some(u16::from_be_bytes([header[2], header[3]]))
}

#[inline(always)]
const fn tcp_kind(flags: u8) -> Kind {
    if flags & (SYN | ACK) == SYN { Kind::TcpSyn } else { Kind::Other }
}
