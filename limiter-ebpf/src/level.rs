//! A packet's pools of one level. The loops over rules are functions of their own, so that sets of
//! rules are just numbers to the verifier: it would follow each of 2^32 ways to come to one.

use limiter_common::border::Drawn;
use limiter_common::hash::{KeyHash, Seed};
use limiter_common::key::{Key, Level, Source};
use limiter_common::take::{LevelPools, Step, draw_each, first_without_room, give_back_each};

use crate::{maps, pool};

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
    fn names(&self, rules: u32) -> u64 {
        (rules as u64) << 32 | pool::name(self.packet.generation, 0, self.key) as u64
    }
}

impl LevelPools for Pools {
    #[inline(always)]
    fn without_room(&self) -> u32 {
        let Packet { rules, tick, length, .. } = self.packet;
        level_without_room(self.hash, self.names(rules), tick, length)
    }

    #[inline(always)]
    fn draw(&self) -> Drawn {
        let Packet { rules, tick, length, .. } = self.packet;
        Drawn(level_draw(self.hash, self.key.bits(), self.names(rules), tick, length))
    }

    #[inline(always)]
    fn give_back(&self, drawn: Drawn) {
        let Packet { tick, length, .. } = self.packet;
        level_give_back(self.hash, self.names(drawn.rules()), tick, length);
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_without_room(hash: u64, names: u64, tick: u64, length: u32) -> u32 {
    first_without_room((names >> 32) as u32, |place| {
        pool::has_room(hash, names as u32 | place, tick, length) != 0
    })
}

/// A packed [`Drawn`].
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_draw(hash: u64, bits: u64, names: u64, tick: u64, length: u32) -> u64 {
    let Some(memory) = maps::scratch() else {
        return 0;
    };
    let step = |place| Step::unpack(pool::draw(hash, bits, names as u32 | place, tick, length));
    draw_each((names >> 32) as u32, &memory, step).0
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_give_back(hash: u64, names: u64, tick: u64, length: u32) -> u32 {
    give_back_each((names >> 32) as u32, |place| {
        pool::give_back(hash, names as u32 | place, tick, length);
    });
    0
}
