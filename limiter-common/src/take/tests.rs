//! Taking from three levels of plain numbers, held against the promise as a sentence. With real buckets,
//! tickets and several CPUs: `cpus`.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "an overflow fails the test, as it should"
)]

mod cpus;

use std::cell::{Cell, RefCell};

use proptest::prelude::*;

use super::*;
use crate::clock::WindowLength;
use crate::layout::{RuleEntry, Unit};

const RULES: usize = 4;

impl Memory for Cell<u64> {
    fn get(&self) -> u64 {
        Cell::get(self)
    }

    fn set(&self, number: u64) {
        Cell::set(self, number);
    }
}

/// What is left for each rule, `None` where it doesn't limit the level.
type Left = [Option<u32>; RULES];

/// All pools as plain numbers of packets; what prefixes and totals gave and no source has yet. A thief
/// takes all of one pool between the look and the draw.
struct Plain {
    set: RuleSet,
    left: RefCell<[Left; Level::COUNT]>,
    ticket: [Cell<u32>; 2],
    thief: Cell<Option<(Level, usize)>>,
    calls: RefCell<Vec<(&'static str, Level)>>,
    memory: Cell<u64>,
}

impl Plain {
    fn new(rules: u32, left: [Left; Level::COUNT], thief: Option<(Level, usize)>) -> Self {
        let window = WindowLength::MIN;
        let entries: Vec<RuleEntry> =
            (0..4).map(|row| RuleEntry::new(row, row, window, Unit::Packets, row)).collect();
        Self {
            set: RuleSet::new(rules, 0, &entries),
            left: left.into(),
            ticket: Default::default(),
            thief: thief.into(),
            calls: RefCell::default(),
            memory: Cell::new(9),
        }
    }

    fn left(&self, level: Level, place: u32) -> Option<u32> {
        self.left.borrow()[level as usize][place as usize]
    }

    fn put(&self, level: Level, place: u32, left: u32) {
        self.left.borrow_mut()[level as usize][place as usize] = Some(left);
    }

    fn step(&self, level: Level, place: u32, cost: u32) -> Step {
        match self.left(level, place) {
            None => Step::Nothing,
            Some(left) if left < cost => Step::NoRoom,
            Some(left) => {
                self.put(level, place, left - cost);
                Step::Debited
            }
        }
    }
}

impl Pools for Plain {
    fn look(&self, level: Level, want: Want) -> Space {
        self.calls.borrow_mut().push(("look", level));
        room_each(&self.set, |place| match self.left(level, place) {
            Some(left) if left < want.least().0 => Room::None,
            Some(left) if left < want.more().0 => Room::Cost,
            _ => Room::More,
        })
    }

    fn draw(&self, level: Level, want: Want) -> Drawn {
        self.calls.borrow_mut().push(("draw", level));
        if let Some((robbed, place)) = self.thief.take_if_at(level)
            && let Some(left) = &mut self.left.borrow_mut()[robbed as usize][place]
        {
            *left = 0;
        }
        let cost = want.least().0;
        let drawn = draw_each(&self.set, &self.memory, |place| self.step(level, place, cost));
        if !drawn.complete() {
            give_back_each(drawn, |place| {
                self.put(level, place, self.left(level, place).unwrap_or(0) + cost);
            });
        } else if level != Level::Source {
            self.ticket[level as usize].set(cost);
        }
        drawn
    }

    fn spend(&self, want: Want) {
        self.ticket.iter().for_each(|ticket| ticket.set(ticket.get() - want.least().0));
    }
}

trait TakeIfAt {
    fn take_if_at(&self, level: Level) -> Option<(Level, usize)>;
}

impl TakeIfAt for Cell<Option<(Level, usize)>> {
    fn take_if_at(&self, level: Level) -> Option<(Level, usize)> {
        self.get().filter(|(at, _)| *at == level).inspect(|_| self.set(None))
    }
}

/// The first pool, coarse levels first, then rules in their order, that has less than this left.
fn first_below(left: &[Left; Level::COUNT], rules: u32, least: u32) -> Option<(Level, u32)> {
    let levels = Level::ALL.into_iter().zip(left);
    let pools = levels.flat_map(|(level, left)| (0..).zip(left).map(move |pool| (level, pool)));
    pools
        .filter(|(_, (place, left))| {
            rules >> place & 1 != 0 && left.is_some_and(|left| left < least)
        })
        .map(|(level, (place, _))| (level, place))
        .next()
}

/// All limited pools of the rules, less by so much.
fn less_by(mut left: [Left; Level::COUNT], rules: u32, amount: u32) -> [Left; Level::COUNT] {
    for level in &mut left {
        for (place, left) in level.iter_mut().enumerate().filter(|(at, _)| rules >> at & 1 != 0) {
            *left = left.map(|left| left.checked_sub(amount).unwrap_or_else(|| panic!("{place}")));
        }
    }
    left
}

fn left() -> impl Strategy<Value = [Left; Level::COUNT]> {
    let pool = proptest::option::weighted(0.8, prop_oneof![0_u32..3, 3_u32..40]);
    proptest::array::uniform3(proptest::array::uniform4(pool))
}

/// One packet, and a chunk for this many.
fn chunk(packets: u32) -> Want {
    Want::new((1, 60), (packets, packets * 60))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn all_pools_are_debited_or_none(
        left in left(), rules in 0_u32..16, packets in 1_u32..30,
    ) {
        let pools = Plain::new(rules, left, None);
        let (taken, debit) = match first_below(&left, rules, 1) {
            Some((level, place)) => (Taken::refused(Why::NoRoom, level, place), 0),
            None if packets > 1 && first_below(&left, rules, packets).is_none() => {
                (Taken::CHUNK, packets)
            }
            None => (Taken::ONE, 1),
        };
        prop_assert_eq!(take(&pools, chunk(packets)), taken);
        prop_assert_eq!(*pools.left.borrow(), less_by(left, rules, debit));
        prop_assert_eq!(&pools.ticket, &[Cell::new(0), Cell::new(0)], "all of it went to the source");
    }

    /// Whoever loses a race is out of nothing but what lies on the CPU's tickets for prefix and total.
    #[test]
    fn a_lost_race_debits_no_source_and_leaves_the_rest_on_tickets(
        left in left(), packets in 1_u32..30, at in 0_usize..3, robbed in 0..RULES,
    ) {
        let (rules, level) = (0b1111, Level::ALL[at]);
        let pools = Plain::new(rules, left, Some((level, robbed)));
        let taken = take(&pools, chunk(packets));
        if pools.thief.get().is_some() || left[at][robbed].is_none() {
            // A refusal before it came to that, or no such pool.
            return Ok(());
        }
        let wanted = if first_below(&left, rules, packets).is_none() { packets } else { 1 };
        let lost = Taken::refused(Why::NoRoom, level, robbed as u32);
        prop_assert_eq!(taken, if wanted > 1 { Taken::LESS } else { lost });
        let now = *pools.left.borrow();
        for coarse in [Level::Total, Level::Prefix] {
            let on_ticket = if coarse < level { wanted } else { 0 };
            prop_assert_eq!(pools.ticket[coarse as usize].get(), on_ticket);
        }
        let mut expected = left;
        for coarse in Level::ALL.into_iter().filter(|coarse| *coarse < level) {
            let pools = &mut expected[coarse as usize];
            pools.iter_mut().for_each(|left| *left = left.map(|left| left - wanted));
        }
        expected[at][robbed] = Some(0);
        prop_assert_eq!(now, expected);
    }
}

#[test]
fn less_than_a_chunk_is_left_and_then_one_packet_passes() {
    let left = [[Some(40), None, None, None]; 3];
    let pools = Plain::new(0b1111, left, Some((Level::Source, 0)));
    assert_eq!(take(&pools, chunk(10)), Taken::LESS);
    // The thief brings one back.
    pools.put(Level::Source, 0, 1);
    assert_eq!(take(&pools, chunk(10).one()), Taken::ONE);
    assert_eq!(pools.left(Level::Source, 0), Some(0));
}

#[test]
fn every_level_is_looked_at_before_any_is_drawn_from_and_sources_come_last() {
    let pools = Plain::new(1, [[Some(9), None, None, None]; 3], None);
    assert_eq!(take(&pools, chunk(1)), Taken::ONE);
    let levels = |what| Level::ALL.map(|level| (what, level));
    assert_eq!(*pools.calls.borrow(), [levels("look"), levels("draw")].concat());
}

#[test]
fn a_refused_prefix_asks_no_source() {
    let mut left = [[Some(9), None, None, None]; 3];
    left[Level::Prefix as usize][0] = Some(0);
    let pools = Plain::new(1, left, None);
    assert_eq!(take(&pools, chunk(1)), Taken::refused(Why::NoRoom, Level::Prefix, 0));
    assert_eq!(*pools.calls.borrow(), [("look", Level::Total), ("look", Level::Prefix)]);
}

#[test]
fn a_pool_that_keeps_changing_is_tried_eight_times_and_then_refused_as_such() {
    let (memory, tries) = (Cell::new(9), Cell::new(0));
    let set = Plain::new(0b10, [[None; RULES]; 3], None).set;
    let drawn = draw_each(&set, &memory, |_| {
        tries.set(tries.get() + 1);
        Step::Again
    });
    assert_eq!(tries.get(), TRIES);
    assert_eq!(drawn, Drawn::refused(0, Why::Changing, 1));
}

#[test]
fn steps_come_back_from_their_numbers() {
    for step in [Step::Nothing, Step::Debited, Step::NoRoom, Step::Again] {
        assert_eq!(Step::unpack(step.pack()), step);
    }
}
