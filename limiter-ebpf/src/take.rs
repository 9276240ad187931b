//! Taking a packet's cost out of all pools of some rules, coarse first, or out of none: reads every
//! pool before it claims from any, so that a refusal debits nobody; what a lost race has claimed goes
//! back.

use limiter_common::border::{Subject, Taken, Why};
use limiter_common::key::{Level, Source};
use limiter_common::layout::MAX_RULES;

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
    let refused = without_room(total, prefix, source);
    if refused != Taken::ALL {
        return refused.0;
    }
    draw(total, prefix, source).0
}

#[inline(always)]
fn without_room(total: Pools, prefix: Pools, source: Pools) -> Taken {
    let place = total.without_room();
    if place < MAX_RULES {
        return Taken::refused(Why::NoRoom, Level::Total, place);
    }
    let place = prefix.without_room();
    if place < MAX_RULES {
        return Taken::refused(Why::NoRoom, Level::Prefix, place);
    }
    let place = source.without_room();
    if place < MAX_RULES {
        return Taken::refused(Why::NoRoom, Level::Source, place);
    }
    Taken::ALL
}

#[inline(always)]
fn draw(total: Pools, prefix: Pools, source: Pools) -> Taken {
    let totals = total.draw();
    if !totals.complete() {
        total.give_back(totals);
        return totals.at(Level::Total);
    }
    let prefixes = prefix.draw();
    if !prefixes.complete() {
        prefix.give_back(prefixes);
        total.give_back(totals);
        return prefixes.at(Level::Prefix);
    }
    let sources = source.draw();
    if !sources.complete() {
        source.give_back(sources);
        prefix.give_back(prefixes);
        total.give_back(totals);
        return sources.at(Level::Source);
    }
    Taken::ALL
}
