//! What was built is what the parser reads.

use limiter_common::packet::{Address, Fault, Kind, Packet, Parsed, Protocol};
use limiter_common::parse::parse;

use super::{Flags, Frame};

const V4: Address = Address::V4([192, 0, 2, 1]);
const V6: Address = Address::V6([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

fn v4() -> Frame {
    Frame::new().ipv4("192.0.2.1")
}

fn v6() -> Frame {
    Frame::new().ipv6("2001:db8::1")
}

fn packet(source: Address, protocol: u8, destination_port: Option<u16>) -> Packet {
    let protocol = Protocol::new(protocol);
    Packet { source, protocol, destination_port, kind: Kind::Other, fragment: false }
}

#[test]
fn the_parser_reads_what_was_built() {
    let syn = |source| Packet { kind: Kind::TcpSyn, ..packet(source, 6, Some(80)) };
    let fragment = |packet| Packet { fragment: true, ..packet };
    let rows = [
        ("UDP", v4().udp(53), packet(V4, 17, Some(53))),
        (
            "tags, options, payload",
            v4().vlan(7).options(4).udp(53).payload(99),
            packet(V4, 17, Some(53)),
        ),
        ("QinQ", v6().service_vlan(3).vlan(7).udp(53), packet(V6, 17, Some(53))),
        ("SYN", v4().tcp(80, Flags::SYN), syn(V4)),
        ("SYN in IPv6", v6().tcp(80, Flags::SYN), syn(V6)),
        ("SYN and ACK", v4().tcp(80, Flags::SYN | Flags::ACK), packet(V4, 6, Some(80))),
        ("ICMP", v4().icmp(8), packet(V4, 1, None)),
        ("echo request", v6().icmpv6(128, 64), packet(V6, 58, None)),
        ("GRE", v4().protocol(47, vec![0; 4]), packet(V4, 47, None)),
        ("don't fragment", v4().dont_fragment().udp(53), packet(V4, 17, Some(53))),
        ("first fragment", v4().fragment(0, true).udp(53), fragment(packet(V4, 17, Some(53)))),
        ("later fragment", v4().fragment(185, false).udp(53), fragment(packet(V4, 17, None))),
        (
            "a chain",
            v6().hop_by_hop()
                .destination_options(2)
                .authentication(4)
                .extension(43, 0)
                .tcp(80, Flags::SYN),
            syn(V6),
        ),
        (
            "first fragment in IPv6",
            v6().fragment(0, true).udp(53),
            fragment(packet(V6, 17, Some(53))),
        ),
        ("later fragment in IPv6", v6().fragment(9, true).udp(53), fragment(packet(V6, 17, None))),
        ("nothing", v6(), packet(V6, 59, None)),
        ("above 64 KiB", v4().udp(53).payload(70_000), packet(V4, 17, Some(53))),
    ];
    for (built, frame, expected) in rows {
        let bytes = frame.build();
        assert_eq!(parse(bytes.as_slice()), Parsed::Packet(expected), "{built}: {bytes:02x?}");
    }
}

#[test]
fn what_is_never_refused_can_be_built() {
    let link_local = || Frame::new().ipv6("fe80::1");
    let rows = [
        ("ARP", Frame::new().vlan(7).arp(), Parsed::Arp),
        ("nothing", Frame::new(), Parsed::NotIp),
        ("solicitation", link_local().icmpv6(135, 255), Parsed::NeighbourDiscovery),
        ("report", link_local().hop_by_hop().icmpv6(143, 1), Parsed::MulticastListener),
    ];
    for (built, frame, expected) in rows {
        assert_eq!(parse(frame.build().as_slice()), expected, "{built}");
    }
}

#[test]
fn faults_can_be_built() {
    let mut deep = v6();
    for _ in 0..7 {
        deep = deep.destination_options(0);
    }
    let hidden = Packet { protocol: Protocol::UNKNOWN, ..packet(V6, 0, None) };
    let tags = (0..5).fold(v4(), Frame::vlan).udp(53);
    let cut = &v4().udp(53).build()[..14 + 20 + 7];
    let rows = [
        (parse(deep.udp(53).build().as_slice()), Fault::HeaderDepth, Some(hidden)),
        (parse(tags.build().as_slice()), Fault::VlanDepth, None),
        (parse(cut), Fault::CutOff, Some(packet(V4, 17, None))),
    ];
    for (parsed, fault, packet) in rows {
        assert_eq!(parsed, Parsed::Fault(fault, packet));
    }
}

#[test]
fn checksums_come_out_right() {
    // Summing what includes a right checksum gives 0.
    let header = v4().options(3).udp(53).payload(7).build();
    assert_eq!(super::wire::checksum(&[&header[14..14 + 32]]), [0, 0]);
    let segment = v4().tcp(80, Flags::SYN).payload(7).build();
    let pseudo = [&segment[26..34], &[0, 6, 0, 27]].concat();
    assert_eq!(super::wire::checksum(&[&pseudo, &segment[34..]]), [0, 0]);
    let message = v6().destination_options(1).icmpv6(128, 64).build();
    let pseudo = [&message[22..54], &[0, 0, 0, 24, 0, 0, 0, 58]].concat();
    assert_eq!(super::wire::checksum(&[&pseudo, &message[14 + 40 + 16..]]), [0, 0]);
}

#[test]
fn a_known_header_has_its_known_checksum() {
    let built = Frame::new().ipv4("192.0.2.1").destination("192.0.2.2").udp(7000).build();
    let known = [0x45, 0, 0, 28, 0, 7, 0, 0, 64, 17, 0xf6, 0xc6, 192, 0, 2, 1, 192, 0, 2, 2];
    assert_eq!(built[14..34], known);
}

#[test]
#[should_panic(expected = "2001:db8::1: invalid IPv4 address syntax")]
fn an_address_of_the_wrong_family_is_the_tests_mistake() {
    let _ = Frame::new().ipv4("2001:db8::1");
}
