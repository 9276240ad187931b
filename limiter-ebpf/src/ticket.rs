//! This CPU's tickets: the one look-up of the common packet, and how a source's ticket is filled.

use limiter_common::border::{Subject, Taken, Why};
use limiter_common::hash::{Seed, ticket_place};
use limiter_common::key::{Level, Source};
use limiter_common::layout::RuleSet;
use limiter_common::ticket::{Answer, Holder, Moment, Ticket};
use limiter_common::want::Want;

use crate::maps::{self, Notes};
use crate::take::take;

/// A ticket, and what is needed to use it.
pub struct Open {
    pub number: u32,
    pub ticket: &'static mut Ticket,
    pub set: &'static RuleSet,
    pub holder: Holder,
    pub moment: Moment,
}

impl Open {
    /// The ticket of a source, or of its prefix or total.
    #[inline(always)]
    pub fn find(source: u64, level: Level, subject: Subject, now: u64) -> Option<Self> {
        Self::find_by(maps::meta()?.seed(), source, level, subject, now)
    }

    /// The same for who has the seed at hand.
    #[inline(always)]
    fn find_by(seed: Seed, source: u64, level: Level, subject: Subject, now: u64) -> Option<Self> {
        let set = maps::set(subject)?;
        let key = match level {
            Level::Source => source,
            _ => Source::from_bits(subject.family(), source).key(level).bits(),
        };
        let holder = Holder::new(key, level, subject);
        let place = match level {
            Level::Total => subject.set(),
            _ => ticket_place(seed, &holder),
        };
        let number = maps::ticket_number(level, place);
        let ticket = at(number)?;
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
    pub fn refuse(&mut self, taken: Taken, notes: &Notes) -> Taken {
        let subject = Subject(notes.subject.get());
        let Some(rule) = maps::rule(subject.generation(), taken.place()) else {
            return taken;
        };
        let taken = taken.with_row(rule.row());
        if taken.why() == Some(Why::NoRoom) {
            let from = if rule.counts_packets() { 0 } else { notes.length.get() };
            self.ticket.refuse(taken, from, notes.end_of(rule.window()).unix_nanos());
        }
        taken
    }

    /// Adds what was granted.
    #[inline(always)]
    pub fn add(&mut self, amount: (u32, u32), notes: &Notes) {
        let end = notes.end_of(self.set.window());
        self.ticket.add(amount, self.set.byte_shift(), end.unix_nanos());
    }
}

/// This CPU's ticket with a number.
#[inline(always)]
pub fn at(number: u32) -> Option<&'static mut Ticket> {
    // SAFETY: this CPU's own map value, and nothing else on this CPU runs meanwhile.
    maps::ticket_at(number).map(|ticket| unsafe { &mut *ticket })
}

/// Judges the packet in the notes by its source's ticket for its set of rules.
#[inline(always)]
pub fn ask(seed: Seed, notes: &Notes, now: u64, length: u32) -> Answer {
    let subject = Subject(notes.subject.get());
    match Open::find_by(seed, notes.source.get(), Level::Source, subject, now) {
        Some(open) => open.ticket.answer(open.holder, open.moment, length),
        None => Answer::Pass,
    }
}

/// Asks the pools, and notes on the ticket what they said.
#[inline(always)]
pub fn fill(notes: &Notes, now: u64, length: u32) -> Taken {
    notes.single.set(0);
    let taken = Taken(fill_once(now, length));
    if taken != Taken::LESS {
        return taken;
    }
    notes.single.set(1);
    Taken(fill_once(now, length))
}

/// A packed [`Taken`].
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn fill_once(now: u64, length: u32) -> u32 {
    let Some(notes) = maps::notes() else {
        return Taken::ONE.0;
    };
    notes.set_time(now, length);
    let subject = Subject(notes.subject.get());
    let Some(mut open) = Open::find(notes.source.get(), Level::Source, subject, now).map(Open::own)
    else {
        return Taken::ONE.0;
    };
    let want = Want(notes.forget(open.ticket.want(length, open.set.byte_shift()).0));
    let want = if notes.single.get() != 0 { want.one() } else { want };
    let taken = Taken(notes.forget(take(notes, open.set, want).0 as u64) as u32);
    if taken == Taken::LESS {
        return taken.0;
    }
    if taken.why().is_some() {
        return open.refuse(taken, notes).0;
    }
    open.add(granted(taken, want), notes);
    open.ticket.spend(1, length);
    taken.0
}

/// Packets and bytes that were debited.
#[inline(always)]
fn granted(taken: Taken, want: Want) -> (u32, u32) {
    if taken == Taken::CHUNK { want.more() } else { want.least() }
}
