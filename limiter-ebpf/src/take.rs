//! All pools of a packet, as [`limiter_common::take`] wants them.

use limiter_common::border::{Subject, Taken};
use limiter_common::key::{Level, Source};

use crate::level::{Packet, Pools};
use crate::maps;

/// Takes this packet's cost out of every pool of the subject's rules, or out of none: a packed
/// [`Taken`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn take(bits: u64, subject: u64, tick: u64, length: u32) -> u32 {
    let Some(meta) = maps::meta() else {
        return Taken::ALL.0;
    };
    let subject = Subject(subject);
    let (rules, generation) = (subject.rules(), subject.generation());
    let packet = Packet { rules, generation, tick, length };
    let (seed, source) = (meta.seed(), Source::from_bits(subject.family(), bits));
    let total = Pools::new(seed, source, Level::Total, packet);
    let prefix = Pools::new(seed, source, Level::Prefix, packet);
    let source = Pools::new(seed, source, Level::Source, packet);
    limiter_common::take::take(&total, &prefix, &source).0
}
