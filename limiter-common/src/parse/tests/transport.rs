//! Ports and TCP flags.

use super::bytes::{ethernet, ipv4, ipv6, tcp};
use super::{check, v4, v6};
use crate::packet::Fault;

/// Protocols with ports, and how long their headers are.
const HEADERS: [(u8, usize); 5] = [(6, 20), (17, 8), (33, 12), (132, 12), (136, 8)];

#[test]
fn a_port_is_read_from_a_whole_header_only() {
    let bytes = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    for (protocol, length) in HEADERS {
        for cut in 0..=bytes.len() {
            let payload = &bytes[..cut];
            let in_v4 = [ethernet(0x0800), ipv4(protocol, payload)].concat();
            let in_v6 = [ethernet(0x86dd), ipv6(protocol, payload)].concat();
            let whole = cut >= length;
            check([
                (
                    "IPv4",
                    in_v4,
                    if whole {
                        v4(protocol).port(0x5678).ok()
                    } else {
                        v4(protocol).but(Fault::CutOff)
                    },
                ),
                (
                    "IPv6",
                    in_v6,
                    if whole {
                        v6(protocol).port(0x5678).ok()
                    } else {
                        v6(protocol).but(Fault::CutOff)
                    },
                ),
            ]);
        }
    }
}

#[test]
fn padding_is_no_header() {
    for (protocol, length) in HEADERS {
        let padded = [ethernet(0x0800), ipv4(protocol, &[0; 4]), vec![0; 36]].concat();
        check([("padding", padded, v4(protocol).but(Fault::CutOff))]);
        let exact = [ethernet(0x0800), ipv4(protocol, &vec![0; length]), vec![0; 36]].concat();
        check([("padding", exact, v4(protocol).port(0).ok())]);
    }
}

#[test]
fn only_syn_without_ack_asks_for_a_connection() {
    for flags in 0..=255 {
        let frame = [ethernet(0x0800), ipv4(6, &tcp(443, flags))].concat();
        let packet = v4(6).port(443);
        let asks = flags & 0x02 != 0 && flags & 0x10 == 0;
        check([("flags", frame, if asks { packet.syn().ok() } else { packet.ok() })]);
    }
}
