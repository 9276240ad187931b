//! IPv6: the walk over extension headers, fragments, contradictions.

use super::bytes::{ACK, SYN, authentication, ethernet, extension, fragment, ipv6, tcp, udp};
use super::{check, v6, v6_unknown};
use crate::packet::{Fault, Parsed};

/// All whose length counts units of 8 bytes.
const PLAIN: [u8; 6] = [0, 43, 60, 135, 139, 140];

fn frame(next: u8, parts: &[Vec<u8>]) -> Vec<u8> {
    [ethernet(0x86dd), ipv6(next, &parts.concat())].concat()
}

#[test]
fn ports_are_read_behind_extension_headers() {
    let syn = || tcp(80, SYN);
    let found = v6(6).port(80).syn().ok();
    check([
        ("none", frame(6, &[syn()]), found),
        ("one destination-options header", frame(60, &[extension(6, 0), syn()]), found),
        ("a long one", frame(60, &[extension(6, 3), syn()]), found),
        ("authentication of 12 bytes", frame(51, &[authentication(6, 1), syn()]), found),
        ("authentication of 24 bytes", frame(51, &[authentication(6, 4), syn()]), found),
        ("length byte 255", frame(60, &[extension(6, 255), syn()]), found),
        ("length byte 255 in authentication", frame(51, &[authentication(6, 255), syn()]), found),
        (
            "in the order of RFC 8200",
            frame(
                0,
                &[
                    extension(60, 0),
                    extension(43, 1),
                    extension(51, 2),
                    authentication(6, 4),
                    syn(),
                ],
            ),
            found,
        ),
        (
            "hop-by-hop in the wrong place",
            frame(60, &[extension(0, 0), extension(6, 0), syn()]),
            found,
        ),
    ]);
    for header in PLAIN {
        for length in [0, 1, 7, 8, 127, 128, 254, 255] {
            check([("length", frame(header, &[extension(6, length), syn()]), found)]);
        }
    }
    for length in 0..=255 {
        check([("length", frame(51, &[authentication(6, length), syn()]), found)]);
    }
}

#[test]
fn six_headers_are_read_and_seven_refused() {
    let too_deep = v6_unknown().but(Fault::HeaderDepth);
    let chain = |count: usize, length: u8, last: Vec<u8>| {
        let mut parts = vec![extension(60, length); count - 1];
        parts.extend([extension(17, length), last]);
        frame(60, &parts)
    };
    check([
        ("six", chain(6, 0, udp(53)), v6(17).port(53).ok()),
        ("six of 2,048 bytes each", chain(6, 255, udp(53)), v6(17).port(53).ok()),
        ("six, then a cut UDP header", chain(6, 0, vec![0; 7]), v6(17).but(Fault::CutOff)),
        ("seven, then bytes like UDP/53", chain(7, 0, udp(53)), too_deep),
        ("thirty", chain(30, 0, udp(53)), too_deep),
        (
            "six, then a fragment header",
            frame(
                60,
                &[vec![extension(60, 0); 5].concat(), extension(44, 0), fragment(17, 0, true)],
            ),
            too_deep,
        ),
        (
            "five, then a later fragment of an unknown header",
            frame(
                60,
                &[
                    vec![extension(60, 0); 4].concat(),
                    extension(44, 0),
                    fragment(60, 9, true),
                    udp(53),
                ],
            ),
            v6_unknown().fragment().ok(),
        ),
        (
            "a first fragment with too many",
            frame(44, &[fragment(60, 0, true), vec![extension(60, 0); 6].concat()]),
            v6_unknown().fragment().but(Fault::HeaderDepth),
        ),
    ]);
}

#[test]
fn the_walk_stops_at_what_is_no_extension_header() {
    for next in 0..=255 {
        let looks_like_tcp_behind_a_header = [extension(6, 0), tcp(80, SYN)].concat();
        if PLAIN.contains(&next) || [44, 51, 58].contains(&next) {
            continue;
        }
        let expected = match next {
            6 | 17 | 33 | 132 | 136 => v6(next).port(0),
            _ => v6(next),
        };
        check([("next header", frame(next, &[looks_like_tcp_behind_a_header]), expected.ok())]);
    }
    check([
        ("ESP whose bytes look like TCP", frame(50, &[tcp(80, SYN)]), v6(50).ok()),
        ("no next header, then bytes", frame(60, &[extension(59, 0), udp(53)]), v6(59).ok()),
        ("no next header and no bytes", frame(59, &[]), v6(59).ok()),
        (
            "unknown header that looks like TCP",
            frame(60, &[extension(200, 0), tcp(80, 2)]),
            v6(200).ok(),
        ),
    ]);
}

#[test]
fn fragments() {
    check([
        (
            "first fragment",
            frame(44, &[fragment(17, 0, true), udp(53)]),
            v6(17).port(53).fragment().ok(),
        ),
        (
            "a fragment header that makes no fragments",
            frame(44, &[fragment(6, 0, false), tcp(80, SYN)]),
            v6(6).port(80).syn().fragment().ok(),
        ),
        (
            "a later fragment that looks like ports",
            frame(44, &[fragment(17, 185, true), udp(53)]),
            v6(17).fragment().ok(),
        ),
        ("offset 1", frame(44, &[fragment(6, 1, true), tcp(80, SYN)]), v6(6).fragment().ok()),
        (
            "largest offset",
            frame(44, &[fragment(6, 0x1fff, false), vec![0]]),
            v6(6).fragment().ok(),
        ),
        (
            "reserved bits are no offset",
            frame(44, &[vec![17, 255, 0, 6, 0, 0, 0, 7], udp(53)]),
            v6(17).port(53).fragment().ok(),
        ),
        (
            "a later fragment that starts inside the header chain",
            frame(44, &[fragment(60, 1, true), extension(17, 0), udp(53)]),
            v6_unknown().fragment().ok(),
        ),
        (
            "a later fragment that starts in a fragment header",
            frame(44, &[fragment(44, 1, true), fragment(17, 0, false), udp(53)]),
            v6_unknown().fragment().ok(),
        ),
        (
            "a later fragment of authentication",
            frame(44, &[fragment(51, 1, true), authentication(17, 4), udp(53)]),
            v6_unknown().fragment().ok(),
        ),
        (
            "a later fragment inside a fragment header of none",
            frame(44, &[fragment(44, 0, false), fragment(17, 5, false), udp(53)]),
            v6(17).fragment().ok(),
        ),
        (
            "a header between fragment header and ports",
            frame(44, &[fragment(60, 0, true), extension(17, 2), udp(53)]),
            v6(17).port(53).fragment().ok(),
        ),
        (
            "first fragment of 8 bytes of TCP, flags in the padding",
            [frame(44, &[fragment(6, 0, true), tcp(80, ACK)[..8].to_vec()]), vec![ACK; 12]]
                .concat(),
            v6(6).fragment().but(Fault::CutOff),
        ),
        (
            "a cut header after the fragment header",
            frame(44, &[fragment(60, 0, true), vec![17, 0]]),
            v6_unknown().fragment().but(Fault::CutOff),
        ),
    ]);
}

#[test]
fn a_frame_may_end_in_an_extension_header() {
    check([
        ("without its first byte", frame(60, &[]), v6_unknown().but(Fault::CutOff)),
        ("after its length", frame(60, &[vec![17, 0]]), v6_unknown().but(Fault::CutOff)),
        (
            "length 255 in 8 bytes",
            frame(60, &[vec![17, 255, 0, 0, 0, 0, 0, 0]]),
            v6(17).but(Fault::CutOff),
        ),
        (
            "the same before GRE",
            frame(60, &[vec![47, 255, 0, 0, 0, 0, 0, 0]]),
            v6(47).but(Fault::CutOff),
        ),
        (
            "before a header",
            frame(60, &[vec![43, 9, 0, 0, 0, 0, 0, 0]]),
            v6_unknown().but(Fault::CutOff),
        ),
        ("fragment header of 7 bytes", frame(44, &[vec![17; 7]]), v6_unknown().but(Fault::CutOff)),
    ]);
}

#[test]
fn contradictions() {
    let patched = |position: usize, value: u8| {
        let mut packet = frame(6, &[tcp(80, SYN)]);
        packet[14 + position] = value;
        packet
    };
    check([
        ("version 4", patched(0, 0x45), Parsed::Fault(Fault::Malformed, None)),
        ("version 7", patched(0, 0x70), Parsed::Fault(Fault::Malformed, None)),
        ("traffic class 255", patched(0, 0x6f), v6(6).port(80).syn().ok()),
        ("payload length 19", patched(5, 19), v6(6).but(Fault::CutOff)),
        ("payload length beyond the frame", patched(4, 0xff), v6(6).port(80).syn().ok()),
    ]);
}

#[test]
fn a_jumbogram_has_length_zero() {
    // RFC 2675: option 0xc2, four bytes of length, here 65,576.
    let jumbo = vec![6, 0, 0xc2, 4, 0, 1, 0, 0x28];
    let mut packet = frame(0, &[jumbo, tcp(80, SYN), vec![0; 9000]]);
    packet[14 + 4..14 + 6].fill(0);
    check([("jumbogram", packet, v6(6).port(80).syn().ok())]);
}
