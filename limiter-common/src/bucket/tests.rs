use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::clock::{Tick, WindowLength};
use crate::doubles::Plain;
use crate::key::Level;
use crate::word::{Fingerprint, MAX_VALUE};

fn window(ticks: u32) -> WindowLength {
    WindowLength::from_ticks(ticks).unwrap()
}

fn ask(key: u64, now: u64, window: WindowLength, limit: u32, cost: u32) -> Ask {
    let now = Tick(now);
    Ask {
        fingerprint: Fingerprint::new(key),
        now,
        window,
        end: window.end_of(now),
        limit,
        cost,
        more: cost,
        share: 0,
        span: life(window),
        known_from: 8,
        floor: Heat::Cold,
    }
}

fn has_room(bucket: &Plain, ask: &Ask) -> bool {
    look(bucket, ask).0 != Room::None
}

/// Where the key is, after a claim that was granted.
fn slot(bucket: &Plain, ask: &Ask) -> u32 {
    match find(bucket, ask) {
        Place::Own(slot) => slot,
        other => panic!("the key has no word: {other:?}"),
    }
}

fn granted(claim: Claim) -> bool {
    matches!(claim, Claim::Granted { .. })
}

/// What the words stand for: what each key used in which window.
#[derive(Default)]
struct Naive(HashMap<u64, (u64, u64)>);

impl Naive {
    /// What has to be granted: all that is wanted where plenty is left, else the least, else nothing.
    fn claim(&mut self, ask: &Ask) -> Option<u32> {
        let end = ask.window.end_of(ask.now).0;
        let (open, used) = self.0.entry(ask.fingerprint.get()).or_insert((end, 0));
        if *open != end {
            (*open, *used) = (end, 0);
        }
        let left = u64::from(ask.limit).saturating_sub(*used);
        let amount = match (u64::from(ask.cost), u64::from(ask.more)) {
            (cost, _) if cost > left => return None,
            (_, more) if more.saturating_mul(1 << ask.share) <= left => ask.more,
            _ => ask.cost,
        };
        *used = used.saturating_add(u64::from(amount));
        Some(amount)
    }
}

proptest! {
    /// As many keys as slots: nobody is displaced, and the words say just what the model says, over
    /// any pauses (the ends wrap at 262,144 ticks).
    #[test]
    fn claims_agree_with_a_naive_model(
        ticks in 1_u32..400,
        (limit, share) in prop_oneof![(0_u32..40, 0_u32..3), (0_u32..4_000, 3_u32..5)],
        steps in prop::collection::vec(
            (1_u64..9, 0_u64..300, 1_u32..10, 0_u32..64, any::<bool>()), 1..200,
        ),
        start in 17_000_000_000_u64..17_900_000_000,
    ) {
        let (bucket, mut naive, mut now) = (Plain::default(), Naive::default(), start);
        for (key, pause, cost, beyond, ahead) in steps {
            now = now.saturating_add(pause);
            let more = cost.saturating_add(beyond);
            let ask = Ask { more, share, ..ask(key, now, window(ticks), limit, cost) };
            let expected = naive.claim(&ask);
            let room = match expected {
                None => Room::None,
                Some(amount) if amount == more => Room::More,
                Some(_) => Room::Cost,
            };
            // At the place that a look found, or at the one that the claim finds itself.
            let claimed = if ahead {
                let (seen, place) = look(&bucket, &ask);
                prop_assert_eq!(seen, room);
                attempt(&bucket, &ask, place)
            } else {
                Some(claim(&bucket, &ask))
            };
            match claimed {
                Some(Claim::Granted { amount, .. }) => prop_assert_eq!(Some(amount), expected),
                other => prop_assert_eq!((other, expected), (Some(Claim::Spent), None)),
            }
        }
    }

    /// A claim that was taken back might as well not have been.
    #[test]
    fn a_refund_undoes_a_claim(
        limit in 1_u32..40,
        steps in prop::collection::vec((1_u64..9, 0_u64..30, 1_u32..10), 1..100),
    ) {
        let (one, other, mut now) = (Plain::default(), Plain::default(), 17_000_000_000_u64);
        for (key, pause, cost) in steps {
            now = now.saturating_add(pause);
            let again = ask(key, now, window(100), limit, cost);
            if granted(claim(&one, &again)) {
                refund(&one, &again, slot(&one, &again));
            }
            prop_assert_eq!(granted(claim(&one, &again)), granted(claim(&other, &again)));
        }
    }

    /// More keys than slots: whoever was refused keeps its place to the end of its window, and nobody
    /// passes more than its limit but by what a lost word held (under half of the limit, or one claim).
    #[test]
    fn a_crowd_displaces_no_key_at_its_limit(
        limit in 2_u32..40,
        crowd in prop::collection::vec(2_u64..1_000, 1..400),
    ) {
        let (bucket, now) = (Plain::default(), 17_000_000_050_u64);
        let heavy = ask(1, now, window(100), limit, 1);
        while granted(claim(&bucket, &heavy)) {}
        let mut passed: HashMap<u64, u32> = HashMap::new();
        for key in crowd {
            let answer = claim(&bucket, &ask(key, now, window(100), limit, 1));
            let count = passed.entry(key).or_default();
            *count = count.saturating_add(u32::from(granted(answer)));
            prop_assert!(!has_room(&bucket, &heavy), "the heavy key was displaced");
        }
        let in_place = bucket.0.borrow().iter().map(|word| word.value()).sum::<u32>();
        prop_assert!(in_place <= limit.saturating_mul(8));
    }
}

#[test]
fn a_bucket_full_of_spent_keys_can_not_judge_a_newcomer() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    for key in 1..9 {
        let ask = ask(key, now, window(100), 1, 1);
        assert!(granted(claim(&bucket, &ask)));
        assert!(!has_room(&bucket, &ask), "and is marked as spent by the refusal");
    }
    let newcomer = ask(9, now, window(100), 1, 1);
    assert_eq!(claim(&bucket, &newcomer), Claim::Crowded);
    // One tick after their windows' end, their slots are free.
    let later = ask(9, 17_000_000_101, window(100), 1, 1);
    assert_eq!(claim(&bucket, &later), Claim::Granted { amount: 1, known: None, displaced: false });
}

#[test]
fn one_packet_never_makes_a_slot_unmovable() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    for key in 1..9 {
        assert!(granted(claim(&bucket, &ask(key, now, window(100), 1, 1))));
    }
    let answer = claim(&bucket, &ask(9, now, window(100), 1, 1));
    assert!(matches!(answer, Claim::Granted { displaced: true, .. }), "{answer:?}");
}

#[test]
fn forged_sources_push_out_neither_a_total_nor_a_prefix() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    let coarse = |key, level| Ask { floor: floor(level), ..ask(key, now, window(100), 1_000, 1) };
    assert!(granted(claim(&bucket, &coarse(1, Level::Total))));
    assert!(granted(claim(&bucket, &coarse(2, Level::Prefix))));
    for key in 10..1_000 {
        // A limit of 1, met by the first packet: it is no warmer for that.
        assert!(granted(claim(&bucket, &ask(key, now, window(100), 1, 1))));
    }
    for (key, level) in [(1, Level::Total), (2, Level::Prefix)] {
        let claimed = claim(&bucket, &coarse(key, level));
        let kept = Claim::Granted { amount: 1, known: None, displaced: false };
        assert_eq!(claimed, kept, "{level:?}");
        assert_eq!(bucket.load(slot(&bucket, &coarse(key, level))).value(), 2, "{level:?}");
    }
}

#[test]
fn an_unlimited_pool_counts_to_the_end_of_its_word_and_stays_there() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    let ask = ask(1, now, window(100), UNLIMITED, MAX_VALUE / 2);
    for _ in 0..4 {
        assert!(granted(claim(&bucket, &ask)));
    }
    assert_eq!(bucket.load(slot(&bucket, &ask)).value(), MAX_VALUE);
}

#[test]
fn of_equally_warm_keys_the_least_used_goes_and_a_first_claim_displaces_no_second_one() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    let ask = |key| ask(key, now, window(100), 1_000, 1);
    // Key n claims n times: 1 is cold, all others are warm, 2 the least used of these.
    for key in 1..9 {
        (0..key).for_each(|_| assert!(granted(claim(&bucket, &ask(key)))));
    }
    for (newcomer, goes) in [(20, 1), (21, 20), (22, 21)] {
        let answer = claim(&bucket, &ask(newcomer));
        assert!(matches!(answer, Claim::Granted { displaced: true, .. }), "{answer:?}");
        assert!(!matches!(find(&bucket, &ask(goes)), Place::Own(_)), "{goes} is still there");
    }
    // The last newcomer comes a third time: then key 2 is the one that was used least.
    (0..2).for_each(|_| assert!(granted(claim(&bucket, &ask(22)))));
    assert!(granted(claim(&bucket, &ask(23))));
    assert!(!matches!(find(&bucket, &ask(2)), Place::Own(_)));
    assert!((3..9).all(|key| matches!(find(&bucket, &ask(key)), Place::Own(_))));
}

#[test]
fn an_address_is_worth_writing_down_at_the_eighth_claim_and_when_the_key_gets_hot() {
    for (limit, expected) in [(1_000, vec![8, 500]), (8, vec![4, 8]), (10, vec![5, 8])] {
        let (bucket, now) = (Plain::default(), 17_000_000_050);
        let ask = ask(1, now, window(100), limit, 1);
        let is_known = |_: &u32| match claim(&bucket, &ask) {
            Claim::Granted { known, .. } => known == Some(slot(&bucket, &ask)),
            other => panic!("{other:?}"),
        };
        let known: Vec<u32> = (1..=limit).filter(is_known).collect();
        assert_eq!(known, expected, "{limit}");
    }
}

#[test]
fn a_key_that_can_not_be_kept_gets_no_chunk() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    for key in 1..9 {
        let ask = ask(key, now, window(100), 1, 1);
        assert!(granted(claim(&bucket, &ask)) && !has_room(&bucket, &ask));
    }
    let newcomer = Ask { more: 64, ..ask(9, now, window(100), 1_000_000, 1) };
    assert_eq!(look(&bucket, &newcomer), (Room::Cost, Place::Full));
    let refused = Ask { limit: 0, ..newcomer };
    assert_eq!(look(&bucket, &refused), (Room::None, Place::Full));
    assert_eq!(attempt(&bucket, &refused, Place::Full), Some(Claim::Spent));
}

#[test]
fn a_place_found_before_is_checked_again() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    let (one, other) = (ask(1, now, window(100), 9, 1), ask(2, now, window(100), 9, 1));
    let (_, free) = look(&bucket, &one);
    assert!(granted(claim(&bucket, &one)));
    let own = find(&bucket, &one);
    assert_eq!(attempt(&bucket, &one, free), None, "the key is there meanwhile");
    assert_eq!(attempt(&bucket, &other, free), None, "another key is there meanwhile");
    assert_eq!(attempt(&bucket, &other, own), None, "it is another key's");
    let elsewhere = Place::Free((slot(&bucket, &one) + 1) % 8);
    assert_eq!(attempt(&bucket, &one, elsewhere), None, "one key, one slot");
    assert_eq!(bucket.0.borrow().iter().filter(|word| **word != Word::EMPTY).count(), 1);
    assert!(attempt(&bucket, &one, own).is_some_and(granted));
}

#[test]
fn places_come_back_from_their_numbers() {
    for place in [Place::Own(7), Place::Free(0), Place::Cold(3), Place::Full] {
        assert_eq!(Place::unpack(place.pack()), place);
    }
}
