//! Finding a ticket: which one a key has for a set of rules, and what is needed to use it.

use super::{Maps, Notes};
use crate::border::{Subject, Taken, Why};
use crate::hash::{Seed, ticket_place};
use crate::key::{Level, Source};
use crate::layout::{COARSE_PAGES, MAX_SETS, PREFIX_TICKETS, RuleSet, TICKETS_PER_PAGE};
use crate::ticket::{Answer, Holder, Moment, Ticket};

/// A ticket, and what is needed to use it.
pub struct Open {
    /// Where it lies: [`Maps::ticket`].
    pub number: u32,
    /// The ticket, the holder's or another's.
    pub ticket: &'static mut Ticket,
    /// The rules that it is for.
    pub set: &'static RuleSet,
    /// Whose it must be.
    pub holder: Holder,
    /// When.
    pub moment: Moment,
}

impl Open {
    /// The ticket of a source, or of its prefix or total.
    #[inline(always)]
    pub fn find(
        maps: impl Maps,
        source: u64,
        level: Level,
        subject: Subject,
        now: u64,
    ) -> Option<Self> {
        Self::find_by(maps, maps.meta()?.seed(), source, level, subject, now)
    }

    /// The same for who has the seed at hand.
    #[inline(always)]
    pub fn find_by(
        maps: impl Maps,
        seed: Seed,
        source: u64,
        level: Level,
        subject: Subject,
        now: u64,
    ) -> Option<Self> {
        let holder = holder(source, level, subject);
        let place = match level {
            Level::Total => subject.set(),
            _ => ticket_place(seed, &holder),
        };
        Self::at(maps, number(level, place, maps.ticket_mask()), holder, subject, now)
    }

    /// The ticket with this number, for who has found it before.
    #[inline(always)]
    pub fn at(
        maps: impl Maps,
        number: u32,
        holder: Holder,
        subject: Subject,
        now: u64,
    ) -> Option<Self> {
        let set = maps.set(subject)?;
        let ticket = maps.ticket(number)?;
        Some(Self { number, ticket, set, holder, moment: Moment { now, life: set.life() } })
    }

    /// Makes it the holder's.
    #[inline(always)]
    pub fn own(self) -> Self {
        self.ticket.open(self.holder, self.moment);
        self
    }

    /// Notes the refusal of a packet; the answer is the refusal with its rule's counter row.
    #[inline(always)]
    pub fn refuse(&mut self, maps: impl Maps, taken: Taken, notes: &Notes) -> Taken {
        let subject = Subject(notes.subject.get());
        let Some(rule) = maps.rule(subject.generation(), taken.place()) else {
            return taken;
        };
        let taken = taken.with_row(rule.row());
        if taken.why() == Some(Why::NoRoom) {
            let from = if rule.counts_packets() { 0 } else { notes.length.get() };
            self.ticket.refuse(taken, from, notes.end_of(rule.window()).unix_nanos());
        }
        taken
    }
}

/// Whose ticket a source's packet wants at a level.
#[inline(always)]
pub(super) fn holder(source: u64, level: Level, subject: Subject) -> Holder {
    let key = match level {
        Level::Source => source,
        _ => Source::from_bits(subject.family(), source).key(level).bits(),
    };
    Holder::new(key, level, subject)
}

/// Adds what was granted for a set of rules to a ticket for it.
#[inline(always)]
pub(super) fn add(ticket: &mut Ticket, set: &RuleSet, amount: (u32, u32), notes: &Notes) {
    ticket.add(amount, set.byte_shift(), notes.end_of(set.window()).unix_nanos());
}

/// The number of a level's ticket at a place: any number; at the total level a set's.
#[inline(always)]
const fn number(level: Level, place: u32, mask: u32) -> u32 {
    match level {
        Level::Total => place & (MAX_SETS - 1),
        Level::Prefix => MAX_SETS.wrapping_add(place & (PREFIX_TICKETS - 1)),
        Level::Source => (COARSE_PAGES * TICKETS_PER_PAGE).wrapping_add(place & mask),
    }
}

/// Judges the packet in the notes by its source's ticket for its set of rules.
#[inline(always)]
#[must_use]
pub fn ask(maps: impl Maps, seed: Seed, notes: &Notes, now: u64, length: u32) -> Answer {
    let subject = Subject(notes.subject.get());
    match Open::find_by(maps, seed, notes.source.get(), Level::Source, subject, now) {
        Some(open) => open.ticket.answer(open.holder, open.moment, length),
        None => Answer::Pass,
    }
}
