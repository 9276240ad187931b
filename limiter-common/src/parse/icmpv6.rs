//! The ICMPv6 messages without which an IPv6 link dies: neighbour discovery and multicast listener
//! discovery. They are never refused, so what counts as one is narrow: nobody beyond the link can
//! send it.

use super::transport::Payload;
use crate::frame::Frame;
use crate::packet::{Fault, Packet, Parsed};

/// What all ICMPv6 messages start with (RFC 4443 §2.1): type, code, checksum.
const LENGTH: usize = 4;

const LISTENER_QUERY: u8 = 130;
const LISTENER_REPORT: u8 = 131;
const LISTENER_DONE: u8 = 132;
const ROUTER_SOLICITATION: u8 = 133;
const REDIRECT: u8 = 137;
const LISTENER_REPORT_V2: u8 = 143;

/// Tells the exempt messages from ordinary ICMPv6, in a packet without a fragment header.
///
/// RFC 6980 forbids neighbour discovery in fragments, even behind a fragment header that makes none.
/// Other extension headers it leaves alone, and so do hosts: what lies behind them is exempt too.
#[inline(always)]
pub(super) fn complete<F: Frame + ?Sized>(
    frame: &F,
    payload: Payload,
    packet: Packet,
    source: [u8; 16],
    hop_limit: u8,
) -> F::Report {
    let Some([message, ..]) = payload.header::<LENGTH>(frame) else {
        return frame.report(Parsed::Fault(Fault::CutOff, Some(packet)));
    };
    match message {
        // Routers lower the hop limit: 255 proves a sender on the link.
        ROUTER_SOLICITATION..=REDIRECT if hop_limit == 255 => {
            frame.report(Parsed::NeighbourDiscovery)
        }
        LISTENER_QUERY | LISTENER_DONE if hop_limit == 1 && is_link_local(source) => {
            frame.report(Parsed::MulticastListener)
        }
        // RFC 3810 §5.2.13: from the unspecified address while there is no link-local one yet.
        LISTENER_REPORT | LISTENER_REPORT_V2
            if hop_limit == 1 && (is_link_local(source) || source == [0; 16]) =>
        {
            frame.report(Parsed::MulticastListener)
        }
        _ => frame.report(Parsed::Packet(packet)),
    }
}

/// fe80::/10.
#[inline(always)]
const fn is_link_local(source: [u8; 16]) -> bool {
    source[0] == 0xfe && source[1] & 0xc0 == 0x80
}
