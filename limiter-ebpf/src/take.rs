//! All pools of a packet, as [`limiter_common::take`] wants them.

use limiter_common::border::{Drawn, Space, Subject, Taken};
use limiter_common::hash::KeyHash;
use limiter_common::key::{Level, Source};
use limiter_common::layout::RuleSet;
use limiter_common::take::Pools;
use limiter_common::want::Want;

use crate::level;
use crate::maps::{self, Notes};

/// For the packet in this CPU's notes: takes what is wanted out of every pool of its rules, or out of none.
#[inline(always)]
pub fn take(notes: &Notes, set: &'static RuleSet, want: Want) -> Taken {
    let Some(meta) = maps::meta() else {
        return Taken::ONE;
    };
    let source = Source::from_bits(Subject(notes.subject.get()).family(), notes.source.get());
    let hash = |level| KeyHash::of(meta.seed(), source.key(level));
    let hashes = [KeyHash(meta.total), hash(Level::Prefix), hash(Level::Source)];
    touch(set, hashes[2]);
    if !level::has_prefix_ticket(notes, set) {
        touch(set, hashes[1]);
    }
    // Not as a loop: the verifier wants to see the places as constants.
    notes.hash(Level::Total as usize).set(hashes[0].0);
    notes.hash(Level::Prefix as usize).set(hashes[1].0);
    notes.hash(Level::Source as usize).set(hashes[2].0);
    limiter_common::take::take(&Noted { notes, set }, want)
}

/// Begins to fetch a key's words. What comes before their use then runs while the memory is at it.
#[inline(always)]
fn touch(set: &RuleSet, hash: KeyHash) {
    let (first, second) = set.first_groups();
    maps::touch(hash.bucket(first, maps::bucket_mask()));
    if second != first {
        maps::touch(hash.bucket(second, maps::bucket_mask()));
    }
}

/// The pools of the packet in this CPU's notes.
struct Noted<'a> {
    notes: &'a Notes,
    set: &'static RuleSet,
}

impl Pools for Noted<'_> {
    #[inline(always)]
    fn look(&self, level: Level, want: Want) -> Space {
        match level {
            Level::Source => level::source_look(self.notes, self.set, want),
            _ => level::coarse_look(self.notes, self.set, level, want),
        }
    }

    #[inline(always)]
    fn draw(&self, level: Level, want: Want) -> Drawn {
        match level {
            Level::Source => level::source_draw(self.notes, self.set, want),
            _ => level::coarse_draw(self.notes, self.set, level, want),
        }
    }

    #[inline(always)]
    fn spend(&self, want: Want) {
        level::coarse_spend(self.notes, self.set, Level::Total, want);
        level::coarse_spend(self.notes, self.set, Level::Prefix, want);
    }
}
