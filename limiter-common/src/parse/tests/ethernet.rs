//! Tags and what isn't IP.

use super::bytes::{SYN, ethernet, ipv4, ipv6, tagged, tcp};
use super::{check, v4, v6};
use crate::packet::{Fault, Parsed};

const Q: u16 = 0x8100;
const AD: u16 = 0x88a8;
const OLD: u16 = 0x9100;

#[test]
fn tags_are_stepped_over() {
    let packet = ipv4(6, &tcp(80, SYN));
    let behind = |tpids: &[u16]| [tagged(tpids, 0x0800), packet.clone()].concat();
    let expected = v4(6).port(80).syn().ok();
    check([
        ("no tag", behind(&[]), expected),
        ("one 802.1Q tag", behind(&[Q]), expected),
        ("one 802.1ad tag alone", behind(&[AD]), expected),
        ("QinQ", behind(&[AD, Q]), expected),
        ("QinQ of an older switch", behind(&[OLD, Q]), expected),
        ("three tags", behind(&[AD, Q, Q]), expected),
        ("four tags", behind(&[Q, Q, Q, Q]), expected),
        (
            "four tags before IPv6",
            [tagged(&[AD, AD, Q, Q], 0x86dd), ipv6(6, &tcp(80, SYN))].concat(),
            v6(6).port(80).syn().ok(),
        ),
        ("a fifth tag", behind(&[Q; 5]), Parsed::Fault(Fault::VlanDepth, None)),
        ("twelve tags", behind(&[AD; 12]), Parsed::Fault(Fault::VlanDepth, None)),
        ("ARP behind two tags", tagged(&[AD, Q], 0x0806), Parsed::Arp),
    ]);
}

#[test]
fn what_is_not_ip_stays_what_it_is() {
    check([
        ("ARP", [ethernet(0x0806), vec![0; 28]].concat(), Parsed::Arp),
        ("ARP of no bytes", ethernet(0x0806), Parsed::Arp),
        ("LLDP", [ethernet(0x88cc), vec![2, 7, 4]].concat(), Parsed::NotIp),
        ("PPPoE", [ethernet(0x8864), ipv4(6, &tcp(80, SYN))].concat(), Parsed::NotIp),
        (
            "an 802.3 length instead of a type",
            [ethernet(38), vec![0x42; 38]].concat(),
            Parsed::NotIp,
        ),
        (
            "EtherType with its bytes swapped",
            [ethernet(0x0008), ipv4(6, &[])].concat(),
            Parsed::NotIp,
        ),
    ]);
}

#[test]
fn a_frame_may_end_anywhere_before_ip() {
    let cut_off = Parsed::Fault(Fault::CutOff, None);
    check([
        ("no bytes", vec![], cut_off),
        ("addresses only", vec![2; 12], cut_off),
        ("half an EtherType", vec![2; 13], cut_off),
        ("a TPID alone", tagged(&[], Q), cut_off),
        ("a tag without EtherType", [tagged(&[], Q), vec![0, 7]].concat(), cut_off),
        ("a tag without the last byte", [tagged(&[], Q), vec![0, 7, 8]].concat(), cut_off),
        ("Ethernet header of IPv4 alone", ethernet(0x0800), cut_off),
        ("Ethernet header of IPv6 alone", ethernet(0x86dd), cut_off),
    ]);
}
