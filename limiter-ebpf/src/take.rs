//! Taking a packet's cost out of all pools of some rules, coarse first, or out of none: reads every
//! pool before it claims from any, so that a refusal debits nobody; what a lost race has claimed goes
//! back.

use limiter_common::key::{Level, Source};
use limiter_common::layout::MAX_RULES;

use crate::level::{Packet, Pools};
use crate::{classify, maps};

/// What [`take`] answers: all pools granted, or one has no room, or its word kept changing; the level
/// in bits 8–15 and the rule's place in bits 16–31.
pub const TAKEN: u32 = 0;
pub const NO_ROOM: u32 = 1;
pub const CHANGING: u32 = 2;

#[inline(always)]
fn answer(what: u32, level: Level, place: u32) -> u32 {
    what | (level as u32) << 8 | place << 16
}

#[inline(always)]
pub fn level_of(answer: u32) -> Level {
    Level::from_index(answer >> 8)
}

/// Replaces the class in a packed class, generation and family by the rules to judge, as bits 32–63.
#[inline(always)]
pub fn with_rules(what: u64, rules: u32) -> u64 {
    (what & 0xffff_ffff) | (rules as u64) << 32
}

/// Takes this packet's cost out of every pool of these rules, or out of none.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn take(bits: u64, what: u64, tick: u64, length: u32) -> u32 {
    let Some(meta) = maps::meta() else {
        return TAKEN;
    };
    let (_, generation, family) = classify::unpack(what & 0xffff_ffff);
    let packet = Packet { rules: (what >> 32) as u32, generation, tick, length };
    let (seed, source) = (meta.seed(), Source::from_bits(family, bits));
    let total = Pools::new(seed, source, Level::Total, packet);
    let prefix = Pools::new(seed, source, Level::Prefix, packet);
    let source = Pools::new(seed, source, Level::Source, packet);

    let place = total.without_room();
    if place < MAX_RULES {
        return answer(NO_ROOM, Level::Total, place);
    }
    let place = prefix.without_room();
    if place < MAX_RULES {
        return answer(NO_ROOM, Level::Prefix, place);
    }
    let place = source.without_room();
    if place < MAX_RULES {
        return answer(NO_ROOM, Level::Source, place);
    }

    let totals = total.draw();
    if totals.complete() {
        let prefixes = prefix.draw();
        if prefixes.complete() {
            let sources = source.draw();
            if sources.complete() {
                return TAKEN;
            }
            source.give_back(sources);
            prefix.give_back(prefixes);
            total.give_back(totals);
            return answer(sources.why(), Level::Source, sources.place());
        }
        prefix.give_back(prefixes);
        total.give_back(totals);
        return answer(prefixes.why(), Level::Prefix, prefixes.place());
    }
    total.give_back(totals);
    answer(totals.why(), Level::Total, totals.place())
}
