//! A CPU's ticket for a source and a set of rules: how many more such packets may pass, each of them
//! **one token of every rule and level that applies**; or that they are refused, until when. The common
//! packet needs nothing else, whatever the number of rules and levels.
//!
//! A ticket belongs to one CPU, so nothing here is atomic. Its tokens were claimed from the pools before:
//! a ticket that goes stale, or that another source pushes out, only loses what it had left.

use crate::border::{Subject, Taken};
use crate::want::{MAX_CHUNK, Want};

/// A chunk is at most this part of what the ticket let pass in its window: what lies idle on one CPU stays
/// below 1 %, and senders of few packets park nothing.
const PASSED_PER_PACKET: u32 = 100;

/// Where a larger number of passed packets makes no difference.
const ENOUGH: u32 = MAX_CHUNK * PASSED_PER_PACKET;

/// [`Ticket::bytes`] where no rule counts bytes.
const NO_BYTES: u32 = u32::MAX;

/// One entry of map `TICKETS`; all zeros: nobody's.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticket {
    source: u64,
    /// Unix time in nanoseconds at which it goes stale: the earliest end of any window involved.
    end: u64,
    generation: u32,
    /// Bytes left, or [`NO_BYTES`]. Of a refusal: shorter frames must ask again.
    bytes: u32,
    set: u16,
    /// Packets left.
    packets: u16,
    /// Packets that passed with it in this window, up to [`ENOUGH`].
    passed: u16,
    /// [`Taken::low`] of the refusal, or 0.
    refusal: u16,
}

/// What a ticket says to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It passes; one packet was taken off the ticket.
    Pass,
    /// It is refused, for this reason.
    Refuse(Taken),
    /// The pools must be asked.
    Ask,
}

/// Whose ticket is meant.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    /// [`crate::key::Source::bits`].
    pub source: u64,
    /// Set of rules, family, generation.
    pub subject: Subject,
}

/// When: Unix time in nanoseconds, and how long any ticket of the set may live.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Now.
    pub now: u64,
    /// A ticket that would live longer was written by a clock that has gone back since: it is stale.
    pub life: u64,
}

impl Ticket {
    /// Judges a packet of this length by what the ticket knows.
    #[inline(always)]
    pub fn answer(&mut self, holder: Holder, moment: Moment, length: u32) -> Answer {
        if !self.holds(holder, moment) {
            return Answer::Ask;
        }
        if self.refusal != 0 {
            let refused = length >= self.bytes;
            return if refused { Answer::Refuse(Taken(self.refusal as u32)) } else { Answer::Ask };
        }
        if self.packets == 0 || self.bytes < length {
            return Answer::Ask;
        }
        self.spend(length);
        Answer::Pass
    }

    /// Whether it is this holder's, under this policy, and not yet stale.
    #[inline(always)]
    fn holds(&self, holder: Holder, Moment { now, life }: Moment) -> bool {
        let own = self.source == holder.source && self.set == holder.subject.low();
        let left = self.end.wrapping_sub(now).wrapping_sub(1);
        own && self.generation == holder.subject.generation() && left < life
    }

    #[inline(always)]
    fn spend(&mut self, length: u32) {
        self.packets = self.packets.wrapping_sub(1);
        if self.bytes != NO_BYTES {
            self.bytes = self.bytes.wrapping_sub(length);
        }
        if (self.passed as u32) < ENOUGH {
            self.passed = self.passed.wrapping_add(1);
        }
    }

    /// Makes it this holder's, if it isn't, and says what to ask the pools for. `bytes`: whether some rule
    /// counts them.
    #[inline(always)]
    pub fn want(&mut self, holder: Holder, moment: Moment, length: u32, bytes: bool) -> Want {
        if !self.holds(holder, moment) || self.refusal != 0 {
            let (subject, generation) = (holder.subject.low(), holder.subject.generation());
            *self = Self { source: holder.source, set: subject, generation, ..Self::default() };
        }
        let left = (self.packets as u32, if bytes { self.bytes } else { 0 });
        let chunk = chunk(self.passed as u32);
        let lacks = |packets: u32, bytes: u32| {
            (packets.saturating_sub(left.0), bytes.saturating_sub(left.1))
        };
        Want::new(lacks(1, length), lacks(chunk, length.wrapping_mul(chunk)))
    }

    /// Adds what the pools granted and lets the packet pass. `bytes` as granted (rules round up), `None` if
    /// no rule counts them.
    #[inline(always)]
    pub fn grant(&mut self, packets: u32, bytes: Option<u32>, end: u64, length: u32) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 2 × 64")]
        let packets = packets as u16;
        self.packets = self.packets.wrapping_add(packets);
        self.bytes = match bytes {
            Some(bytes) => self.bytes.saturating_add(bytes),
            None => NO_BYTES,
        };
        self.end = end;
        self.spend(length);
    }

    /// Notes that frames of this length and longer are refused until `end`; 0: all.
    #[inline(always)]
    pub fn refuse(&mut self, taken: Taken, end: u64, length: u32) {
        (self.packets, self.passed, self.end) = (0, 0, end);
        (self.refusal, self.bytes) = (taken.low(), length);
    }
}

/// How many packets to claim for at once, after so many.
#[inline(always)]
fn chunk(passed: u32) -> u32 {
    let part = passed / PASSED_PER_PACKET;
    if part == 0 { 1 } else { part }
}

const _: () = assert!(size_of::<Ticket>() == 32);

#[cfg(test)]
mod tests;
