//! The functions that the verifier checks on their own, for any arguments: it would multiply the loops over
//! rules, levels and tries that it sees inside one another.

use limiter_common::border::{Drawn, Taken};
use limiter_common::bucket::Room;
use limiter_common::judge::{self, Maps, Notes, level, pool};
use limiter_common::key::Level;
use limiter_common::take::{Step, give_back_each};
use limiter_common::want::Want;

use crate::maps::Kernel;

/// Asks the pools, and notes on the ticket what they said.
#[inline(always)]
pub fn fill(notes: &Notes, now: u64, length: u32) -> Taken {
    notes.single.set(0);
    let taken = Taken(fill_once(now, length));
    if taken != Taken::LESS {
        return taken;
    }
    notes.single.set(1);
    Taken(fill_once(now, length))
}

/// A packed [`Taken`].
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn fill_once(now: u64, length: u32) -> u32 {
    match Kernel.notes() {
        Some(notes) => judge::fill(Kernel, notes, now, length).0,
        None => Taken::ONE.0,
    }
}

#[inline(always)]
pub fn look(name: u32, want: Want) -> Room {
    Room::from_number(pool_look(name, want.0))
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn pool_look(name: u32, want: u64) -> u32 {
    pool::look(Kernel, name, Want(want)) as u32
}

#[inline(always)]
pub fn draw_level(level: Level, want: Want) -> Drawn {
    Drawn(level_draw(level as u32, want.0))
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_draw(level: u32, want: u64) -> u64 {
    level::draw(Kernel, level, Want(want)).0
}

#[inline(always)]
pub fn draw(name: u32, want: Want) -> Step {
    Step::unpack(pool_draw(name, want.0))
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn pool_draw(name: u32, want: u64) -> u32 {
    pool::draw(Kernel, name, Want(want)).pack()
}

#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn pool_find(name: u32) -> u32 {
    pool::find(Kernel, name);
    0
}

#[inline(always)]
pub fn give_back(drawn: Drawn, name: u32, want: Want) {
    level_give_back(drawn.0, name, want.0);
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn level_give_back(drawn: u64, name: u32, want: u64) -> u32 {
    give_back_each(Drawn(drawn), |place| {
        pool_give_back(name | place, want);
    });
    0
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn pool_give_back(name: u32, want: u64) -> u32 {
    pool::give_back(Kernel, name, Want(want));
    0
}
