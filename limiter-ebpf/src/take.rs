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
pub fn take(notes: &Notes, set: &RuleSet, want: Want) -> Taken {
    let Some(meta) = maps::meta() else {
        return Taken::ONE;
    };
    let source = Source::from_bits(Subject(notes.subject.get()).family(), notes.source.get());
    let hash = |level| KeyHash::of(meta.seed(), source.key(level));
    let hashes = [KeyHash(meta.total), hash(Level::Prefix), hash(Level::Source)];
    let (first, second) = set.first_groups();
    for group in [first, second] {
        maps::touch(hashes[2].bucket(group, maps::bucket_mask()));
    }
    // Not as a loop: the verifier wants to see the places as constants.
    notes.hash(Level::Total as usize).set(hashes[0].0);
    notes.hash(Level::Prefix as usize).set(hashes[1].0);
    notes.hash(Level::Source as usize).set(hashes[2].0);
    limiter_common::take::take(&Noted, want)
}

/// The pools of the packet in this CPU's notes.
struct Noted;

impl Pools for Noted {
    #[inline(always)]
    fn look(&self, level: Level, want: Want) -> Space {
        Space(match level {
            Level::Source => level::source_look(want.0),
            _ => level::coarse_look(level as u32, want.0),
        })
    }

    #[inline(always)]
    fn draw(&self, level: Level, want: Want) -> Drawn {
        Drawn(match level {
            Level::Source => level::source_draw(want.0),
            _ => level::coarse_draw(level as u32, want.0),
        })
    }

    #[inline(always)]
    fn spend(&self, want: Want) {
        level::coarse_spend(Level::Total as u32, want.0);
        level::coarse_spend(Level::Prefix as u32, want.0);
    }
}
