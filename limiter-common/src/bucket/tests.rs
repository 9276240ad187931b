use std::cell::RefCell;
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::clock::{Tick, WindowLength};
use crate::key::Level;
use crate::word::{Fingerprint, MAX_VALUE};

/// Eight words and one thread.
#[derive(Default)]
struct Plain(RefCell<[Word; 8]>);

impl Default for Word {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Bucket for Plain {
    fn load(&self, slot: u32) -> Word {
        self.0.borrow()[slot as usize]
    }

    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        let word = &mut self.0.borrow_mut()[slot as usize];
        let same = *word == old;
        if same {
            *word = new;
        }
        same
    }
}

fn window(ticks: u32) -> WindowLength {
    WindowLength::from_ticks(ticks).unwrap()
}

fn ask(key: u64, now: u64, window: WindowLength, limit: u32, cost: u32) -> Ask {
    let span = life(window);
    let floor = Heat::Cold;
    Ask { fingerprint: Fingerprint::new(key), now: Tick(now), window, limit, cost, span, floor }
}

fn granted(claim: Claim) -> bool {
    matches!(claim, Claim::Granted { .. })
}

/// What the words stand for: what each key used in which window.
#[derive(Default)]
struct Naive(HashMap<u64, (u64, u64)>);

impl Naive {
    fn claim(&mut self, ask: &Ask) -> bool {
        let end = ask.window.end_of(ask.now).0;
        let (open, used) = self.0.entry(ask.fingerprint.get()).or_insert((end, 0));
        if *open != end {
            (*open, *used) = (end, 0);
        }
        let fits = used.saturating_add(u64::from(ask.cost)) <= u64::from(ask.limit);
        if fits {
            *used = used.saturating_add(u64::from(ask.cost));
        }
        fits
    }
}

proptest! {
    /// As many keys as slots: nobody is displaced, and the words say just what the model says, over
    /// any pauses (the ends wrap at 262,144 ticks).
    #[test]
    fn claims_agree_with_a_naive_model(
        ticks in 1_u32..400,
        limit in 0_u32..40,
        steps in prop::collection::vec((1_u64..9, 0_u64..300, 1_u32..10, any::<bool>()), 1..200),
        start in 17_000_000_000_u64..17_900_000_000,
    ) {
        let (bucket, mut naive, mut now) = (Plain::default(), Naive::default(), start);
        for (key, pause, cost, look) in steps {
            now = now.saturating_add(pause);
            let ask = ask(key, now, window(ticks), limit, cost);
            let expected = naive.claim(&ask);
            if look {
                prop_assert_eq!(has_room(&bucket, &ask), expected);
            }
            prop_assert_eq!(granted(claim(&bucket, &ask)), expected);
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
                refund(&one, &again);
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
    assert_eq!(claim(&bucket, &later), Claim::Granted { inserted: Some(1), displaced: false });
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
        assert_eq!(claimed, Claim::Granted { inserted: None, displaced: false }, "{level:?}");
    }
}

#[test]
fn an_unlimited_pool_counts_to_the_end_of_its_word_and_stays_there() {
    let (bucket, now) = (Plain::default(), 17_000_000_050);
    let ask = ask(1, now, window(100), UNLIMITED, MAX_VALUE / 2);
    for _ in 0..4 {
        assert!(granted(claim(&bucket, &ask)));
    }
    let slot = find(&bucket, &ask).pack() & 0xff;
    assert_eq!(bucket.load(slot).value(), MAX_VALUE);
}

#[test]
fn places_come_back_from_their_numbers() {
    for place in [Place::Own(7), Place::Free(0), Place::Cold(3), Place::Full] {
        assert_eq!(Place::unpack(place.pack()), place);
    }
}
