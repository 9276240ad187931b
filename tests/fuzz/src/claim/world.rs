//! The bucket, the clock and the ledger; after each step, bucket and ledger have to agree on all.

use limiter_common::bucket::{
    Ask, Bucket, Claim, Place, Room, attempt, clear_dead, find, life, look, refund,
};
use limiter_common::clock::{Tick, WindowLength};
use limiter_common::doubles::Plain;
use limiter_common::word::{END_MASK, Fingerprint, Heat, RESERVED, Word};

use super::ledger::{Entry, Ledger};
use super::{KEYS, Step};

/// A time at which the ends in words wrap: 2026.
const WRAP: u64 = (END_MASK + 1) * 67_450;
/// The daemon clears dead words every hour.
const HOUR: u64 = 36_000;
const SLOTS: usize = 8;
/// A chunk is granted where four of it are left.
pub(super) const SHARE: u32 = 2;

#[derive(Clone, Copy)]
struct Rule {
    window: WindowLength,
    limit: u32,
}

pub(super) struct World {
    bucket: Plain,
    ledger: Ledger,
    rules: [Rule; 2],
    now: u64,
    swept: u64,
    /// Each key's last grant, and the slot it came from.
    last: [Option<(Ask, u32)>; KEYS as usize],
}

impl World {
    pub(super) fn new(rules: [(WindowLength, u32); 2], early: u64) -> Self {
        Self {
            bucket: Plain::default(),
            ledger: Ledger::default(),
            rules: rules.map(|(window, limit)| Rule { window, limit }),
            now: WRAP - early,
            swept: WRAP - early,
            last: [None; KEYS as usize],
        }
    }

    pub(super) fn take(&mut self, number: usize, step: Step) {
        match step {
            Step::Claim { key, cost, late, more } => {
                self.claim(key, &Ask { more, ..self.ask(key, cost, late) });
            }
            Step::Look { key, cost, late, more } => {
                self.look(&Ask { more, ..self.ask(key, cost, late) });
            }
            Step::Refund { key } => self.refund(key),
            Step::Wait { ticks } => self.wait(ticks),
            Step::Limit { key, limit } => self.rules[usize::from(key % 2)].limit = limit,
        }
        self.check(number, step);
    }

    fn ask(&self, key: u8, cost: u32, late: bool) -> Ask {
        let Rule { window, limit } = self.rules[usize::from(key % 2)];
        let now = Tick(self.now - u64::from(late));
        Ask {
            fingerprint: Fingerprint::new(u64::from(key) + 1),
            now,
            window,
            end: window.end_of(now),
            limit,
            cost,
            more: cost,
            share: SHARE,
            span: self.span(),
            known_from: 8,
            floor: Heat::Cold,
        }
    }

    fn claim(&mut self, key: u8, ask: &Ask) {
        let (expected, before) = (self.ledger.expects(ask), self.words());
        let known = self.ledger.entry(ask.fingerprint.get()).is_some();
        let place = find(&self.bucket, ask);
        let slot = Place::slot(place.pack());
        match attempt(&self.bucket, ask, place) {
            Some(Claim::Granted { amount, known: written, displaced }) => {
                assert_eq!(Some(amount), expected, "granted");
                assert_eq!(matches!(place, Place::Own(_)), known, "inserted");
                assert!(written.is_none_or(|written| known && written == slot), "address");
                self.replaced((!known).then_some(before[slot as usize]), displaced, ask);
                self.ledger.grant(ask, amount);
                self.last[usize::from(key)] = Some((Ask { cost: amount, ..*ask }, slot));
            }
            Some(Claim::Spent) => {
                assert_eq!(expected, None, "refused, but there is room");
                self.ledger.refuse(ask);
            }
            Some(Claim::Crowded) => {
                assert!(!known && before.iter().all(|word| self.is_kept(*word, ask)), "crowded");
            }
            Some(Claim::Contended) | None => panic!("contended, but there is nobody else"),
        }
    }

    /// Whoever was in the slot of a new key could be moved.
    fn replaced(&mut self, word: Option<Word>, displaced: bool, ask: &Ask) {
        let entry = word.and_then(|word| self.ledger.entry(fingerprint(word)));
        let needed = entry.is_some_and(|entry| entry.needs_its_slot(ask.now));
        assert_eq!(displaced, needed, "displaced: {entry:?}");
        let Some(word) = word.filter(|word| *word != Word::EMPTY) else {
            return;
        };
        assert!(!self.is_kept(word, ask), "{entry:?} was at half its limit or more, or refused");
        if let Some(entry) = entry.filter(|_| displaced) {
            let others = self.ledger.entries().map(|(_, other)| other).filter(|other| !other.kept);
            let least = others.map(|other| (other.warm, other.used)).min();
            assert_eq!(
                Some((entry.warm, entry.used)),
                least,
                "the coldest goes, then the least used"
            );
        }
        self.ledger.lose(fingerprint(word));
    }

    fn is_kept(&self, word: Word, ask: &Ask) -> bool {
        let entry = self.ledger.entry(fingerprint(word));
        entry.is_some_and(|entry| entry.kept && entry.needs_its_slot(ask.now))
    }

    fn look(&mut self, ask: &Ask) {
        let expected = self.ledger.expects(ask);
        let (room, place) = look(&self.bucket, ask);
        let expected_room = match expected {
            None => Room::None,
            // Who can't be kept here gets no chunk.
            Some(amount) if amount == ask.more && (place != Place::Full) => Room::More,
            Some(_) => Room::Cost,
        };
        assert_eq!(room, expected_room, "look");
        if expected.is_none() {
            self.ledger.refuse(ask);
        }
    }

    fn refund(&mut self, key: u8) {
        if let Some((ask, slot)) = self.last[usize::from(key)].take() {
            // Where the key was: it may have come back elsewhere since.
            let is_there = self.bucket.load(slot).belongs_to(ask.fingerprint);
            refund(&self.bucket, &ask, slot);
            if is_there {
                self.ledger.refund(&ask);
            }
        }
    }

    fn wait(&mut self, ticks: u64) {
        self.now += ticks;
        if self.now - self.swept < HOUR {
            return;
        }
        self.swept = self.now;
        let now = Tick(self.now);
        clear_dead(&self.bucket, now, self.span());
        let dead = |(key, entry): (u64, Entry)| (!entry.needs_its_slot(now)).then_some(key);
        let dead: Vec<u64> = self.ledger.entries().filter_map(dead).collect();
        dead.into_iter().for_each(|key| self.ledger.lose(key));
    }

    /// The longest life of a word under either rule.
    fn span(&self) -> u32 {
        self.rules.map(|rule| life(rule.window)).into_iter().max().unwrap_or(0)
    }

    fn words(&self) -> [Word; SLOTS] {
        *self.bucket.0.borrow()
    }

    /// Every key of the ledger has one slot, which says what the ledger says; there are no others.
    fn check(&self, number: usize, step: Step) {
        let mut found: Vec<(u64, u64, u64)> = self
            .words()
            .into_iter()
            .filter(|word| *word != Word::EMPTY)
            .inspect(|word| assert_ne!(word.value(), RESERVED, "step {number}: {step:?}"))
            .map(|word| (fingerprint(word), word.end(), u64::from(word.value())))
            .collect();
        found.sort_unstable();
        let entries = self.ledger.entries();
        let expected: Vec<_> =
            entries.map(|(key, entry)| (key, entry.end & END_MASK, entry.used)).collect();
        assert_eq!(found, expected, "step {number}, {step:?}: (key, end, used)");
    }
}

fn fingerprint(word: Word) -> u64 {
    (1..=u64::from(KEYS)).find(|key| word.belongs_to(Fingerprint::new(*key))).unwrap_or(0)
}
