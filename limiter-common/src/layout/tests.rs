//! Sets of rules against a naive reading of the rules in them.

#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test, as it should")]

use proptest::prelude::*;

use super::*;
use crate::bucket;

const WINDOWS: [u32; 6] = [1, 10, 15, 100, 600, 36_000];

fn rule(row: u32, window: u32, shift: Option<u32>, levels: u32) -> RuleEntry {
    let unit =
        shift.map_or(Unit::Packets, |shift| Unit::Bytes(Quantum::from_shift(shift).unwrap()));
    let window = WindowLength::from_ticks(window).unwrap();
    let rule = RuleEntry::new(row + 1, row, window, unit, row / 2);
    let levels = Level::ALL.into_iter().filter(|level| levels >> *level as u32 & 1 != 0);
    levels.fold(rule, |rule, level| rule.with_limit(level, UNLIMITED))
}

fn some_rules() -> impl Strategy<Value = Vec<RuleEntry>> {
    let rule =
        (0_u32..64, prop::sample::select(&WINDOWS[..]), prop::option::of(0_u32..7), 0_u32..8);
    let rule = rule.prop_map(|(row, window, shift, levels)| self::rule(row, window, shift, levels));
    prop::collection::vec(rule, 0..33)
}

proptest! {
    #[test]
    fn a_set_says_what_its_rules_say(
        rules in some_rules(), mask in any::<u32>(), shadow in any::<u32>(),
    ) {
        let there = (0..rules.len()).fold(0_u32, |bits, place| bits | 1 << place);
        let (enforce, shadow) = (mask & there & !shadow, mask & there & shadow);
        let set = RuleSet::new(enforce, shadow, &rules);
        prop_assert_eq!((set.enforced_bits(), set.shadow_bits()), (enforce, shadow));
        prop_assert_eq!((set.enforced(), set.shadow()), (enforce.count_ones(), shadow.count_ones()));
        let listed: Vec<u32> = (0..set.enforced() + set.shadow()).map(|i| set.place(i)).collect();
        let (first, rest) = listed.split_at(set.enforced() as usize);
        prop_assert!(first.is_sorted() && rest.is_sorted(), "in the policy's order: {listed:?}");
        for (i, place) in (0..).zip(&listed) {
            prop_assert_eq!(set.row(i), rules[*place as usize].row());
        }
        // What tickets go by are the enforced rules alone.
        let enforced: Vec<&RuleEntry> = first.iter().map(|place| &rules[*place as usize]).collect();
        for level in Level::ALL {
            let limits = enforced.iter().any(|rule| rule.limit(level).is_some());
            prop_assert_eq!(set.limits(level), limits);
        }
        let window = set.window().ticks();
        prop_assert!(enforced.iter().all(|rule| rule.window().ticks() % window == 0));
        let divides = |ticks: u32| enforced.iter().all(|rule| rule.window().ticks() % ticks == 0);
        if !enforced.is_empty() {
            prop_assert_eq!((1..=36_000).rev().find(|ticks| divides(*ticks)), Some(window));
        }
        let life = enforced.iter().map(|rule| u64::from(bucket::life(rule.window()))).max();
        prop_assert_eq!(set.life(), life.unwrap_or(0) * NANOS_PER_TICK);
        let shifts = enforced.iter().filter_map(|rule| match rule.unit() {
            Unit::Bytes(quantum) => Some(quantum.shift()),
            Unit::Packets => None,
        });
        prop_assert_eq!(set.byte_shift(), shifts.min());
        let groups: Vec<u32> = enforced.iter().map(|rule| rule.group()).collect();
        if let Some(first) = groups.first() {
            let second = groups.iter().find(|group| *group != first).unwrap_or(first);
            prop_assert_eq!(set.first_groups(), (*first, *second));
        }
    }
}

#[test]
fn no_rule_limits_nothing() {
    let set = RuleSet::new(0, 0, &[rule(3, 100, None, 7)]);
    assert_eq!(set, RuleSet::EMPTY);
    assert_eq!((set.enforced_bits(), set.shadow_bits(), set.byte_shift()), (0, 0, None));
    assert_eq!((set.life(), set.window()), (0, WindowLength::MIN));
}

#[test]
fn places_without_a_rule_are_left_out() {
    let set = RuleSet::new(0b101, 0b1010, &[rule(9, 100, None, 4), rule(5, 10, Some(2), 1)]);
    assert_eq!((set.enforced_bits(), set.shadow_bits()), (0b01, 0b10));
    assert_eq!((set.row(0), set.row(1)), (9, 5));
    assert_eq!((set.window().ticks(), set.byte_shift()), (100, None), "shadow has sets of its own");
}

#[test]
fn costs_are_packets_or_quanta_of_bytes() {
    assert_eq!(rule(0, 1, None, 0).cost((3, 4_000)), 3);
    assert_eq!(rule(0, 1, Some(6), 0).cost((3, 4_000)), 63);
    assert_eq!((rule(0, 1, None, 0).known_from(), rule(0, 1, Some(4), 0).known_from()), (8, 512));
    assert!(rule(0, 1, None, 0).counts_packets() && !rule(0, 1, Some(0), 0).counts_packets());
}
