//! Frames that end anywhere, and frames of any bytes at all.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::bytes::{
    LINK_LOCAL, SYN, authentication, ethernet, extension, fragment, icmpv6, ipv4, ipv4_with, ipv6,
    ipv6_from, tagged, tcp, udp,
};
use crate::doubles::{Recorder, forges_nothing};
use crate::frame::MAX_OFFSET;
use crate::packet::{Fault, Parsed};
use crate::parse::parse;

/// Frames of every shape, each valid to its end.
fn whole_frames() -> Vec<Vec<u8>> {
    let chain = [extension(60, 2), authentication(43, 4), extension(44, 0), fragment(6, 0, true)];
    let longest = [vec![extension(60, 255); 5].concat(), extension(17, 255), udp(53)];
    vec![
        [ethernet(0x0806), vec![1; 28]].concat(),
        [ethernet(0x0800), ipv4(6, &tcp(80, SYN))].concat(),
        [ethernet(0x0800), ipv4_with(17, 10, 0, &udp(53))].concat(),
        [ethernet(0x0800), ipv4_with(47, 2, 0, &[7; 9])].concat(),
        [tagged(&[0x88a8, 0x8100, 0x8100, 0x8100], 0x0800), ipv4(132, &[9; 40])].concat(),
        [ethernet(0x0800), ipv4_with(6, 1, 0x2005, &tcp(80, SYN))].concat(),
        [ethernet(0x86dd), ipv6(17, &udp(53))].concat(),
        [tagged(&[0x8100], 0x86dd), ipv6(0, &[&chain.concat(), &*tcp(80, SYN)].concat())].concat(),
        [ethernet(0x86dd), ipv6(60, &longest.concat())].concat(),
        [ethernet(0x86dd), ipv6_from(LINK_LOCAL, 255, 58, &icmpv6(135))].concat(),
        [ethernet(0x86dd), ipv6(60, &vec![extension(60, 0); 9].concat())].concat(),
    ]
}

#[test]
fn a_cut_frame_is_cut_off_or_read_as_the_whole() {
    for frame in whole_frames() {
        let whole = parse(frame.as_slice());
        for end in 0..frame.len() {
            let cut = parse(&frame[..end]);
            let cut_off = matches!(cut, Parsed::Fault(Fault::CutOff, _));
            assert!(cut_off || cut == whole, "{end} of {frame:02x?}: {cut:?}");
            assert!(forges_nothing(&cut), "{end} of {frame:02x?}: {cut:?}");
        }
    }
}

#[test]
fn the_address_is_known_as_soon_as_the_ip_header_is_whole() {
    let frame = [ethernet(0x86dd), ipv6(60, &[extension(6, 1), tcp(80, SYN)].concat())].concat();
    for end in 0..frame.len() {
        let address = match parse(&frame[..end]) {
            Parsed::Fault(_, packet) => packet.map(|packet| packet.source),
            other => panic!("{end}: {other:?}"),
        };
        assert_eq!(address.is_some(), end >= 14 + 40, "{end}");
    }
}

#[test]
fn the_longest_chain_stays_within_reach_of_the_verifier() {
    let headers = [vec![extension(60, 255); 5].concat(), extension(6, 255), tcp(80, SYN)].concat();
    let frame = [tagged(&[0x8100; 4], 0x86dd), ipv6(60, &headers)].concat();
    let recorder = Recorder::new(&frame);
    assert!(matches!(parse(&recorder), Parsed::Packet(_)));
    assert_eq!(recorder.farthest.get(), 14 + 4 * 4 + 40 + 6 * 2048);
    assert!(recorder.farthest.get() <= MAX_OFFSET);
    assert_eq!(recorder.reads.get(), 1 + 4 + 1 + 6 + 1);
}

#[test]
fn common_packets_take_three_reads() {
    for packet in [
        [ethernet(0x0800), ipv4(6, &tcp(80, SYN))].concat(),
        [ethernet(0x86dd), ipv6(17, &udp(53))].concat(),
    ] {
        let recorder = Recorder::new(&packet);
        assert!(matches!(parse(&recorder), Parsed::Packet(_)));
        assert_eq!(recorder.reads.get(), 3);
    }
}

/// Any bytes behind something that gets them looked at.
fn hostile_frame() -> impl Strategy<Value = Vec<u8>> {
    let start = prop_oneof![
        Just(vec![]),
        Just(ethernet(0x0800)),
        Just([ethernet(0x0800), vec![0x45]].concat()),
        Just([ethernet(0x86dd), vec![0x60]].concat()),
        vec(prop_oneof![Just(0x8100), Just(0x88a8), Just(0x9100)], 0..7)
            .prop_map(|tpids| tagged(&tpids, 0x86dd)),
        extension_number().prop_map(|next| [ethernet(0x86dd), ipv6(next, &[])].concat()),
    ];
    // Bytes that are often an extension header's number or a short length.
    let byte = prop_oneof![any::<u8>(), extension_number(), 0..4_u8];
    (start, vec(byte, 0..300)).prop_map(|(start, rest)| [start, rest].concat())
}

fn extension_number() -> impl Strategy<Value = u8> {
    proptest::sample::select(&[0, 43, 44, 51, 60, 135, 139, 140][..])
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_or_reach_too_far(frame in hostile_frame()) {
        let recorder = Recorder::new(&frame);
        let parsed = parse(&recorder);
        prop_assert!(forges_nothing(&parsed));
        prop_assert!(recorder.farthest.get() <= MAX_OFFSET);
        prop_assert!(recorder.reads.get() <= 1 + 4 + 1 + 6 + 1);
    }

    #[test]
    fn more_bytes_change_nothing_but_a_cut(frame in hostile_frame(), more in vec(any::<u8>(), 0..64)) {
        let parsed = parse(frame.as_slice());
        if !matches!(parsed, Parsed::Fault(Fault::CutOff, _)) {
            prop_assert_eq!(parse([frame, more].concat().as_slice()), parsed);
        }
    }

    #[test]
    fn one_changed_byte_makes_no_panic(index in any::<u16>(), position in any::<u16>(), byte in any::<u8>()) {
        let frames = whole_frames();
        let mut frame = frames[usize::from(index) % frames.len()].clone();
        let position = usize::from(position) % frame.len();
        frame[position] = byte;
        prop_assert!(forges_nothing(&parse(frame.as_slice())));
    }
}
