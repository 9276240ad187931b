//! Any bytes as a frame, read by limiter's parser: it never panics, reads within its bounds, forges
//! nothing, and agrees with `etherparse` on whatever both read.

mod opinion;

use limiter_common::doubles::{Recorder, forges_nothing};
use limiter_common::frame::MAX_OFFSET;
use limiter_common::packet::{Fault, Parsed};
use limiter_common::parse::{MAX_EXTENSION_HEADERS, MAX_VLAN_TAGS, parse};

use opinion::Opinion;

/// The Ethernet header, each tag, the IP header, each extension header, the transport header.
const MOST_READS: usize = 1 + MAX_VLAN_TAGS + 1 + MAX_EXTENSION_HEADERS + 1;
/// Where the EtherType begins.
const ETHER_TYPE: usize = 12;

/// Reads the frame.
///
/// # Panics
/// If the parser does anything that it must not.
pub fn run(frame: &[u8]) {
    let recorder = Recorder::new(frame);
    let parsed = parse(&recorder);
    assert!(recorder.farthest.get() <= MAX_OFFSET, "reads at {}", recorder.farthest.get());
    assert!(recorder.reads.get() <= MOST_READS, "{} reads", recorder.reads.get());
    assert!(forges_nothing(&parsed), "{parsed:?}");
    Opinion::of(frame).check(&parsed);
    a_tag_changes_nothing(frame, &parsed);
    more_bytes_change_nothing_but_a_cut(frame, &parsed);
}

/// `etherparse` reads three tags, limiter four; so the fourth and the fifth are tried here.
fn a_tag_changes_nothing(frame: &[u8], parsed: &Parsed) {
    let Some((addresses, rest)) = frame.split_at_checked(ETHER_TYPE) else {
        return;
    };
    let tagged = [addresses, &[0x88, 0xa8, 0xff, 0xff], rest].concat();
    let expected = match tags(&tagged) > MAX_VLAN_TAGS {
        true => Parsed::Fault(Fault::VlanDepth, None),
        false => *parsed,
    };
    assert_eq!(parse(tagged.as_slice()), expected, "with one more tag");
}

/// How many tags the frame announces.
fn tags(frame: &[u8]) -> usize {
    let announced = frame.get(ETHER_TYPE..).unwrap_or_default().chunks(4);
    announced.take_while(|it| matches!(it[..], [0x81 | 0x91, 0, ..] | [0x88, 0xa8, ..])).count()
}

fn more_bytes_change_nothing_but_a_cut(frame: &[u8], parsed: &Parsed) {
    if matches!(parsed, Parsed::Fault(Fault::CutOff, _)) {
        return;
    }
    let longer = parse([frame, &[0x02; 64]].concat().as_slice());
    assert_eq!(longer, *parsed, "with 64 bytes behind it");
}
