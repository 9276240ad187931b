//! Every interleaving of three threads (with at most three preemptions) around one bucket: claims,
//! insertion, roll-over, displacement, refunds. Run by `cargo xtask test`; by hand:
//! `RUSTFLAGS="--cfg loom" cargo test -p limiter-common --test loom --release`.
//!
//! The bucket has two slots, so that "full" and "elsewhere" take few steps to reach.
#![cfg(loom)]

#[path = "loom/daemon.rs"]
mod daemon;
#[path = "loom/found.rs"]
mod found;

use limiter_common::bucket::{
    Ask, Bucket, Claim, Place, Room, attempt, claim, find, life, look, refund,
};
use limiter_common::clock::{Tick, WindowLength};
use limiter_common::word::{Fingerprint, Heat, RESERVED, Word};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;

const WINDOW: WindowLength = match WindowLength::from_ticks(100) {
    Some(window) => window,
    None => panic!(),
};
/// In the middle of a window that ends at tick 10,100.
const NOW: Tick = Tick(10_050);
const END: Tick = Tick(10_100);
const OLD_END: Tick = Tick(10_000);

struct Pair([AtomicU64; 2]);

impl Bucket for Pair {
    const SLOTS: u32 = 2;

    fn load(&self, slot: u32) -> Word {
        Word(self.0[slot as usize].load(Ordering::Relaxed))
    }

    /// BPF's compare-and-swap is a full barrier. Loom takes SeqCst for acquire and release only, so
    /// the barrier is spelled out.
    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        fence(Ordering::SeqCst);
        let swapped = self.0[slot as usize]
            .compare_exchange(old.0, new.0, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok();
        fence(Ordering::SeqCst);
        swapped
    }
}

impl Pair {
    fn new(words: [Word; 2]) -> Arc<Self> {
        Arc::new(Self(words.map(|word| AtomicU64::new(word.0))))
    }

    fn words(&self) -> [Word; 2] {
        [self.load(0), self.load(1)]
    }

    /// The key's only word; none or two are errors where one is expected.
    fn only(&self, key: u64) -> Word {
        let own: Vec<Word> = self
            .words()
            .into_iter()
            .filter(|word| word.belongs_to(Fingerprint::new(key)))
            .collect();
        assert_eq!(own.len(), 1, "one key, one slot: {own:?}");
        own[0]
    }

    fn places(&self, key: u64) -> usize {
        self.words().iter().filter(|word| word.belongs_to(Fingerprint::new(key))).count()
    }
}

fn ask(key: u64, now: Tick, limit: u32) -> Ask {
    Ask {
        fingerprint: Fingerprint::new(key),
        now,
        window: WINDOW,
        end: WINDOW.end_of(now),
        limit,
        cost: 1,
        more: 1,
        share: 0,
        span: life(WINDOW),
        known_from: 8,
        floor: Heat::Cold,
    }
}

fn word(key: u64, end: Tick, heat: Heat, value: u32) -> Word {
    Word::new(Fingerprint::new(key), end, heat, value)
}

fn granted(answer: Claim) -> u32 {
    u32::from(matches!(answer, Claim::Granted { .. }))
}

/// A claim that begins once.
fn once(bucket: &Pair, ask: &Ask) -> Option<Claim> {
    attempt(bucket, ask, find(bucket, ask))
}

/// Each further one multiplies the runs; two already reach every pair of steps of two threads.
const PREEMPTIONS: usize = 3;

fn model(test: impl Fn() + Sync + Send + 'static) {
    model_with(PREEMPTIONS, test);
}

fn model_with(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

/// Runs three claims at once and returns their answers.
fn three(bucket: &Arc<Pair>, asks: [Ask; 3]) -> [Claim; 3] {
    let [first, second, third] = asks;
    let others = [first, second].map(|ask| {
        let bucket = bucket.clone();
        thread::spawn(move || claim(&*bucket, &ask))
    });
    let third = claim(&**bucket, &third);
    let [first, second] = others.map(|other| other.join().unwrap());
    [first, second, third]
}

#[test]
fn three_claims_on_one_key_take_exactly_what_is_left() {
    model(|| {
        let bucket = Pair::new([word(5, END, Heat::Cold, 8), Word::EMPTY]);
        let answers = three(&bucket, [ask(5, NOW, 10); 3]);
        assert_eq!(answers.map(granted).iter().sum::<u32>(), 2, "{answers:?}");
        assert_eq!(bucket.only(5).value(), 10);
    });
}

#[test]
fn three_first_claims_make_one_word_and_pass_no_more_than_the_limit() {
    // Insertion takes the most steps of all: a third preemption takes minutes.
    model_with(2, || {
        let bucket = Pair::new([Word::EMPTY; 2]);
        let answers = three(&bucket, [ask(5, NOW, 2); 3]);
        let granted = answers.map(granted).iter().sum::<u32>();
        assert!(granted <= 2, "{answers:?}");
        // Whoever gave up had met others at every try, so someone got in.
        assert!(granted >= 1, "{answers:?}");
        assert_eq!(bucket.only(5).value(), granted);
    });
}

#[test]
fn cpus_whose_clocks_differ_by_a_tick_choose_different_slots_and_still_make_one_word() {
    model_with(2, || {
        // The first slot's key ended at NOW: a CPU at NOW must leave it alone and takes the second
        // slot, CPUs a tick later find the first one free.
        let bucket = Pair::new([word(7, NOW, Heat::Cold, 1), Word::EMPTY]);
        let later = Tick(NOW.0 + 1);
        let answers = three(&bucket, [ask(4, NOW, 2), ask(4, later, 2), ask(4, later, 2)]);
        let granted = answers.map(granted).iter().sum::<u32>();
        assert!((1..=2).contains(&granted), "{answers:?}");
        assert_eq!(bucket.only(4).value(), granted, "{answers:?}");
    });
}

#[test]
fn a_reservation_of_a_late_cpu_is_not_taken_for_a_word_by_the_next_window() {
    // One try each: the third preemption is the one that matters, and more tries take minutes.
    model(|| {
        // As above, but the tick between the clocks is an edge of the window. Whoever is in the next
        // window must not make a word of what the late one has only reserved.
        let (late, next) = (Tick(END.0 - 1), END);
        let bucket = Pair::new([word(7, late, Heat::Cold, 1), Word::EMPTY]);
        let others = [late, next].map(|now| {
            let bucket = bucket.clone();
            thread::spawn(move || once(&bucket, &ask(4, now, 2)))
        });
        let third = once(&bucket, &ask(4, next, 2));
        let [first, second] = others.map(|other| other.join().unwrap());
        assert!(bucket.places(4) <= 1, "{first:?} {second:?} {third:?} {:?}", bucket.words());
    });
}

#[test]
fn a_new_window_begins_once_and_a_late_cpu_does_not_reopen_the_old_one() {
    model(|| {
        let bucket = Pair::new([word(5, OLD_END, Heat::Spent, 2), Word::EMPTY]);
        let late = Tick(OLD_END.0 - 1);
        let answers = three(&bucket, [ask(5, OLD_END, 2), ask(5, late, 2), ask(5, OLD_END, 2)]);
        assert!(answers.map(granted).iter().sum::<u32>() <= 2, "{answers:?}");
        let word = bucket.only(5);
        assert_eq!(word.end(), END.low());
        assert_eq!(word.value(), answers.map(granted).iter().sum::<u32>());
    });
}

#[test]
fn displacement_takes_the_cold_key_and_never_the_hot_or_spent_one() {
    for kept in [Heat::Hot, Heat::Spent] {
        model(move || {
            let bucket = Pair::new([word(4, END, Heat::Cold, 1), word(6, END, kept, 7)]);
            // The cold key, and two newcomers that both want its slot.
            let answers = three(&bucket, [ask(4, NOW, 10), ask(8, NOW, 10), ask(10, NOW, 10)]);
            assert_eq!(bucket.only(6), word(6, END, kept, 7), "{answers:?}");
            // Nobody was charged for another: the other slot holds one key with just its own claims.
            let other = bucket.words()[0];
            assert!(other.value() <= 2 && other.value() != RESERVED, "{other:?} {answers:?}");
        });
    }
}

#[test]
fn a_displaced_key_gains_at_most_what_its_lost_word_held() {
    model(|| {
        let held = 4;
        let bucket = Pair::new([word(4, END, Heat::Cold, held), word(6, END, Heat::Spent, 9)]);
        let answers = three(&bucket, [ask(4, NOW, 5), ask(8, NOW, 5), ask(4, NOW, 5)]);
        let again = granted(answers[0]) + granted(answers[2]);
        assert!(held + again <= 5 + held, "{answers:?}");
        assert!(bucket.places(4) <= 1, "{answers:?}");
        assert!(bucket.places(8) <= 1, "{answers:?}");
    });
}

#[test]
fn a_slot_left_behind_goes_to_one_key_while_its_own_key_returns() {
    model(|| {
        // Key 4's window is over for more than a tick: its slot is free for key 8, and key 4 returns.
        let bucket = Pair::new([word(4, OLD_END, Heat::Spent, 9), word(6, END, Heat::Spent, 9)]);
        let answers = three(&bucket, [ask(4, NOW, 1), ask(8, NOW, 1), ask(4, NOW, 1)]);
        assert!(granted(answers[0]) + granted(answers[2]) <= 2, "{answers:?}");
        assert!(bucket.places(4) <= 1 && bucket.places(8) <= 1);
        assert_eq!(bucket.only(6).value(), 9, "no foreign key is charged");
    });
}

#[test]
fn looks_and_refunds_never_make_room_that_was_not_there() {
    model(|| {
        let bucket = Pair::new([word(5, END, Heat::Warm, 1), Word::EMPTY]);
        let [one, two] = [0, 1].map(|_| {
            let bucket = bucket.clone();
            thread::spawn(move || granted(claim(&*bucket, &ask(5, NOW, 2))))
        });
        // This thread takes a token and gives it back: another pool had refused.
        let ask = ask(5, NOW, 2);
        let room = look(&*bucket, &ask).0 != Room::None;
        if room && granted(claim(&*bucket, &ask)) == 1 {
            let Place::Own(slot) = find(&*bucket, &ask) else {
                panic!("the key has no word: {:?}", bucket.words());
            };
            refund(&*bucket, &ask, slot);
        }
        let passed = one.join().unwrap() + two.join().unwrap();
        assert!(passed <= 1);
        assert_eq!(bucket.only(5).value(), 1 + passed);
    });
}
