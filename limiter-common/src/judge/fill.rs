//! Filling a source's ticket from all pools of a packet.

use super::open::{Open, add};
use super::{Maps, Notes, level};
use crate::border::{Drawn, Space, Subject, Taken};
use crate::hash::KeyHash;
use crate::key::{Level, Source};
use crate::layout::RuleSet;
use crate::take::Pools;
use crate::want::Want;

/// Asks the pools once, and notes on the ticket what they said.
#[inline(always)]
pub fn fill(maps: impl Maps, notes: &'static Notes, now: u64, length: u32) -> Taken {
    notes.set_time(now, length);
    let subject = Subject(notes.subject.get());
    let Some(mut open) =
        Open::find(maps, notes.source.get(), Level::Source, subject, now).map(Open::own)
    else {
        return Taken::ONE;
    };
    let want = Want(notes.forget(open.ticket.want(length, open.set.byte_shift()).0));
    let want = if notes.single.get() != 0 { want.one() } else { want };
    let taken = Taken(notes.forget_half(take(maps, notes, open.set, want).0));
    if taken == Taken::LESS {
        return taken;
    }
    if taken.why().is_some() {
        return open.refuse(maps, taken, notes);
    }
    add(open.ticket, open.set, granted(taken, want), notes);
    open.ticket.spend(1, length);
    taken
}

/// Packets and bytes that were debited.
#[inline(always)]
fn granted(taken: Taken, want: Want) -> (u32, u32) {
    if taken == Taken::CHUNK { want.more() } else { want.least() }
}

/// For the packet in this CPU's notes: takes what is wanted out of every pool of its rules, or out of none.
#[inline(always)]
fn take(maps: impl Maps, notes: &'static Notes, set: &'static RuleSet, want: Want) -> Taken {
    let Some(meta) = maps.meta() else {
        return Taken::ONE;
    };
    let source = Source::from_bits(Subject(notes.subject.get()).family(), notes.source.get());
    let hash = |level| KeyHash::of(meta.seed(), source.key(level));
    let hashes = [KeyHash(meta.total), hash(Level::Prefix), hash(Level::Source)];
    touch(maps, set, hashes[2]);
    level::find_ticket(maps, notes, set, Level::Total);
    if !level::find_ticket(maps, notes, set, Level::Prefix) {
        touch(maps, set, hashes[1]);
    }
    // Not as a loop: the verifier wants to see the places as constants.
    notes.hash(Level::Total as usize).set(hashes[0].0);
    notes.hash(Level::Prefix as usize).set(hashes[1].0);
    notes.hash(Level::Source as usize).set(hashes[2].0);
    crate::take::take(&Noted { maps, notes, set }, want)
}

/// Begins to fetch a key's words. What comes before their use then runs while the memory is at it.
#[inline(always)]
fn touch(maps: impl Maps, set: &RuleSet, hash: KeyHash) {
    let (first, second) = set.first_groups();
    maps.touch(hash.bucket(first, maps.bucket_mask()));
    if second != first {
        maps.touch(hash.bucket(second, maps.bucket_mask()));
    }
}

/// The pools of the packet in this CPU's notes.
struct Noted<M> {
    maps: M,
    notes: &'static Notes,
    set: &'static RuleSet,
}

impl<M: Maps> Pools for Noted<M> {
    #[inline(always)]
    fn look(&self, level: Level, want: Want) -> Space {
        match level {
            Level::Source => level::source_look(self.maps, self.notes, self.set, want),
            _ => level::coarse_look(self.maps, self.notes, self.set, level, want),
        }
    }

    #[inline(always)]
    fn draw(&self, level: Level, want: Want) -> Drawn {
        match level {
            Level::Source => level::source_draw(self.maps, self.set, want),
            _ => level::coarse_draw(self.maps, self.notes, self.set, level, want),
        }
    }

    #[inline(always)]
    fn spend(&self, want: Want) {
        level::coarse_spend(self.maps, self.notes, self.set, Level::Total, want);
        level::coarse_spend(self.maps, self.notes, self.set, Level::Prefix, want);
    }
}
