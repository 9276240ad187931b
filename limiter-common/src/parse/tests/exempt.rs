//! What is never refused, and what only looks like it.

use super::bytes::{
    LINK_LOCAL, SOURCE6, authentication, ethernet, extension, fragment, icmpv6, ipv4, ipv6_from,
    tagged,
};
use super::{check, v4, v6};
use crate::packet::{Address, Fault, Packet, Parsed};

const UNSPECIFIED: [u8; 16] = [0; 16];
const ICMPV6: u8 = 58;

fn frame(source: [u8; 16], hop_limit: u8, next: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    [ethernet(0x86dd), ipv6_from(source, hop_limit, next, &parts.concat())].concat()
}

fn message(source: [u8; 16], hop_limit: u8, message: u8) -> Vec<u8> {
    frame(source, hop_limit, ICMPV6, &[icmpv6(message)])
}

/// Ordinary ICMPv6.
fn ordinary(source: [u8; 16]) -> Packet {
    Packet { source: Address::V6(source), ..v6(ICMPV6) }
}

#[test]
fn neighbour_discovery_comes_with_hop_limit_255() {
    for kind in 0..=255 {
        for source in [LINK_LOCAL, SOURCE6, UNSPECIFIED] {
            let expected = match kind {
                133..=137 => Parsed::NeighbourDiscovery,
                _ => ordinary(source).ok(),
            };
            check([("hop limit 255", message(source, 255, kind), expected)]);
            for hop_limit in [0, 2, 64, 254] {
                let forged = message(source, hop_limit, kind);
                check([("forged", forged, ordinary(source).ok())]);
            }
        }
    }
}

#[test]
fn listener_discovery_comes_from_the_link_with_hop_limit_1() {
    for kind in 0..=255 {
        let from_link_local = match kind {
            130..=132 | 143 => Parsed::MulticastListener,
            _ => ordinary(LINK_LOCAL).ok(),
        };
        let from_nowhere = match kind {
            131 | 143 => Parsed::MulticastListener,
            _ => ordinary(UNSPECIFIED).ok(),
        };
        check([
            ("link-local", message(LINK_LOCAL, 1, kind), from_link_local),
            ("unspecified", message(UNSPECIFIED, 1, kind), from_nowhere),
            ("global", message(SOURCE6, 1, kind), ordinary(SOURCE6).ok()),
        ]);
    }
}

#[test]
fn forged_listener_discovery_is_ordinary() {
    let site_local = [0xfe, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let mut last_link_local = [0xff; 16];
    last_link_local[..2].copy_from_slice(&[0xfe, 0xbf]);
    let mut almost_unspecified = UNSPECIFIED;
    almost_unspecified[15] = 1;
    check([
        ("fec0::1", message(site_local, 1, 143), ordinary(site_local).ok()),
        ("febf:ffff:…", message(last_link_local, 1, 143), Parsed::MulticastListener),
        ("::1", message(almost_unspecified, 1, 143), ordinary(almost_unspecified).ok()),
        ("hop limit 2", message(LINK_LOCAL, 2, 143), ordinary(LINK_LOCAL).ok()),
        ("hop limit 0", message(LINK_LOCAL, 0, 143), ordinary(LINK_LOCAL).ok()),
        ("hop limit 255", message(LINK_LOCAL, 255, 130), ordinary(LINK_LOCAL).ok()),
    ]);
}

#[test]
fn no_fragment_is_exempt() {
    let fragmented = ordinary(LINK_LOCAL).fragment();
    for (hop_limit, kind) in [(255, 135), (1, 143)] {
        for (offset, more) in [(0, true), (0, false), (3, true), (3, false)] {
            let parts = [fragment(ICMPV6, offset, more), icmpv6(kind)];
            check([("fragment", frame(LINK_LOCAL, hop_limit, 44, &parts), fragmented.ok())]);
        }
    }
    let behind_options = [extension(44, 0), fragment(ICMPV6, 0, false), icmpv6(135)];
    check([("behind options", frame(LINK_LOCAL, 255, 60, &behind_options), fragmented.ok())]);
}

#[test]
fn other_extension_headers_take_nothing_away() {
    let router_alert = vec![ICMPV6, 0, 5, 2, 0, 0, 1, 0];
    check([
        (
            "a listener report as hosts send it, behind a router alert",
            frame(LINK_LOCAL, 1, 0, &[router_alert, icmpv6(143)]),
            Parsed::MulticastListener,
        ),
        (
            "neighbour discovery behind destination options",
            frame(LINK_LOCAL, 255, 60, &[extension(ICMPV6, 1), icmpv6(135)]),
            Parsed::NeighbourDiscovery,
        ),
        (
            "neighbour discovery behind authentication",
            frame(LINK_LOCAL, 255, 51, &[authentication(ICMPV6, 4), icmpv6(136)]),
            Parsed::NeighbourDiscovery,
        ),
        (
            "neighbour discovery in a VLAN",
            [tagged(&[0x8100], 0x86dd), ipv6_from(LINK_LOCAL, 255, ICMPV6, &icmpv6(135))].concat(),
            Parsed::NeighbourDiscovery,
        ),
        (
            "neighbour discovery behind seven headers",
            frame(
                LINK_LOCAL,
                255,
                60,
                &[vec![extension(60, 0); 6].concat(), extension(ICMPV6, 0), icmpv6(135)],
            ),
            Packet { source: Address::V6(LINK_LOCAL), ..super::v6_unknown() }
                .but(Fault::HeaderDepth),
        ),
    ]);
}

#[test]
fn a_message_shows_its_first_four_bytes() {
    for cut in 0..4 {
        let parts = [icmpv6(135)[..cut].to_vec()];
        let cut_off = ordinary(LINK_LOCAL).but(Fault::CutOff);
        check([
            ("cut", frame(LINK_LOCAL, 255, ICMPV6, &parts), cut_off),
            ("cut", [frame(LINK_LOCAL, 255, ICMPV6, &parts), vec![0; 24]].concat(), {
                // Nothing at all is a payload length of 0, which doesn't tell the packet's end.
                if cut == 0 { ordinary(LINK_LOCAL).ok() } else { cut_off }
            }),
        ]);
    }
}

#[test]
fn there_is_no_neighbour_discovery_in_ipv4() {
    let mut packet = ipv4(ICMPV6, &icmpv6(135));
    packet[8] = 255;
    check([("ICMPv6 in IPv4", [ethernet(0x0800), packet].concat(), v4(ICMPV6).ok())]);
}
