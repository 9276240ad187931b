//! This CPU's tickets: the one look-up of the common packet, and how a ticket is filled.

use limiter_common::border::{Subject, Taken, Why};
use limiter_common::clock::{NANOS_PER_TICK, Tick, WindowLength};
use limiter_common::hash::ticket_place;
use limiter_common::layout::RuleSet;
use limiter_common::quantum::Quantum;
use limiter_common::ticket::{Answer, Holder, Moment, Ticket};
use limiter_common::want::Want;

use crate::maps;
use crate::take::take;

/// A ticket, and what is needed to judge by it.
struct Open {
    ticket: &'static mut Ticket,
    set: &'static RuleSet,
    holder: Holder,
    moment: Moment,
}

impl Open {
    #[inline(always)]
    fn find(source: u64, subject: u64, now: u64) -> Option<Self> {
        let subject = Subject(subject);
        let set = maps::set(subject)?;
        let place = ticket_place(maps::meta()?.seed(), source, subject.low());
        // SAFETY: this CPU's own map value, and nothing else on this CPU runs meanwhile.
        let ticket = unsafe { &mut *maps::ticket(place)? };
        let moment = Moment { now, life: set.life() };
        Some(Self { ticket, set, holder: Holder { source, subject }, moment })
    }
}

/// Judges a packet by all enforced rules of the subject's set.
#[inline(always)]
pub fn judge(source: u64, subject: Subject, now: u64, length: u32) -> Taken {
    let Some(open) = Open::find(source, subject.0, now) else {
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
    let Some(open) = Open::find(source, subject, now) else {
        return Taken::ONE.0;
    };
    let Some(notes) = maps::notes() else {
        return Taken::ONE.0;
    };
    let tick = Tick::from_unix_nanos(now);
    notes.source.set(source);
    notes.subject.set(subject);
    notes.tick.set(tick.0);
    let bytes = open.set.byte_shift();
    let want = open.ticket.want(open.holder, open.moment, length, bytes.is_some());
    let taken = take(want);
    let tick = Tick(notes.tick.get());
    match taken.why() {
        None => {
            let (packets, length_sum) = granted(taken, want);
            let bytes = bytes.map(|shift| Quantum::ceil(shift, length_sum) << shift);
            open.ticket.grant(packets, bytes, end(open.set.window(), tick), length);
        }
        Some(Why::NoRoom) => {
            let subject = Subject(notes.subject.get());
            if let Some(rule) = maps::rule(subject.generation(), taken.place()) {
                let refused_from = if rule.counts_packets() { 0 } else { length };
                open.ticket.refuse(taken, end(rule.window(), tick), refused_from);
            }
        }
        Some(Why::Changing) => {}
    }
    taken.0
}

/// Packets and bytes that were debited.
#[inline(always)]
fn granted(taken: Taken, want: Want) -> (u32, u32) {
    if taken == Taken::CHUNK { want.more() } else { want.least() }
}

/// The end of the window that holds `tick`, in Unix nanoseconds.
#[inline(always)]
fn end(window: WindowLength, tick: Tick) -> u64 {
    window.end_of(tick).0.wrapping_mul(NANOS_PER_TICK)
}
