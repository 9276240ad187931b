//! Valid packets, read by `etherparse` and by us.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

use super::bytes::{authentication, extension, fragment, ipv4_with, ipv6, tagged, tcp, udp};
use crate::packet::{Address, Packet, Parsed, Protocol};
use crate::parse::parse;

/// Address, protocol and, outside of fragments, the port of TCP and UDP, as `etherparse` sees them.
fn by_etherparse(frame: &[u8]) -> (Address, Protocol, bool, Option<u16>) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let (address, payload) = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => (Address::V4(ip.header().source()), ip.payload()),
        Some(NetSlice::Ipv6(ip)) => (Address::V6(ip.header().source()), ip.payload()),
        other => panic!("no IP: {other:?}"),
    };
    let port = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => Some(tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => Some(udp.destination_port()),
        _ => None,
    };
    (address, Protocol::new(payload.ip_number.0), payload.fragmented, port)
}

fn by_us(frame: &[u8]) -> Packet {
    match parse(frame) {
        Parsed::Packet(packet) => packet,
        other => panic!("{other:?}: {frame:02x?}"),
    }
}

/// A protocol and its bytes: TCP, UDP, or one without ports.
fn transport() -> impl Strategy<Value = (u8, Vec<u8>)> {
    prop_oneof![
        (any::<u16>(), any::<u8>()).prop_map(|(port, flags)| (6, tcp(port, flags))),
        any::<u16>().prop_map(|port| (17, udp(port))),
        (select(&[1, 2, 47, 50, 58, 59, 103, 200][..]), vec(any::<u8>(), 8..40)),
    ]
}

fn tags() -> impl Strategy<Value = Vec<u16>> {
    // etherparse reads up to three.
    vec(select(&[0x8100, 0x88a8, 0x9100][..]), 0..=3)
}

fn ipv4_frame() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![Just(0), Just(0x4000), Just(0x2000), 1..0x4000_u16];
    (tags(), 0..=10_u8, field, transport()).prop_map(|(tags, words, field, (protocol, payload))| {
        [tagged(&tags, 0x0800), ipv4_with(protocol, words, field, &payload)].concat()
    })
}

/// Headers that may stand in any order, by number and length byte.
fn headers(most: usize) -> impl Strategy<Value = Vec<(u8, u8)>> {
    vec((select(&[43, 51, 60][..]), prop_oneof![1..8_u8, any::<u8>()]), 0..=most)
}

/// Hop-by-hop first and a fragment header last, if at all: elsewhere the two parsers may differ.
fn ipv6_frame() -> impl Strategy<Value = Vec<u8>> {
    let fragments = option::of((prop_oneof![Just(0), 1..0x2000_u16], any::<bool>()));
    let chain = (option::of(any::<u8>()), headers(4), fragments);
    (tags(), chain, transport()).prop_map(|(tags, (hop_by_hop, headers, fragments), transport)| {
        let (mut next, mut bytes) = transport;
        if let Some((offset, more)) = fragments {
            bytes = [fragment(next, offset, more), bytes].concat();
            next = 44;
        }
        for (number, length) in headers.into_iter().rev() {
            // The length of a whole authentication header is at least 12, that is 1.
            let header = match number {
                51 => authentication(next, length.max(1)),
                _ => extension(next, length),
            };
            bytes = [header, bytes].concat();
            next = number;
        }
        if let Some(length) = hop_by_hop {
            bytes = [extension(next, length), bytes].concat();
            next = 0;
        }
        [tagged(&tags, 0x86dd), ipv6(next, &bytes)].concat()
    })
}

proptest! {
    #[test]
    fn both_parsers_read_the_same(frame in prop_oneof![ipv4_frame(), ipv6_frame()]) {
        let (address, protocol, fragmented, port) = by_etherparse(&frame);
        let packet = by_us(&frame);
        prop_assert_eq!(packet.source, address);
        prop_assert_eq!(packet.protocol, protocol);
        if !fragmented {
            prop_assert_eq!(packet.destination_port, port);
        }
    }
}
