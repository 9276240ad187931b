//! All pools of a packet at one level: one for each rule that judges it. The loops over rules are
//! functions of their own, so that the sets of rules are just numbers to the verifier: it would
//! otherwise follow each of 2^32 ways to come to one.

use limiter_common::border::{Drawn, Why};
use limiter_common::bucket::TRIES;
use limiter_common::counters::RuleCount;
use limiter_common::hash::{KeyHash, Seed};
use limiter_common::key::{Key, Level, Source};
use limiter_common::layout::MAX_RULES;

use crate::pool::{self, ABSENT, CONTENDED, CROWDED, GRANTED_DISPLACED, SPENT};
use crate::{maps, stats};

/// What all pools of a packet have in common.
#[derive(Clone, Copy)]
pub struct Packet {
    /// The rules that judge it, as bits by their places.
    pub rules: u32,
    pub generation: u32,
    pub tick: u64,
    pub length: u32,
}

/// The pools of one level.
#[derive(Clone, Copy)]
pub struct Pools {
    packet: Packet,
    key: Key,
    hash: u64,
}

impl Pools {
    #[inline(always)]
    pub fn new(seed: Seed, source: Source, level: Level, packet: Packet) -> Self {
        let key = source.key(level);
        Self { packet, key, hash: KeyHash::of(seed, key).0 }
    }

    /// Rules in the upper half, the pools' [`pool::name`] but for the place in the lower.
    #[inline(always)]
    fn names(self, rules: u32) -> u64 {
        (rules as u64) << 32 | pool::name(self.packet.generation, 0, self.key) as u64
    }

    /// The place of the first rule that has no room for the packet, or [`MAX_RULES`].
    #[inline(always)]
    pub fn without_room(self) -> u32 {
        let Packet { rules, tick, length, .. } = self.packet;
        level_without_room(self.hash, self.names(rules), tick, length)
    }

    /// Draws the packet's cost from each rule's pool, up to the first that refuses.
    #[inline(always)]
    pub fn draw(self) -> Drawn {
        let Packet { rules, tick, length, .. } = self.packet;
        Drawn(level_draw(self.hash, self.key.bits(), self.names(rules), tick, length))
    }

    /// Undoes what [`Pools::draw`] has done.
    #[inline(always)]
    pub fn give_back(self, drawn: Drawn) {
        let Packet { tick, length, .. } = self.packet;
        level_give_back(self.hash, self.names(drawn.rules()), tick, length);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_without_room(hash: u64, names: u64, tick: u64, length: u32) -> u32 {
    let (rules, name) = ((names >> 32) as u32, names as u32);
    let mut place = 0;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 && pool::has_room(hash, name | place, tick, length) == 0 {
            return place;
        }
        place += 1;
    }
    MAX_RULES
}

/// A packed [`Drawn`].
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_draw(hash: u64, bits: u64, names: u64, tick: u64, length: u32) -> u64 {
    let (rules, name) = ((names >> 32) as u32, names as u32);
    // In a map's memory, where the verifier doesn't follow it: Linux 6.1 would otherwise check the
    // loop once for every set of rules.
    let Some(drawn) = maps::scratch() else {
        return 0;
    };
    drawn.set(0);
    let mut place = 0;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 {
            let mut tries = 0;
            let mut answer = CONTENDED;
            while answer == CONTENDED && tries < TRIES {
                answer = pool::draw(hash, bits, name | place, tick, length);
                tries += 1;
            }
            match answer {
                ABSENT => {}
                SPENT => return Drawn::refused(drawn.get(), Why::NoRoom, place).0,
                CONTENDED => return Drawn::refused(drawn.get(), Why::Changing, place).0,
                // This level can't judge: the coarser ones do.
                CROWDED => note(name, place, RuleCount::Crowded(pool::level(name)), length),
                granted => {
                    drawn.set(drawn.get() | 1 << place);
                    if granted == GRANTED_DISPLACED {
                        note(name, place, RuleCount::Displaced(pool::level(name)), length);
                    }
                }
            }
        }
        place += 1;
    }
    drawn.get()
}

#[inline(always)]
fn note(name: u32, place: u32, count: RuleCount, length: u32) {
    stats::rule_at(name >> 8 & 1, place, count, length);
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_give_back(hash: u64, names: u64, tick: u64, length: u32) -> u32 {
    let (rules, name) = ((names >> 32) as u32, names as u32);
    let mut place = 0;
    while place < MAX_RULES {
        if rules >> place & 1 != 0 {
            pool::give_back(hash, name | place, tick, length);
        }
        place += 1;
    }
    0
}
