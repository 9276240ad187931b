//! The daemon beside the program: it clears dead words through a mapping of the table, moves the clock,
//! and switches policies. Every interleaving with CPUs that claim from the same bucket or read a policy.
//!
//! Grace periods are the kernel's: that a wait for one outlasts every packet that was under way is taken
//! from it, and stands here as a lock that packets hold to read and the wait takes to write.

use limiter_common::bucket::clear_dead;
use loom::sync::RwLock;
use loom::sync::atomic::AtomicU32;

use super::*;

/// The bucket as the daemon has it mapped: its swap is sequentially consistent, without the full
/// barriers around it that BPF's has.
struct Mapped<'a>(&'a Pair);

impl Bucket for Mapped<'_> {
    const SLOTS: u32 = 2;

    fn load(&self, slot: u32) -> Word {
        self.0.load(slot)
    }

    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        let slot = &self.0.0[slot as usize];
        slot.compare_exchange(old.0, new.0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }
}

fn sweep(bucket: &Pair, now: Tick) -> u32 {
    clear_dead(&Mapped(bucket), now, life(WINDOW))
}

/// Two claims beside a sweep at `now`.
fn two_beside_a_sweep(bucket: &Arc<Pair>, asks: [Ask; 2], now: Tick) -> [Claim; 2] {
    let claims = asks.map(|ask| {
        let bucket = bucket.clone();
        thread::spawn(move || claim(&*bucket, &ask))
    });
    sweep(bucket, now);
    claims.map(|claim| claim.join().unwrap())
}

#[test]
fn a_dead_key_that_comes_back_while_it_is_cleared_has_one_window_in_one_slot() {
    model(|| {
        let bucket = Pair::new([word(5, OLD_END, Heat::Spent, 9), Word::EMPTY]);
        let answers = two_beside_a_sweep(&bucket, [ask(5, NOW, 1); 2], NOW);
        assert_eq!(answers.map(granted).iter().sum::<u32>(), 1, "{answers:?}");
        assert_eq!(bucket.only(5).value(), 1, "{answers:?}");
    });
}

#[test]
fn newcomers_to_a_slot_that_is_being_cleared_keep_what_they_claim() {
    model(|| {
        let living = word(6, END, Heat::Spent, 9);
        let bucket = Pair::new([word(5, OLD_END, Heat::Spent, 9), living]);
        let answers = two_beside_a_sweep(&bucket, [ask(4, NOW, 2); 2], NOW);
        let granted = answers.map(granted).iter().sum::<u32>();
        assert!((1..=2).contains(&granted), "{answers:?}");
        assert_eq!(bucket.only(4).value(), granted, "{answers:?}");
        assert_eq!(bucket.only(6), living, "{answers:?}");
    });
}

#[test]
fn a_word_lives_to_the_tick_of_its_end_so_that_a_late_cpu_does_not_reopen_its_window() {
    model(|| {
        // Spent; its window ends with this tick, and one CPU is still in it.
        let bucket = Pair::new([word(5, OLD_END, Heat::Spent, 2), Word::EMPTY]);
        let late = Tick(OLD_END.0 - 1);
        let answers = two_beside_a_sweep(&bucket, [ask(5, late, 2), ask(5, OLD_END, 2)], OLD_END);
        let word = bucket.only(5);
        assert_eq!(word.end(), END.low(), "{answers:?}");
        assert_eq!(word.value(), answers.map(granted).iter().sum::<u32>(), "{answers:?}");
    });
}

#[test]
fn what_was_free_before_is_cleared_and_nothing_else() {
    model(|| {
        let dead = word(5, OLD_END, Heat::Hot, 7);
        let bucket = Pair::new([dead, word(6, END, Heat::Cold, 1)]);
        let other = bucket.clone();
        let claimed = thread::spawn(move || granted(claim(&*other, &ask(6, NOW, 9))));
        assert_eq!(sweep(&bucket, Tick(OLD_END.0)), 0);
        assert_eq!(sweep(&bucket, Tick(OLD_END.0 + 1)), 1);
        assert_eq!(bucket.places(5), 0);
        let claimed = claimed.join().unwrap();
        assert_eq!(bucket.only(6).value(), 1 + claimed);
    });
}

/// The program's clock: an offset that the daemon moves, read once by each packet.
struct Clock {
    ticks: AtomicU64,
    under_way: RwLock<()>,
}

impl Clock {
    fn at(now: Tick) -> Arc<Self> {
        Arc::new(Self { ticks: AtomicU64::new(now.0), under_way: RwLock::new(()) })
    }

    /// A packet, from its reading of the clock to its claim.
    fn packet(&self, bucket: &Pair, limit: u32) -> (Tick, u32) {
        let _under_way = self.under_way.read().unwrap();
        let now = Tick(self.ticks.load(Ordering::Relaxed));
        (now, granted(claim(bucket, &ask(5, now, limit))))
    }

    /// The daemon: the clock jumps, packets that saw the old time get through, dead words are cleared.
    fn jump(&self, bucket: &Pair, to: Tick) {
        self.ticks.store(to.0, Ordering::Relaxed);
        drop(self.under_way.write().unwrap());
        sweep(bucket, to);
    }
}

#[test]
fn a_jump_of_the_clock_lets_no_packet_that_is_under_way_reopen_the_old_window() {
    model_with(2, || {
        // One is left in the present window. An hour later it is over, and its word dead.
        let bucket = Pair::new([word(5, END, Heat::Warm, 1), Word::EMPTY]);
        let (clock, later) = (Clock::at(NOW), Tick(NOW.0 + 36_000));
        let packets = [0, 1].map(|_| {
            let (clock, bucket) = (clock.clone(), bucket.clone());
            thread::spawn(move || clock.packet(&bucket, 2))
        });
        clock.jump(&bucket, later);
        let packets = packets.map(|packet| packet.join().unwrap());
        assert!(bucket.places(5) <= 1, "{packets:?}");
        // A packet of the new time may take the word over before one of the old time is through; these
        // two can't agree on a window (a later clock is believed by one window at most).
        if packets.iter().all(|(now, _)| *now == NOW) {
            assert!(packets.map(|(_, granted)| granted).iter().sum::<u32>() <= 1, "{packets:?}");
        }
    });
}

/// Both halves of the policy maps (a policy is two numbers here, equal if they are of one policy), and
/// the generation whose lowest bit says which half packets read. What `Maps::install` of the daemon does
/// with maps, in the same order.
struct Policies {
    halves: [[AtomicU32; 2]; 2],
    generation: AtomicU32,
    under_way: RwLock<()>,
}

impl Policies {
    fn new() -> Arc<Self> {
        let half = |policy| [AtomicU32::new(policy), AtomicU32::new(policy)];
        let (halves, generation) = ([half(0), half(1)], AtomicU32::new(1));
        Arc::new(Self { halves, generation, under_way: RwLock::new(()) })
    }

    /// A packet reads the generation once, then two entries. On a CPU that reorders loads, the second
    /// kind depends on the first by its address, which loom can't see: acquire stands for that.
    fn packet(&self) -> [u32; 2] {
        let _under_way = self.under_way.read().unwrap();
        let generation = self.generation.load(Ordering::Acquire);
        let half = &self.halves[(generation & 1) as usize];
        [0, 1].map(|entry: usize| half[entry].load(Ordering::Relaxed))
    }

    fn install(&self, policy: u32) {
        drop(self.under_way.write().unwrap());
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        let idle = &self.halves[(generation & 1) as usize];
        idle.iter().for_each(|entry| entry.store(policy, Ordering::Relaxed));
        self.generation.store(generation, Ordering::Release);
    }
}

#[test]
fn no_packet_sees_half_of_a_policy_however_fast_they_change() {
    model(|| {
        let policies = Policies::new();
        let packets = [0, 1].map(|_| {
            let policies = policies.clone();
            thread::spawn(move || [policies.packet(), policies.packet()])
        });
        policies.install(2);
        policies.install(3);
        for packets in packets.map(|packet| packet.join().unwrap()) {
            for [one, other] in packets {
                assert_eq!(one, other, "{packets:?}");
            }
            assert!(packets[0] <= packets[1], "a policy came back: {packets:?}");
        }
    });
}
