//! The kernel's glue in short, around the real tickets, claims and buckets; and a record of what passed.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use super::START;
use crate::border::{Drawn, Space, Subject, Taken, Why};
use crate::bucket::{self, Ask, Bucket, Claim, Place, Room};
use crate::clock::{Tick, WindowLength};
use crate::hash::{KeyHash, Seed};
use crate::key::{Family, Level, Source};
use crate::layout::{RuleEntry, RuleSet, Unit};
use crate::take::{Pools, Step, draw_each, room_each, take};
use crate::ticket::{Answer, Cover, Holder, Moment, Ticket};
use crate::want::Want;
use crate::word::Word;

const SEED: Seed = Seed([0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03]);
/// So many that no key is displaced.
const BUCKETS: usize = 1 << 12;

struct Words([Cell<u64>; 8]);

impl Bucket for Words {
    fn load(&self, slot: u32) -> Word {
        Word(self.0[slot as usize].get())
    }

    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        let word = &self.0[slot as usize];
        let same = word.get() == old.0;
        if same {
            word.set(new.0);
        }
        same
    }
}

/// By rule, key and window's end.
pub(super) type Used = HashMap<(u32, (u8, u64), u64), u64>;

/// The table, one set of rules, and what passed.
pub(super) struct Host {
    table: Vec<Words>,
    rules: Vec<RuleEntry>,
    set: RuleSet,
    /// log2 of 8 × CPUs.
    share: u32,
    tickets: RefCell<Vec<HashMap<(u64, u16), Ticket>>>,
    /// In quanta; a packet's bytes uncounted beyond their number.
    pub(super) passed: RefCell<Used>,
    pub(super) claimed: RefCell<Used>,
}

impl Host {
    pub(super) fn new(cpus: u32, rules: Vec<RuleEntry>) -> Self {
        Self {
            table: (0..BUCKETS).map(|_| Words(Default::default())).collect(),
            set: RuleSet::new((1 << rules.len()) - 1, 0, &rules),
            rules,
            share: (8 * cpus).next_power_of_two().trailing_zeros(),
            tickets: RefCell::new(vec![HashMap::new(); cpus as usize]),
            passed: RefCell::default(),
            claimed: RefCell::default(),
        }
    }

    /// Judges a packet on a CPU.
    pub(super) fn packet(&self, cpu: usize, source: u64, length: u32, now: u64) -> Taken {
        let packet = Packet::new(self, cpu, source, length, now);
        let taken = match packet
            .ticket(Level::Source, |it, holder| it.answer(holder, packet.moment(), length))
        {
            Answer::Pass => Taken::ONE,
            Answer::Refuse(taken) => taken,
            Answer::Ask => packet.fill(),
        };
        if taken.why().is_none() {
            packet.note(&self.passed, |rule| if rule.counts_packets() { 1 } else { length });
        }
        taken
    }

    /// Limit of the pool that refused a source, and what it passed.
    pub(super) fn of(&self, refused: Taken, source: u64) -> (u64, u64) {
        let key = Source::from_bits(Family::V4, source).key(refused.level());
        let window = self.rules[refused.place() as usize].window();
        let pool = (
            refused.place(),
            (key.tag(), key.bits()),
            window.end_of(Tick::from_unix_nanos(START)).0,
        );
        let passed = self.passed.borrow().get(&pool).copied().unwrap_or(0);
        (self.limits(refused.place(), refused.level()).0, passed)
    }

    /// Limits in packets or bytes, for what passed, and in quanta, for what was claimed.
    pub(super) fn limits(&self, rule: u32, level: Level) -> (u64, u64) {
        let rule = &self.rules[rule as usize];
        let quanta = rule.limit(level).map_or(0, u64::from);
        (quanta << shift(rule), quanta)
    }
}

fn shift(rule: &RuleEntry) -> u32 {
    match rule.unit() {
        Unit::Packets => 0,
        Unit::Bytes(quantum) => quantum.shift(),
    }
}

/// The notes of a packet.
struct Packet<'a> {
    host: &'a Host,
    cpu: usize,
    source: Source,
    length: u32,
    now: u64,
    /// By level, what the look found; `None`: nothing to draw.
    room: [Cell<Option<Room>>; 2],
    places: RefCell<HashMap<(u8, u32), Place>>,
}

impl<'a> Packet<'a> {
    fn new(host: &'a Host, cpu: usize, source: u64, length: u32, now: u64) -> Self {
        let source = Source::from_bits(Family::V4, source);
        let (room, places) = Default::default();
        Self { host, cpu, source, length, now, room, places }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, life: self.host.set.life() }
    }

    fn end_of(&self, window: WindowLength) -> Tick {
        window.end_of(Tick::from_unix_nanos(self.now))
    }

    /// This CPU's ticket for the packet's key at a level.
    fn ticket<T>(&self, level: Level, with: impl FnOnce(&mut Ticket, Holder) -> T) -> T {
        let subject = Subject::new(1, 1, self.source.family());
        let holder = Holder::new(self.source.key(level).bits(), level, subject);
        let mut tickets = self.host.tickets.borrow_mut();
        with(tickets[self.cpu].entry((holder.key(), holder.name())).or_default(), holder)
    }

    fn fill(&self) -> Taken {
        let set = &self.host.set;
        let want = self.ticket(Level::Source, |ticket, holder| {
            ticket.open(holder, self.moment());
            ticket.want(self.length, set.byte_shift())
        });
        let taken = take(self, want);
        assert_ne!(taken, Taken::LESS, "there is nobody else");
        if taken.why().is_some() {
            return self.refuse(Level::Source, taken);
        }
        let granted = if taken == Taken::CHUNK { want.more() } else { want.least() };
        self.ticket(Level::Source, |ticket, _| {
            ticket.add(granted, set.byte_shift(), self.end_of(set.window()).unix_nanos());
            ticket.spend(1, self.length);
        });
        taken
    }

    fn refuse(&self, level: Level, taken: Taken) -> Taken {
        let rule = &self.host.rules[taken.place() as usize];
        let from = if rule.counts_packets() { 0 } else { self.length };
        let end = self.end_of(rule.window()).unix_nanos();
        self.ticket(level, |ticket, _| ticket.refuse(taken, from, end));
        taken
    }

    fn cover(&self, level: Level, want: Want) -> Cover {
        self.ticket(level, |ticket, holder| {
            ticket.open(holder, self.moment());
            ticket.cover(want, self.length, self.host.set.byte_shift())
        })
    }

    fn ask(&self, level: Level, place: u32, (cost, more): (u32, u32)) -> Option<(&Words, Ask)> {
        let rule = &self.host.rules[place as usize];
        let hash = KeyHash::of(SEED, self.source.key(level));
        let words = &self.host.table[hash.bucket(rule.group(), BUCKETS as u32 - 1) as usize];
        let span = self.host.rules.iter().map(|rule| bucket::life(rule.window())).max()?;
        let ask = Ask {
            fingerprint: hash.fingerprint(rule.id()),
            now: Tick::from_unix_nanos(self.now),
            window: rule.window(),
            end: self.end_of(rule.window()),
            limit: rule.limit(level)?,
            cost,
            more,
            share: self.host.share,
            span,
            known_from: rule.known_from(),
            floor: bucket::floor(level),
        };
        Some((words, ask))
    }

    fn look_each(&self, level: Level, want: Want) -> Space {
        room_each(&self.host.set, |place| {
            let costs = want.costs(&self.host.rules[place as usize]);
            let Some((words, ask)) = self.ask(level, place, costs) else {
                return Room::More;
            };
            let (room, found) = bucket::look(words, &ask);
            self.places.borrow_mut().insert((level as u8, place), found);
            room
        })
    }

    fn draw_each(&self, level: Level, want: Want) -> Drawn {
        draw_each(&self.host.set, &Cell::new(0), |place| {
            let (cost, _) = want.costs(&self.host.rules[place as usize]);
            match self.ask(level, place, (cost, cost)) {
                Some((words, ask)) if cost != 0 => {
                    let found = self.places.borrow()[&(level as u8, place)];
                    let claim = bucket::attempt(words, &ask, found);
                    let is_granted = matches!(claim, Some(Claim::Granted { displaced: false, .. }));
                    assert!(is_granted, "{claim:?}, but there is nobody else");
                    self.add(&self.host.claimed, level, place, cost);
                    Step::Debited
                }
                _ => Step::Nothing,
            }
        })
    }

    fn add(&self, to: &RefCell<Used>, level: Level, place: u32, amount: u32) {
        let key = self.source.key(level);
        let end = self.end_of(self.host.rules[place as usize].window()).0;
        let mut to = to.borrow_mut();
        *to.entry((place, (key.tag(), key.bits()), end)).or_default() += u64::from(amount);
    }

    fn note(&self, to: &RefCell<Used>, amount: impl Fn(&RuleEntry) -> u32) {
        for (place, rule) in (0..).zip(&self.host.rules) {
            for level in Level::ALL.into_iter().filter(|level| rule.limit(*level).is_some()) {
                self.add(to, level, place, amount(rule));
            }
        }
    }
}

impl Pools for Packet<'_> {
    fn look(&self, level: Level, want: Want) -> Space {
        if !self.host.set.limits(level) {
            return Space::MORE;
        }
        if level == Level::Source {
            return self.look_each(level, want);
        }
        match self.cover(level, want) {
            Cover::Enough => Space::MORE,
            Cover::Refused(taken) => Space::new(Room::None, taken.place()),
            Cover::Lacks(lacks) => {
                let space = self.look_each(level, lacks);
                if space.room() == Room::None {
                    self.refuse(level, Taken::refused(Why::NoRoom, level, space.place()));
                }
                self.room[level as usize].set(Some(space.room()));
                space
            }
        }
    }

    fn draw(&self, level: Level, want: Want) -> Drawn {
        if !self.host.set.limits(level) {
            return Drawn(0);
        }
        if level == Level::Source {
            return self.draw_each(level, want);
        }
        let (Some(room), Cover::Lacks(lacks)) =
            (self.room[level as usize].get(), self.cover(level, want))
        else {
            return Drawn(0);
        };
        let lacks = if room == Room::More { lacks.chunk() } else { lacks.one() };
        let drawn = self.draw_each(level, lacks);
        let set = &self.host.set;
        let end = self.end_of(set.window()).unix_nanos();
        self.ticket(level, |ticket, _| ticket.add(lacks.least(), set.byte_shift(), end));
        drawn
    }

    fn spend(&self, want: Want) {
        let (packets, bytes) = want.least();
        for level in [Level::Total, Level::Prefix] {
            if self.host.set.limits(level) {
                self.ticket(level, |ticket, _| ticket.spend(packets, bytes));
            }
        }
    }
}
