//! What is known of the packet that a CPU is at, in memory of that CPU's own.

use core::cell::UnsafeCell;

use crate::clock::{Tick, WindowLength};
use crate::take::Memory;

/// The packet that this CPU is at, for the functions that ask its pools: which rules, when, its key and
/// hash at each level, what each level has room for, where in its bucket each key was seen, which rules
/// were debited. (As arguments and on the stack, Linux 6.1 would follow each value, and there is no stack
/// for all of it.)
#[repr(C)]
pub struct Notes {
    /// What the parser came to: [`super::facts`].
    pub found: Note<u32>,
    /// [`crate::key::Family`] as a number.
    pub family: Note<u32>,
    /// [`crate::packet::Protocol::index`].
    pub protocol: Note<u32>,
    /// [`crate::packet::Kind`] as a number.
    pub kind: Note<u32>,
    /// Destination port, or [`super::facts::NO_PORT`].
    pub port: Note<u32>,
    /// What a rule in shadow came to: [`crate::border::Taken`].
    pub taken: Note<u32>,
    /// The operator's word, as a number: read once per packet, and looked at only for a refusal.
    pub bypass: Note<u32>,
    /// Not 0: no chunk is wanted.
    pub single: Note<u32>,
    /// The subject of the packet's class, while rules in shadow are judged.
    pub class: Note<u64>,
    /// [`crate::border::Subject`] that is being judged.
    pub subject: Note<u64>,
    /// Unix time in nanoseconds.
    pub now: Note<u64>,
    /// The same as a [`Tick`].
    pub tick: Note<u64>,
    /// [`crate::key::Source::bits`].
    pub source: Note<u64>,
    debited: Note<u64>,
    forgotten: Note<u64>,
    hash: [Note<u64>; 4],
    /// The frame's length in bytes.
    pub length: Note<u32>,
    reserved: Note<u32>,
    rooms: [Note<u32>; 4],
    tickets: [Note<u32>; 4],
    edges: [Edge; 16],
    places: [Note<u32>; 128],
}

/// Where the window of a length ends that holds a tick: kept from one packet to the next, since a division
/// costs as much as many of the other steps together.
#[repr(C)]
struct Edge {
    tick: Note<u64>,
    end: Note<u64>,
    window: Note<u64>,
}

/// A number in this CPU's memory. Accesses are volatile, so that it really lies there.
#[repr(transparent)]
pub struct Note<T>(UnsafeCell<T>);

// SAFETY: each CPU has its own, and programs don't interrupt each other on one CPU.
unsafe impl<T> Sync for Note<T> {}

impl<T: Copy> Note<T> {
    /// Reads it.
    #[inline(always)]
    pub fn get(&self) -> T {
        // SAFETY: this CPU's own map value, and nothing else on this CPU runs meanwhile.
        unsafe { self.0.get().read_volatile() }
    }

    /// Writes it.
    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(value) }
    }
}

impl Notes {
    /// Notes the time and the frame's length.
    #[inline(always)]
    pub fn set_time(&self, now: u64, length: u32) {
        self.now.set(now);
        self.tick.set(Tick::from_unix_nanos(now).0);
        self.length.set(length);
    }

    /// The end of the window of this length that holds the packet's tick.
    #[inline(always)]
    pub fn end_of(&self, window: WindowLength) -> Tick {
        let (edge, length) = (&self.edges[window.ticks() as usize & 15], window.ticks() as u64);
        if edge.tick.get() != self.tick.get() || edge.window.get() != length {
            edge.end.set(window.end_of(Tick(self.tick.get())).0);
            edge.tick.set(self.tick.get());
            edge.window.set(length);
        }
        Tick(edge.end.get())
    }

    /// The number of the packet's ticket of a coarse level: [`super::Maps::ticket`].
    #[inline(always)]
    pub fn ticket(&self, level: usize) -> &Note<u32> {
        &self.tickets[level & 3]
    }

    /// The same number, as one of which the verifier knows nothing: it would follow each way in which it
    /// came about.
    #[inline(always)]
    pub fn forget(&self, number: u64) -> u64 {
        self.forgotten.set(number);
        self.forgotten.get()
    }

    /// [`Notes::forget`] for smaller numbers.
    #[inline(always)]
    #[must_use]
    pub fn forget_half(&self, number: u32) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "it was no larger")]
        let number = self.forget(number as u64) as u32;
        number
    }

    /// What a level was seen to have room for.
    #[inline(always)]
    pub fn room(&self, level: usize) -> &Note<u32> {
        &self.rooms[level & 3]
    }

    /// The hash of the packet's key at a level.
    #[inline(always)]
    pub fn hash(&self, level: usize) -> &Note<u64> {
        &self.hash[level & 3]
    }

    /// Where the key of a rule and level was seen, by [`super::pool::name`].
    #[inline(always)]
    pub fn place(&self, name: usize) -> &Note<u32> {
        &self.places[name & 127]
    }
}

impl Memory for &Notes {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.debited.get()
    }

    #[inline(always)]
    fn set(&self, number: u64) {
        self.debited.set(number);
    }
}
