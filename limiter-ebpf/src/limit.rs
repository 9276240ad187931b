//! Limiting: all rules and levels that apply to a packet, coarse first. Reads every pool before it
//! claims from any, so that a refusal debits nobody; what a lost race has claimed goes back.

use limiter_common::counters::RuleCount;
use limiter_common::hash::KeyHash;
use limiter_common::key::{Key, Level, Source};
use limiter_common::layout::MAX_RULES;
use limiter_common::verdict::{Judgement, Refusal};

use crate::pool::{self, CONTENDED, CROWDED, GRANTED_DISPLACED, SPENT};
use crate::{classify, maps, stats};

/// A packet's pools of one level: small values, so that all of it stays in registers.
#[derive(Clone, Copy)]
struct Pools {
    key: Key,
    hash: u64,
    generation: u32,
    tick: u64,
    length: u32,
}

impl Pools {
    #[inline(always)]
    fn name(self, place: u32) -> u32 {
        pool::name(self.generation, place, self.key)
    }

    #[inline(always)]
    fn has_room(self, place: u32) -> bool {
        pool::has_room(self.hash, self.name(place), self.tick, self.length) != 0
    }

    #[inline(always)]
    fn draw(self, place: u32) -> u32 {
        pool::draw(self.hash, self.key.bits(), self.name(place), self.tick, self.length)
    }

    #[inline(always)]
    fn give_back(self, rules: u32) {
        pool::give_back(self.hash, rules, self.name(0), self.tick, self.length);
    }
}

/// Judges a packet by its class; the answer is a packed [`Judgement`]. The verifier checks this
/// function apart from the parser, whose many paths would multiply with the loops here.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn limit(bits: u64, what: u64, tick: u64, length: u32) -> u32 {
    judge(bits, what, tick, length).pack()
}

#[inline(always)]
fn judge(bits: u64, what: u64, tick: u64, length: u32) -> Judgement {
    let (class, generation, _) = classify::unpack(what);
    let Some(rules) = maps::class(generation, class) else { return Judgement::NoPolicy };
    let (enforce, shadow) = (rules.enforce, rules.shadow);
    let taken = take(bits, with_rules(what, enforce), tick, length);
    if taken != TAKEN {
        return refused(generation, taken, length);
    }
    let mut place = 0;
    while place < MAX_RULES {
        if enforce >> place & 1 != 0 {
            count(generation, place, RuleCount::Passed, length);
        }
        // Each shadow rule is judged as the only addition to what is enforced.
        if shadow >> place & 1 != 0 {
            let taken = take(bits, with_rules(what, 1 << place), tick, length);
            let seen = if taken == TAKEN {
                RuleCount::Passed
            } else if taken & 0xff == NO_ROOM {
                RuleCount::WouldRefuse(level_of(taken))
            } else {
                RuleCount::Contended
            };
            count(generation, place, seen, length);
        }
        place += 1;
    }
    Judgement::Admitted
}

/// Counts a refusal where it was decided.
#[inline(always)]
fn refused(generation: u32, taken: u32, length: u32) -> Judgement {
    let place = taken >> 16;
    let Some(rule) = maps::rule(generation, place) else { return Judgement::NoPolicy };
    if taken & 0xff == NO_ROOM {
        let level = level_of(taken);
        stats::rule(rule.row(), RuleCount::Refused(level), length);
        Judgement::Refused(Refusal { row: rule.row(), level })
    } else {
        stats::rule(rule.row(), RuleCount::Contended, length);
        Judgement::Contended
    }
}

#[inline(always)]
fn count(generation: u32, place: u32, count: RuleCount, length: u32) {
    if let Some(rule) = maps::rule(generation, place) {
        stats::rule(rule.row(), count, length);
    }
}

/// What [`take`] answers: all pools granted, or one has no room, or its word kept changing; the level
/// in bits 8–15 and the rule's place in bits 16–31.
const TAKEN: u32 = 0;
const NO_ROOM: u32 = 1;
const CHANGING: u32 = 2;

#[inline(always)]
fn answer(what: u32, level: Level, place: u32) -> u32 {
    what | (level as u32) << 8 | place << 16
}

#[inline(always)]
fn level_of(answer: u32) -> Level {
    Level::from_index(answer >> 8)
}

/// Replaces the class by the rules to judge, as bits 32–63.
#[inline(always)]
fn with_rules(what: u64, rules: u32) -> u64 {
    (what & 0xffff_ffff) | (rules as u64) << 32
}

/// Takes this packet's cost out of every pool of these rules, or out of none.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn take(bits: u64, what: u64, tick: u64, length: u32) -> u32 {
    let (_, generation, family) = classify::unpack(what & 0xffff_ffff);
    let rules = (what >> 32) as u32;
    let Some(meta) = maps::meta() else { return TAKEN };
    let source = Source::from_bits(family, bits);
    let mut total = Pools { key: Key::TOTAL, hash: 0, generation, tick, length };
    let mut prefix = Pools { key: source.key(Level::Prefix), ..total };
    let mut source = Pools { key: source.key(Level::Source), ..total };
    total.hash = KeyHash::of(meta.seed(), total.key).0;
    prefix.hash = KeyHash::of(meta.seed(), prefix.key).0;
    source.hash = KeyHash::of(meta.seed(), source.key).0;

    let mut refused = first_without_room(total, Level::Total, rules);
    if refused == TAKEN {
        refused = first_without_room(prefix, Level::Prefix, rules);
    }
    if refused == TAKEN {
        refused = first_without_room(source, Level::Source, rules);
    }
    if refused != TAKEN {
        return refused;
    }

    let (mut from_total, mut from_prefix, mut from_source) = (0, 0, 0);
    refused = draw_all(total, Level::Total, rules, &mut from_total);
    if refused == TAKEN {
        refused = draw_all(prefix, Level::Prefix, rules, &mut from_prefix);
    }
    if refused == TAKEN {
        refused = draw_all(source, Level::Source, rules, &mut from_source);
    }
    if refused != TAKEN {
        // Another CPU took the last token between our look and our claim.
        total.give_back(from_total);
        prefix.give_back(from_prefix);
        source.give_back(from_source);
    }
    refused
}

#[inline(always)]
fn first_without_room(pools: Pools, level: Level, rules: u32) -> u32 {
    let mut place = 0;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 && !pools.has_room(place) {
            return answer(NO_ROOM, level, place);
        }
        place += 1;
    }
    TAKEN
}

/// Claims in every rule's pool of one level and notes in `drawn` what was granted.
#[inline(always)]
fn draw_all(pools: Pools, level: Level, rules: u32, drawn: &mut u32) -> u32 {
    let mut place = 0;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 {
            match pools.draw(place) {
                SPENT => return answer(NO_ROOM, level, place),
                CONTENDED => return answer(CHANGING, level, place),
                // Judged by the coarser levels alone.
                CROWDED => {
                    count(pools.generation, place, RuleCount::Crowded(level), pools.length);
                }
                granted => {
                    *drawn |= 1 << place;
                    if granted == GRANTED_DISPLACED {
                        count(pools.generation, place, RuleCount::Displaced(level), pools.length);
                    }
                }
            }
        }
        place += 1;
    }
    TAKEN
}
