//! All pools of a packet, as [`limiter_common::take`] wants them.

use limiter_common::border::{Drawn, Space, Subject, Taken};
use limiter_common::hash::KeyHash;
use limiter_common::key::{Level, Source};
use limiter_common::take::LevelPools;
use limiter_common::want::Want;

use crate::{level, maps};

/// For the packet in this CPU's notes: takes what is wanted out of every pool of the subject's rules, or out
/// of none.
#[inline(always)]
pub fn take(want: Want) -> Taken {
    let (Some(meta), Some(notes)) = (maps::meta(), maps::notes()) else {
        return Taken::ONE;
    };
    let source = Source::from_bits(Subject(notes.subject.get()).family(), notes.source.get());
    let hash = |level| KeyHash::of(meta.seed(), source.key(level)).0;
    // Not as a loop: the verifier wants to see the places as constants.
    notes.hash(Level::Total as usize).set(meta.total);
    notes.hash(Level::Prefix as usize).set(hash(Level::Prefix));
    notes.hash(Level::Source as usize).set(hash(Level::Source));
    let [total, prefix, source] = [Level::Total, Level::Prefix, Level::Source].map(Pools);
    limiter_common::take::take(&total, &prefix, &source, want)
}

/// The pools of one level, for the packet in this CPU's notes.
struct Pools(Level);

impl LevelPools for Pools {
    #[inline(always)]
    fn room(&self, want: Want) -> Space {
        Space(level::level_room(self.0 as u32, want.0))
    }

    #[inline(always)]
    fn draw(&self, want: Want) -> Drawn {
        Drawn(level::level_draw(self.0 as u32, want.0))
    }

    #[inline(always)]
    fn give_back(&self, want: Want, drawn: Drawn) {
        level::level_give_back(self.0 as u32, want.0, drawn.0);
    }
}
