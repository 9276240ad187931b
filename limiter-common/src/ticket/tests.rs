//! A ticket against a naive model of one, and the edges of its life.

#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test, as it should")]

use proptest::prelude::*;

use super::*;
use crate::border::Why;
use crate::key::Family;

const SECOND: u64 = 1_000_000_000;
const NOW: u64 = 1_800_000_000 * SECOND;
/// Of windows of 1 s: [`crate::bucket::life`].
const LIFE: u64 = 2 * SECOND;

fn subject(set: u32, generation: u32, family: Family) -> Subject {
    Subject::new(set, generation, family)
}

fn holder(key: u64) -> Holder {
    Holder::new(key, Level::Source, subject(7, 3, Family::V4))
}

fn at(now: u64) -> Moment {
    Moment { now, life: LIFE }
}

/// A ticket of key 1 until the end of this second, with so much on it.
fn ticket(packets: u32, bytes: u32, shift: Option<u32>) -> Ticket {
    let mut ticket = Ticket::default();
    ticket.open(holder(1), at(NOW));
    ticket.add((packets, bytes), shift, NOW + SECOND);
    ticket
}

/// What a refusal at this length looks like on a ticket.
fn refusal(row: u32) -> Taken {
    Taken::refused(Why::NoRoom, Level::Prefix, 31).with_row(row)
}

/// What the ticket should know, in plain numbers.
struct Naive {
    packets: u32,
    bytes: u32,
    passed: u32,
    end: u64,
}

impl Naive {
    fn chunk(&self) -> u32 {
        (self.passed / 100).clamp(1, 64)
    }

    /// So much is missing for so many packets of this length, bytes in whole quanta of 2^shift.
    fn lacks(&self, packets: u32, length: u32, shift: u32) -> (u32, u32) {
        let bytes = (packets * length).saturating_sub(self.bytes);
        (packets.saturating_sub(self.packets), bytes.next_multiple_of(1 << shift))
    }
}

proptest! {
    /// Packets of any lengths over any time, each refill what the ticket asked for (all of the chunk, or
    /// just the packet): it passes what it was given and no more, and asks for the chunk that is due.
    #[test]
    fn it_passes_what_it_was_granted_and_asks_for_the_right_chunk(
        shift in prop::option::of(0_u32..7),
        steps in prop::collection::vec((60_u32..1_515, 0_u64..SECOND / 20, any::<bool>()), 1..800),
    ) {
        let (mut ticket, mut now) = (Ticket::default(), NOW);
        let mut naive = Naive { packets: 0, bytes: 0, passed: 0, end: 0 };
        for (length, pause, plenty) in steps {
            now += pause / 64;
            if now >= naive.end {
                naive = Naive { packets: 0, bytes: 0, passed: 0, end: 0 };
            }
            let fits = naive.packets > 0 && (shift.is_none() || naive.bytes >= length);
            let answer = ticket.answer(holder(1), at(now), length);
            prop_assert_eq!(answer, if fits { Answer::Pass } else { Answer::Ask });
            if !fits {
                ticket.open(holder(1), at(now));
                let want = ticket.want(length, shift);
                let (one, chunk) = match shift {
                    Some(shift) => (
                        naive.lacks(1, length, shift),
                        naive.lacks(naive.chunk(), length, shift),
                    ),
                    None => ((1, length), (naive.chunk(), naive.chunk() * length)),
                };
                prop_assert_eq!((want.least(), want.more()), (one, chunk));
                let granted = if plenty { want.more() } else { want.least() };
                naive.end = now - now % SECOND + SECOND;
                ticket.add(granted, shift, naive.end);
                ticket.spend(1, length);
                naive.packets += granted.0;
                naive.bytes += granted.1;
            }
            naive.packets -= 1;
            naive.passed += 1;
            if shift.is_some() {
                naive.bytes -= length;
            }
        }
    }
}

#[test]
fn a_chunk_is_a_hundredth_of_what_passed_from_1_to_64() {
    let mut ticket = ticket(0, 0, None);
    for passed in 0..20_000_u32 {
        assert_eq!(ticket.want(60, None).more().0, (passed / 100).clamp(1, 64), "{passed}");
        ticket.add((1, 0), None, NOW + SECOND);
        assert_eq!(ticket.answer(holder(1), at(NOW), 60), Answer::Pass);
    }
}

#[test]
fn the_next_window_begins_with_single_packets_again() {
    let mut ticket = ticket(0, 0, None);
    for _ in 0..1_000 {
        ticket.add((1, 0), None, NOW + SECOND);
        ticket.spend(1, 60);
    }
    assert_eq!(ticket.want(60, None).more().0, 10);
    ticket.open(holder(1), at(NOW + SECOND));
    assert_eq!(ticket.want(60, None).more().0, 1);
}

#[test]
fn bytes_and_packets_each_end_it() {
    let mut two_packets = ticket(2, 1_000, Some(0));
    assert_eq!(two_packets.answer(holder(1), at(NOW), 400), Answer::Pass);
    assert_eq!(two_packets.answer(holder(1), at(NOW), 601), Answer::Ask, "bytes are short");
    assert_eq!(two_packets.want(601, Some(0)).least(), (0, 1));
    assert_eq!(two_packets.answer(holder(1), at(NOW), 600), Answer::Pass);
    assert_eq!(two_packets.answer(holder(1), at(NOW), 0), Answer::Ask, "packets are short");
    assert_eq!(two_packets.want(100, Some(4)).least(), (1, 112));
}

#[test]
fn without_a_rule_over_bytes_no_length_is_too_long() {
    let mut ticket = ticket(2, 0, None);
    assert_eq!(ticket.answer(holder(1), at(NOW), 1 << 20), Answer::Pass);
    assert_eq!(ticket.answer(holder(1), at(NOW), u32::MAX - 1), Answer::Pass);
    assert_eq!(ticket.answer(holder(1), at(NOW), 60), Answer::Ask);
    assert_eq!(ticket.want(60, None).least(), (1, 60), "counters want the length all the same");
}

#[test]
fn what_is_refused_depends_on_the_length() {
    let mut ticket = ticket(3, 300, Some(0));
    ticket.refuse(refusal(9), 500, NOW + 9 * SECOND);
    assert_eq!(ticket.answer(holder(1), at(NOW), 500), Answer::Refuse(refusal(9)));
    assert_eq!(ticket.answer(holder(1), at(NOW), 9_000), Answer::Refuse(refusal(9)));
    assert_eq!(ticket.answer(holder(1), at(NOW), 499), Answer::Ask, "the pools may have that");
    assert_eq!(ticket.answer(holder(1), at(NOW), 300), Answer::Pass);
    // Something is left, so it ends with the window that the tokens are of.
    assert_eq!(ticket.answer(holder(1), at(NOW + SECOND), 500), Answer::Ask);
}

#[test]
fn an_empty_ticket_is_refused_to_the_end_of_the_rules_window() {
    let mut ticket = ticket(0, 0, None);
    ticket.refuse(refusal(63), 0, NOW + 2 * SECOND);
    for length in [0, 60, 70_000] {
        let last = at(NOW + 2 * SECOND - 1);
        assert_eq!(ticket.answer(holder(1), last, length), Answer::Refuse(refusal(63)));
    }
    assert_eq!(ticket.answer(holder(1), at(NOW + 2 * SECOND), 60), Answer::Ask);
}

#[test]
fn lengths_beyond_16_bits_are_refused_alike() {
    let mut ticket = ticket(0, 0, Some(0));
    ticket.refuse(refusal(1), 100_000, NOW + SECOND);
    assert_eq!(ticket.answer(holder(1), at(NOW), 65_535), Answer::Refuse(refusal(1)));
    assert_eq!(ticket.answer(holder(1), at(NOW), 65_534), Answer::Ask);
}

/// Bytes that were left as a rule of a longer window refused are of a window that is over.
#[test]
fn bytes_do_not_outlive_their_window_under_a_refusal() {
    let mut ticket = ticket(0, 900, Some(0));
    ticket.refuse(refusal(1), 1_000, NOW + 2 * SECOND);
    ticket.open(holder(1), at(NOW + SECOND));
    assert_eq!(ticket.want(400, Some(0)).least(), (1, 400));
}

#[test]
fn it_goes_stale_at_its_end_and_if_the_clock_goes_back_beyond_its_life() {
    let fresh = ticket(9, 0, None);
    let holds = |now| fresh.holds(holder(1), at(now));
    assert!(holds(NOW) && holds(NOW + SECOND - 1));
    assert!(!holds(NOW + SECOND) && !holds(NOW + 1_000 * SECOND));
    let end = NOW + SECOND;
    assert!(holds(end - LIFE), "late by less than a life");
    assert!(!holds(end - LIFE - 1) && !holds(0));
    assert!(!Ticket::default().holds(Holder { key: 0, name: 0, generation: 0 }, at(NOW)));
}

#[test]
fn another_holder_finds_nothing_and_starts_from_nothing() {
    let full = || {
        let mut ticket = ticket(9, 900, Some(0));
        ticket.refuse(refusal(1), 1_000, NOW + SECOND);
        (0..7).for_each(|_| ticket.spend(1, 1));
        ticket
    };
    let same = subject(7, 3, Family::V4);
    let others = [
        Holder::new(2, Level::Source, same),
        Holder::new(1, Level::Prefix, same),
        Holder::new(1, Level::Total, same),
        Holder::new(1, Level::Source, same.with_set(8)),
        Holder::new(1, Level::Source, subject(7, 4, Family::V4)),
        Holder::new(1, Level::Source, subject(7, 5, Family::V4)),
        Holder::new(1, Level::Source, subject(7, 3, Family::V6)),
    ];
    for other in others {
        let mut ticket = full();
        assert_eq!(ticket.answer(other, at(NOW), 60), Answer::Ask, "{other:?}");
        assert_eq!(ticket, full(), "asking changes nothing");
        ticket.open(other, at(NOW));
        let mut expected = Ticket::default();
        expected.open(other, at(NOW));
        assert_eq!(ticket, expected, "{other:?}");
    }
    let mut own = full();
    own.open(holder(1), at(NOW));
    assert_eq!(own, full());
}

proptest! {
    /// What a prefix's ticket lacks is what is wanted beyond what it has; once it was given that, it has
    /// enough; and it never asks for more ahead than its own chunk, or the source's.
    #[test]
    fn a_coarse_ticket_covers_what_sources_want(
        passed in 0_u32..8_000,
        has in (0_u32..70, 0_u32..100_000),
        chunk in 1_u32..65,
        length in 60_u32..1_515,
        shift in prop::option::of(0_u32..7),
    ) {
        let mut coarse = ticket(0, 0, shift);
        for _ in 0..passed {
            coarse.add((1, 0), shift, NOW + SECOND);
            coarse.spend(1, 0);
        }
        coarse.add(has, shift, NOW + SECOND);
        let naive = Naive { packets: has.0, bytes: has.1, passed, end: NOW + SECOND };
        let want = Want::new((1, length), (chunk, chunk * length));
        let enough = has.0 >= chunk && (shift.is_none() || has.1 >= chunk * length);
        match coarse.cover(want, length, shift) {
            Cover::Refused(taken) => prop_assert!(false, "{taken:?}"),
            Cover::Enough => prop_assert!(enough),
            Cover::Lacks(lacks) => {
                prop_assert!(!enough);
                let ahead = chunk.max(naive.chunk());
                let (one, more) = match shift {
                    Some(shift) => {
                        (naive.lacks(1, length, shift), naive.lacks(ahead, length, shift))
                    }
                    None => (
                        (1_u32.saturating_sub(has.0), length),
                        (ahead.saturating_sub(has.0), ahead * length),
                    ),
                };
                prop_assert_eq!((lacks.least(), lacks.more()), (one, more));
                let mut one = coarse;
                one.add(lacks.least(), shift, NOW + SECOND);
                prop_assert_eq!(one.cover(want.one(), length, shift), Cover::Enough);
                coarse.add(lacks.more(), shift, NOW + SECOND);
                prop_assert_eq!(coarse.cover(want.chunk(), length, shift), Cover::Enough);
            }
        }
    }
}

#[test]
fn a_refused_prefix_covers_nobody() {
    let mut ticket = ticket(0, 0, None);
    ticket.refuse(refusal(5), 0, NOW + SECOND);
    assert_eq!(ticket.cover(Want::new((1, 60), (1, 60)), 60, None), Cover::Refused(refusal(5)));
}
