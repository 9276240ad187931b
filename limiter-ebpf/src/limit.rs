//! Limiting: all rules and levels that apply to a packet, coarse first. Reads every pool before it
//! claims from any, so that a refusal debits nobody; what a lost race has claimed goes back.

use limiter_common::counters::RuleCount;
use limiter_common::hash::KeyHash;
use limiter_common::key::{Level, Source};
use limiter_common::layout::MAX_RULES;
use limiter_common::verdict::{Judgement, Refusal};

use crate::pool::{self, CONTENDED, CROWDED, GRANTED_DISPLACED, SPENT};
use crate::{classify, maps, stats};

/// What is the same for all pools of one packet.
struct Packet {
    source: Source,
    generation: u32,
    tick: u64,
    length: u32,
}

/// A packet's pools of one level.
struct Pools<'a> {
    packet: &'a Packet,
    level: Level,
    hash: u64,
}

impl<'a> Pools<'a> {
    #[inline(always)]
    fn new(packet: &'a Packet, level: Level) -> Option<Self> {
        let seed = maps::meta()?.seed();
        Some(Self { packet, level, hash: KeyHash::of(seed, packet.source.key(level)).0 })
    }

    #[inline(always)]
    fn name(&self, place: u32) -> u32 {
        pool::name(self.packet.generation, place, self.packet.source.key(self.level))
    }

    #[inline(always)]
    fn has_room(&self, place: u32) -> bool {
        pool::has_room(self.hash, self.name(place), self.packet.tick, self.packet.length) != 0
    }

    #[inline(always)]
    fn draw(&self, place: u32) -> u32 {
        let bits = self.packet.source.key(self.level).bits();
        pool::draw(self.hash, bits, self.name(place), self.packet.tick, self.packet.length)
    }

    #[inline(always)]
    fn give_back(&self, place: u32) {
        pool::give_back(self.hash, self.name(place), self.packet.tick, self.packet.length);
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
    let packet = Packet { source: Source::from_bits(family, bits), generation, tick, length };
    let [Some(total), Some(prefix), Some(source)] =
        Level::ALL.map(|level| Pools::new(&packet, level))
    else {
        return TAKEN;
    };
    let rules = (what >> 32) as u32;
    for pools in [&total, &prefix, &source] {
        let refused = first_without_room(pools, rules);
        if refused != TAKEN {
            return refused;
        }
    }
    let mut drawn = [0; Level::COUNT];
    for pools in [&total, &prefix, &source] {
        let refused = draw_all(pools, rules, &mut drawn);
        if refused != TAKEN {
            give_back(&total, drawn[0]);
            give_back(&prefix, drawn[1]);
            give_back(&source, drawn[2]);
            return refused;
        }
    }
    TAKEN
}

#[inline(always)]
fn first_without_room(pools: &Pools<'_>, rules: u32) -> u32 {
    let mut place = 0;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 && !pools.has_room(place) {
            return answer(NO_ROOM, pools.level, place);
        }
        place += 1;
    }
    TAKEN
}

/// Claims in every rule's pool of one level and notes in `drawn` what was granted.
#[inline(always)]
fn draw_all(pools: &Pools<'_>, rules: u32, drawn: &mut [u32; Level::COUNT]) -> u32 {
    let (generation, length) = (pools.packet.generation, pools.packet.length);
    let mut place = 0;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 {
            match pools.draw(place) {
                SPENT => return answer(NO_ROOM, pools.level, place),
                CONTENDED => return answer(CHANGING, pools.level, place),
                // Judged by the coarser levels alone.
                CROWDED => count(generation, place, RuleCount::Crowded(pools.level), length),
                granted => {
                    drawn[pools.level as usize] |= 1 << place;
                    if granted == GRANTED_DISPLACED {
                        count(generation, place, RuleCount::Displaced(pools.level), length);
                    }
                }
            }
        }
        place += 1;
    }
    TAKEN
}

#[inline(always)]
fn give_back(pools: &Pools<'_>, drawn: u32) {
    let mut place = 0;
    while place < MAX_RULES {
        if drawn >> place & 1 != 0 {
            pools.give_back(place);
        }
        place += 1;
    }
}
