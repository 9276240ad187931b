//! The program's own judging over maps of this process: one table, tickets and notes for each CPU. And a
//! record of what was claimed and what passed.

use std::cell::RefCell;
use std::collections::HashMap;

use super::START;
use crate::border::{Drawn, Subject, Taken};
use crate::bucket::{self, Bucket, Room};
use crate::clock::{Tick, WindowLength};
use crate::counters::RuleCount;
use crate::doubles::Plain;
use crate::hash::{KeyHash, Seed};
use crate::judge::{self, Maps, Notes, level, pool};
use crate::key::{Family, Key, Level, Source};
use crate::layout::{AddressEntry, Meta, OnFault, PolicyEntry, RuleEntry, RuleSet, Unit, VERSION};
use crate::take::Step;
use crate::ticket::{Answer, Ticket};
use crate::want::Want;
use crate::word::Word;

const SEED: Seed = Seed([0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03]);
/// So many that no key is displaced, and no ticket.
const BUCKETS: u32 = 1 << 12;
const TICKETS: u32 = 1 << 16;

/// By rule, key and window's end.
pub(super) type Used = HashMap<(u32, (u8, u64), u64), u64>;

/// The table, one set of rules, and what passed.
pub(super) struct Host {
    maps: &'static World,
    /// In quanta; a packet's bytes uncounted beyond their number.
    pub(super) passed: RefCell<Used>,
}

impl Host {
    /// Its maps live as long as the process, as the kernel's do; what isn't used takes no room.
    pub(super) fn new(cpus: u32, rules: Vec<RuleEntry>) -> Self {
        Self { maps: Box::leak(Box::new(World::new(cpus, rules))), passed: RefCell::default() }
    }

    /// What was claimed from the pools, in quanta.
    pub(super) fn claimed(&self) -> std::cell::Ref<'_, Used> {
        self.maps.claimed.borrow()
    }

    /// Judges a packet on a CPU.
    pub(super) fn packet(&self, cpu: usize, source: u64, length: u32, now: u64) -> Taken {
        let maps = Cpu { world: self.maps, cpu };
        let notes = maps.notes().unwrap();
        notes.source.set(source);
        notes.subject.set(Subject::new(1, 1, Family::V4).0);
        let taken = match judge::ask(maps, SEED, notes, now, length) {
            Answer::Pass => Taken::ONE,
            Answer::Refuse(taken) => taken,
            Answer::Ask => judge::fill(maps, notes, now, length),
        };
        assert_ne!(taken, Taken::LESS, "there is nobody else");
        if taken.why().is_none() {
            self.note(source, length, now);
        }
        taken
    }

    fn note(&self, source: u64, length: u32, now: u64) {
        for (place, rule) in (0..).zip(&self.maps.rules) {
            for level in Level::ALL.into_iter().filter(|level| rule.limit(*level).is_some()) {
                let amount = if rule.counts_packets() { 1 } else { length };
                let pool = pool_of(place, level, source, rule.window(), now);
                *self.passed.borrow_mut().entry(pool).or_default() += u64::from(amount);
            }
        }
    }

    /// Limit of the pool that refused a source, and what it passed.
    pub(super) fn of(&self, refused: Taken, source: u64) -> (u64, u64) {
        let window = self.maps.rules[refused.place() as usize].window();
        let pool = pool_of(refused.place(), refused.level(), source, window, START);
        let passed = self.passed.borrow().get(&pool).copied().unwrap_or(0);
        (self.limits(refused.place(), refused.level()).0, passed)
    }

    /// Limits in packets or bytes, for what passed, and in quanta, for what was claimed.
    pub(super) fn limits(&self, rule: u32, level: Level) -> (u64, u64) {
        let rule = &self.maps.rules[rule as usize];
        let quanta = rule.limit(level).map_or(0, u64::from);
        (quanta << shift(rule), quanta)
    }
}

fn pool_of(
    rule: u32,
    level: Level,
    source: u64,
    window: WindowLength,
    now: u64,
) -> (u32, (u8, u64), u64) {
    let key = Source::from_bits(Family::V4, source).key(level);
    (rule, (key.tag(), key.bits()), window.end_of(Tick::from_unix_nanos(now)).0)
}

fn shift(rule: &RuleEntry) -> u32 {
    match rule.unit() {
        Unit::Packets => 0,
        Unit::Bytes(quantum) => quantum.shift(),
    }
}

/// What lies in the kernel's maps.
struct World {
    meta: Meta,
    policy: PolicyEntry,
    rules: Vec<RuleEntry>,
    set: RuleSet,
    /// log2 of 8 × CPUs.
    share: u32,
    notes: Vec<Notes>,
    buckets: RefCell<HashMap<u32, &'static Plain>>,
    tickets: RefCell<HashMap<(usize, u32), *mut Ticket>>,
    claimed: RefCell<Used>,
}

impl World {
    fn new(cpus: u32, rules: Vec<RuleEntry>) -> Self {
        let span = rules.iter().map(|rule| bucket::life(rule.window())).max().unwrap();
        // SAFETY: numbers alone, for which zero is a value; as the kernel makes its maps.
        let notes = (0..cpus).map(|_| unsafe { std::mem::zeroed() }).collect();
        Self {
            meta: Meta {
                layout: VERSION,
                generation: 1,
                seed: SEED.0,
                total: KeyHash::of(SEED, Key::TOTAL).0,
                wall_offset: 0,
                heartbeat: 0,
                next_rule_id: 0,
                reserved: 0,
            },
            policy: PolicyEntry::new(1, span, |_| OnFault::Limit),
            set: RuleSet::new((1 << rules.len()) - 1, 0, &rules),
            rules,
            share: (8 * cpus).next_power_of_two().trailing_zeros(),
            notes,
            buckets: RefCell::default(),
            tickets: RefCell::default(),
            claimed: RefCell::default(),
        }
    }
}

/// The maps as a CPU sees them.
#[derive(Clone, Copy)]
struct Cpu {
    world: &'static World,
    cpu: usize,
}

struct Shared(&'static Plain);

impl Bucket for Shared {
    fn load(&self, slot: u32) -> Word {
        self.0.load(slot)
    }

    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        self.0.exchange(slot, old, new)
    }
}

impl Maps for Cpu {
    type Bucket = Shared;

    fn notes(self) -> Option<&'static Notes> {
        self.world.notes.get(self.cpu)
    }

    fn meta(self) -> Option<&'static Meta> {
        Some(&self.world.meta)
    }

    fn set(self, _: Subject) -> Option<&'static RuleSet> {
        Some(&self.world.set)
    }

    fn policy(self, _: u32) -> Option<&'static PolicyEntry> {
        Some(&self.world.policy)
    }

    fn rule(self, _: u32, place: u32) -> Option<&'static RuleEntry> {
        self.world.rules.get((place & 31) as usize)
    }

    fn ticket(self, number: u32) -> Option<&'static mut Ticket> {
        let mut tickets = self.world.tickets.borrow_mut();
        let new = || &raw mut *Box::leak(Box::<Ticket>::default());
        let ticket = *tickets.entry((self.cpu, number)).or_insert_with(new);
        // SAFETY: it lives for ever, and whoever judges a packet has each ticket open once at a time.
        Some(unsafe { &mut *ticket })
    }

    fn ticket_mask(self) -> u32 {
        TICKETS - 1
    }

    fn bucket(self, number: u32) -> Option<Shared> {
        let mut buckets = self.world.buckets.borrow_mut();
        Some(Shared(buckets.entry(number).or_insert_with(|| Box::leak(Box::default()))))
    }

    fn bucket_mask(self) -> u32 {
        BUCKETS - 1
    }

    fn touch(self, _: u32) {}

    fn share(self) -> u32 {
        self.world.share
    }

    fn set_address(self, _: u32, _: u32, _: AddressEntry) {}

    fn count(self, _: u32, what: RuleCount, _: u32) {
        panic!("{what:?}, but there is room for everybody");
    }

    fn look(self, name: u32, want: Want) -> Room {
        pool::look(self, name, want)
    }

    fn draw_level(self, level: Level, want: Want) -> Drawn {
        level::draw(self, level as u32, want)
    }

    fn draw(self, name: u32, want: Want) -> Step {
        let step = pool::draw(self, name, want);
        if step == Step::Debited {
            let (place, level) = (name & 31, Level::from_index(name >> 5));
            let rule = &self.world.rules[place as usize];
            let notes = self.notes().unwrap();
            let (source, now) = (notes.source.get(), notes.now.get());
            let pool = pool_of(place, level, source, rule.window(), now);
            let cost = u64::from(want.costs(rule).0);
            *self.world.claimed.borrow_mut().entry(pool).or_default() += cost;
        }
        assert!(
            matches!(step, Step::Debited | Step::Nothing),
            "{step:?}, but there is nobody else"
        );
        step
    }

    fn find(self, name: u32) {
        pool::find(self, name);
    }

    fn give_back(self, _: Drawn, _: u32, _: Want) {
        panic!("there is nobody else");
    }
}
