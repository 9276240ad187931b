//! A CPU's ticket for a key and a set of rules: how many more packets may pass, each of them **one token
//! of every rule** that limits the key; or that they are refused, until when.
//!
//! A source's ticket holds tokens of all levels: the common packet needs nothing else, whatever the number
//! of rules and levels. Prefixes and totals have tickets of their own, from which those of sources are
//! filled: else a flood of new sources would have all CPUs fight over one word.
//!
//! A ticket belongs to one CPU, so nothing here is atomic. Its tokens were claimed from the pools before:
//! a ticket that goes stale, or that another key pushes out, only loses what it had left.

use crate::border::{Subject, Taken};
use crate::key::Level;
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
    key: u64,
    /// Unix time in nanoseconds at which it goes stale: the earliest end of any window involved.
    end: u64,
    /// Bytes left, or [`NO_BYTES`].
    bytes: u32,
    generation: u16,
    /// [`Holder::name`].
    name: u16,
    /// Packets left.
    packets: u16,
    /// Packets that passed with it in this window, up to [`ENOUGH`].
    passed: u16,
    /// [`Taken::low`] of a refusal, or 0.
    refusal: u16,
    /// Frames of this length and longer are refused.
    refused_from: u16,
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

/// What a prefix's or a total's ticket says to a source's that wants to be filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cover {
    /// It holds as much as the packet, and its chunk, want.
    Enough,
    /// Nothing is left.
    Refused(Taken),
    /// The pools must be asked for so much.
    Lacks(Want),
}

/// Whose ticket is meant.
#[derive(Clone, Copy, Debug)]
pub struct Holder {
    key: u64,
    name: u16,
    generation: u16,
}

impl Holder {
    /// The key's bits ([`crate::key::Key::bits`]) at a level, for a set of rules.
    #[inline(always)]
    #[must_use]
    pub const fn new(key: u64, level: Level, subject: Subject) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "no ticket lives for 65,536 policies")]
        let generation = subject.generation() as u16;
        Self { key, name: subject.low() | (level as u16) << 11, generation }
    }

    /// Set, family, level.
    #[inline(always)]
    #[must_use]
    pub const fn name(&self) -> u16 {
        self.name
    }

    /// The key's bits.
    #[inline(always)]
    #[must_use]
    pub const fn key(&self) -> u64 {
        self.key
    }
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
    /// Judges a packet of this length by what a source's ticket knows.
    #[inline(always)]
    pub fn answer(&mut self, holder: Holder, moment: Moment, length: u32) -> Answer {
        if !self.holds(holder, moment) {
            return Answer::Ask;
        }
        if self.refuses(length) {
            return Answer::Refuse(Taken(self.refusal as u32));
        }
        if self.packets == 0 || self.bytes < length {
            return Answer::Ask;
        }
        self.spend(1, length);
        Answer::Pass
    }

    /// Whether it is this holder's, under this policy, and not yet stale.
    #[inline(always)]
    #[must_use]
    pub fn holds(&self, holder: Holder, Moment { now, life }: Moment) -> bool {
        let left = self.end.wrapping_sub(now).wrapping_sub(1);
        self.key == holder.key
            && self.name == holder.name
            && self.generation == holder.generation
            && left < life
    }

    #[inline(always)]
    fn refuses(&self, length: u32) -> bool {
        self.refusal != 0 && length >= self.refused_from as u32
    }

    /// Takes off so much, which is there.
    #[inline(always)]
    pub fn spend(&mut self, packets: u32, bytes: u32) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
        let packets = packets as u16;
        self.packets = self.packets.wrapping_sub(packets);
        if self.bytes != NO_BYTES {
            self.bytes = self.bytes.wrapping_sub(bytes);
        }
        if (self.passed as u32) < ENOUGH {
            self.passed = self.passed.wrapping_add(packets);
        }
    }

    /// Makes it this holder's, if it isn't.
    #[inline(always)]
    pub fn open(&mut self, holder: Holder, moment: Moment) {
        if !self.holds(holder, moment) {
            // Field by field: a whole value is a call of `memset` in the kernel.
            (self.key, self.name, self.generation) = (holder.key, holder.name, holder.generation);
            (self.end, self.bytes, self.packets) = (0, 0, 0);
            (self.passed, self.refusal, self.refused_from) = (0, 0, 0);
        }
    }

    /// What a packet of this length lacks, and what a chunk of such packets lacks. `shift`: log2 of the
    /// finest quantum of rules over bytes; `None` if there is no such rule.
    #[inline(always)]
    #[must_use]
    pub fn want(&self, length: u32, shift: Option<u32>) -> Want {
        let chunk = self.chunk();
        let lacks = |packets, bytes| self.lacks((packets, bytes), shift);
        Want::new(lacks(1, length), lacks(chunk, length.wrapping_mul(chunk)))
    }

    /// What this ticket, of a prefix or a total, lacks to fill a source's; with a chunk of its own, so that
    /// the pools aren't asked again for the next one.
    #[inline(always)]
    #[must_use]
    pub fn cover(&self, want: Want, length: u32, shift: Option<u32>) -> Cover {
        if self.refuses(length) {
            return Cover::Refused(Taken(self.refusal as u32));
        }
        let (least, more) = (want.least(), want.more());
        let (packets, bytes) = self.lacks(more, shift);
        if packets == 0 && (bytes == 0 || shift.is_none()) {
            return Cover::Enough;
        }
        let chunk = self.chunk();
        let ahead = (larger(more.0, chunk), larger(more.1, length.wrapping_mul(chunk)));
        Cover::Lacks(Want::new(self.lacks(least, shift), self.lacks(ahead, shift)))
    }

    #[inline(always)]
    fn lacks(&self, (packets, bytes): (u32, u32), shift: Option<u32>) -> (u32, u32) {
        let bytes = match shift {
            // Rules round up: what they charge anyway is kept.
            Some(shift) => Want::round(bytes.saturating_sub(self.bytes), shift),
            // Nobody charges them; they only tell counters how long the packet is.
            None => bytes,
        };
        (packets.saturating_sub(self.packets as u32), bytes)
    }

    /// Adds what the pools granted; the whole ticket goes stale at `end`.
    #[inline(always)]
    pub fn add(&mut self, (packets, bytes): (u32, u32), shift: Option<u32>, end: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "at most 2 × 64")]
        let packets = packets as u16;
        self.packets = self.packets.wrapping_add(packets);
        self.bytes = if shift.is_some() { self.bytes.saturating_add(bytes) } else { NO_BYTES };
        self.end = end;
    }

    /// Notes that frames of this length and longer are refused; until `end`, if nothing is left.
    #[inline(always)]
    pub fn refuse(&mut self, taken: Taken, from: u32, end: u64) {
        // Bytes that are left were charged to the window of the present end, and die with it.
        if self.packets == 0 && (self.bytes == 0 || self.bytes == NO_BYTES) {
            self.end = end;
        }
        #[expect(clippy::cast_possible_truncation, reason = "no smaller than it was")]
        let from = if from > u16::MAX as u32 { u16::MAX } else { from as u16 };
        (self.refusal, self.refused_from) = (taken.low(), from);
    }

    /// How many packets to claim for at once.
    #[inline(always)]
    fn chunk(&self) -> u32 {
        let part = self.passed as u32 / PASSED_PER_PACKET;
        if part == 0 { 1 } else { part }
    }
}

#[inline(always)]
const fn larger(one: u32, other: u32) -> u32 {
    if one > other { one } else { other }
}

const _: () = assert!(size_of::<Ticket>() == 32);

#[cfg(test)]
mod tests;
