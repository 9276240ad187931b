//! This CPU's tickets: the one look-up of the common packet, and how a source's ticket is filled.

use limiter_common::border::{Subject, Taken, Why};
use limiter_common::clock::Tick;
use limiter_common::hash::ticket_place;
use limiter_common::key::{Level, Source};
use limiter_common::layout::RuleSet;
use limiter_common::ticket::{Answer, Holder, Moment, Ticket};
use limiter_common::want::Want;

use crate::maps::{self, Notes};
use crate::take::take;

/// A ticket, and what is needed to use it.
pub struct Open {
    pub ticket: &'static mut Ticket,
    pub set: &'static RuleSet,
    pub holder: Holder,
    pub moment: Moment,
}

impl Open {
    /// The ticket of a source, or of its prefix or total.
    #[inline(always)]
    pub fn find(source: u64, level: Level, subject: Subject, now: u64) -> Option<Self> {
        let set = maps::set(subject)?;
        let key = match level {
            Level::Source => source,
            _ => Source::from_bits(subject.family(), source).key(level).bits(),
        };
        let holder = Holder::new(key, level, subject);
        let place = match level {
            Level::Total => subject.set(),
            _ => ticket_place(maps::meta()?.seed(), &holder),
        };
        // SAFETY: this CPU's own map value, and nothing else on this CPU runs meanwhile.
        let ticket = unsafe { &mut *maps::ticket(level, place)? };
        Some(Self { ticket, set, holder, moment: Moment { now, life: set.life() } })
    }

    /// Makes it the holder's.
    #[inline(always)]
    pub fn own(self) -> Self {
        self.ticket.open(self.holder, self.moment);
        self
    }

    /// Notes the refusal of a packet.
    #[inline(always)]
    pub fn refuse(&mut self, taken: Taken, notes: &Notes) {
        let subject = Subject(notes.subject.get());
        if let Some(rule) = maps::rule(subject.generation(), taken.place()) {
            let from = if rule.counts_packets() { 0 } else { notes.length.get() };
            let end = rule.window().end_of(Tick(notes.tick.get()));
            self.ticket.refuse(taken, from, end.unix_nanos());
        }
    }

    /// Adds what was granted.
    #[inline(always)]
    pub fn add(&mut self, amount: (u32, u32), notes: &Notes) {
        let end = self.set.window().end_of(Tick(notes.tick.get()));
        self.ticket.add(amount, self.set.byte_shift(), end.unix_nanos());
    }
}

/// Judges a packet by all enforced rules of the subject's set.
#[inline(always)]
pub fn judge(source: u64, subject: Subject, now: u64, length: u32) -> Taken {
    let Some(open) = Open::find(source, Level::Source, subject, now) else {
        return Taken::ONE;
    };
    match open.ticket.answer(open.holder, open.moment, length) {
        Answer::Pass => Taken::ONE,
        Answer::Refuse(taken) => taken,
        Answer::Ask => Taken(fill(source, subject.0, now, length)),
    }
}

/// Asks the pools, and notes on the ticket what they said. A packed [`Taken`].
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn fill(source: u64, subject: u64, now: u64, length: u32) -> u32 {
    let Some(notes) = maps::notes() else {
        return Taken::ONE.0;
    };
    notes.set(source, subject, now, length);
    let Some(mut open) = Open::find(source, Level::Source, Subject(subject), now).map(Open::own)
    else {
        return Taken::ONE.0;
    };
    let want = open.ticket.want(length, open.set.byte_shift());
    let taken = take(notes, open.set, want);
    match taken.why() {
        None => {
            open.add(granted(taken, want), notes);
            open.ticket.spend(1, length);
        }
        Some(Why::NoRoom) => open.refuse(taken, notes),
        Some(Why::Changing) => {}
    }
    taken.0
}

/// Packets and bytes that were debited.
#[inline(always)]
fn granted(taken: Taken, want: Want) -> (u32, u32) {
    if taken == Taken::CHUNK { want.more() } else { want.least() }
}
