//! IPv4: options, fragments, contradictions.

use super::bytes::{ACK, SYN, ethernet, ipv4, ipv4_with, tcp, udp};
use super::{check, v4};
use crate::packet::{Fault, Parsed};

const DONT_FRAGMENT: u16 = 0x4000;
const MORE: u16 = 0x2000;

fn frame(packet: Vec<u8>) -> Vec<u8> {
    [ethernet(0x0800), packet].concat()
}

#[test]
fn ports_are_read_behind_options_of_every_length() {
    for words in 0..=10 {
        let options = frame(ipv4_with(17, words, 0, &udp(53)));
        check([("options", options, v4(17).port(53).ok())]);
    }
}

#[test]
fn fragments() {
    let with = |fragment, payload: &[u8]| frame(ipv4_with(17, 0, fragment, payload));
    check([
        ("don't fragment is no fragment", with(DONT_FRAGMENT, &udp(53)), v4(17).port(53).ok()),
        ("the reserved bit is none", with(0x8000, &udp(53)), v4(17).port(53).ok()),
        ("first fragment", with(MORE, &udp(53)), v4(17).port(53).fragment().ok()),
        (
            "second fragment that looks like ports",
            with(MORE | 185, &udp(53)),
            v4(17).fragment().ok(),
        ),
        ("last fragment", with(185, &udp(53)), v4(17).fragment().ok()),
        ("last fragment of one byte", with(185, &[0]), v4(17).fragment().ok()),
        ("largest offset", with(0x1fff, &udp(53)), v4(17).fragment().ok()),
        ("don't fragment and an offset", with(DONT_FRAGMENT | 1, &udp(53)), v4(17).fragment().ok()),
        (
            "tiny fragment at offset 1 that looks like a SYN",
            frame(ipv4_with(6, 0, 1, &tcp(80, SYN))),
            v4(6).fragment().ok(),
        ),
        (
            "first fragment of 8 bytes of TCP",
            frame(ipv4_with(6, 0, MORE, &tcp(80, SYN)[..8])),
            v4(6).fragment().but(Fault::CutOff),
        ),
        (
            "the same with flags in the padding",
            frame([ipv4_with(6, 0, MORE, &tcp(80, ACK)[..8]), tcp(80, ACK)[8..].to_vec()].concat()),
            v4(6).fragment().but(Fault::CutOff),
        ),
        ("later fragment behind options", frame(ipv4_with(6, 5, 9, &[])), v4(6).fragment().ok()),
    ]);
}

#[test]
fn every_protocol_has_its_number() {
    for protocol in 0..=255 {
        let found = frame(ipv4(protocol, &[0; 40]));
        let expected = match protocol {
            6 | 17 | 33 | 132 | 136 => v4(protocol).port(0),
            _ => v4(protocol),
        };
        check([("protocol", found, expected.ok())]);
    }
}

#[test]
fn extension_headers_mean_nothing_in_ipv4() {
    for protocol in [0, 43, 44, 51, 60, 135] {
        let looks_like_one = [vec![6, 0, 0, 0, 0, 0, 0, 0], tcp(80, SYN)].concat();
        check([("protocol", frame(ipv4(protocol, &looks_like_one)), v4(protocol).ok())]);
    }
}

#[test]
fn contradictions() {
    let patched = |position: usize, value: u8| {
        let mut packet = ipv4(6, &tcp(80, SYN));
        packet[position] = value;
        frame(packet)
    };
    let no_version_4 = Parsed::Fault(Fault::Malformed, None);
    check([
        ("version 6 behind EtherType IPv4", patched(0, 0x65), no_version_4),
        ("version 0", patched(0, 0x05), no_version_4),
        ("version 5", patched(0, 0x55), no_version_4),
        ("header length 0", patched(0, 0x40), v4(6).but(Fault::Malformed)),
        ("header length 16", patched(0, 0x44), v4(6).but(Fault::Malformed)),
        ("header length beyond the frame", patched(0, 0x4f), v4(6).but(Fault::CutOff)),
        ("total length inside the TCP header", patched(3, 39), v4(6).but(Fault::CutOff)),
        ("total length inside the IPv4 header", patched(3, 8), v4(6).but(Fault::CutOff)),
        ("total length beyond the frame", patched(2, 0xff), v4(6).port(80).syn().ok()),
        ("total length 0: Linux's own above 64 KiB", patched(3, 0), v4(6).port(80).syn().ok()),
    ]);
}

#[test]
fn options_must_be_there_even_if_nothing_follows() {
    let mut packet = ipv4_with(47, 3, 0, &[]);
    packet.pop();
    check([("GRE behind a cut option", frame(packet), v4(47).but(Fault::CutOff))]);
}
