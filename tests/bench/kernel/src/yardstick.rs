//! What limiter's table is measured against: the same rules and levels over the kernel's own
//! `LRU_PERCPU_HASH` and `LRU_HASH`, as most XDP rate limiters do it. Fixed windows; every level of every
//! rule is checked before any is debited. Where it was cheaper for the yardstick, it is made cheaper:
//! limits are constants, a total is an array's entry, and no rule has counters of its own.

use core::intrinsics::atomic_xadd;

use aya_ebpf::bindings::BPF_ANY;
use aya_ebpf::macros::{map, xdp};
use aya_ebpf::maps::{Array, LruHashMap, LruPerCpuHashMap, PerCpuArray};
use aya_ebpf::programs::XdpContext;
use limiter_common::clock::Tick;
use limiter_common::key::{Key as LimiterKey, Level};
use limiter_common::verdict::Exit;

use crate::constant;
use crate::parse_drop::{Judged, judged, run};

/// Rules of the bench's policy.
const RULES: u32 = 4;

/// Level, family and rule, and the address bits. Words of 32 bits: the kernel hashes those fastest.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Key([u32; 3]);

/// What was used in a window.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Use {
    window: u64,
    used: u64,
}

/// Entries: the bench sizes them, so that whoever loads the rest of this object pays for none.
#[map]
static PERCPU_SOURCES: LruPerCpuHashMap<Key, Use> = LruPerCpuHashMap::with_max_entries(1, 0);
#[map]
static PERCPU_PREFIXES: LruPerCpuHashMap<Key, Use> = LruPerCpuHashMap::with_max_entries(1, 0);
#[map]
static PERCPU_TOTALS: PerCpuArray<Use> = PerCpuArray::with_max_entries(RULES, 0);
#[map]
static SHARED_SOURCES: LruHashMap<Key, Use> = LruHashMap::with_max_entries(1, 0);
#[map]
static SHARED_PREFIXES: LruHashMap<Key, Use> = LruHashMap::with_max_entries(1, 0);
#[map]
static SHARED_TOTALS: Array<Use> = Array::with_max_entries(RULES, 0);

/// Packets per window, by level, and the window in ticks. The same for all rules.
#[unsafe(no_mangle)]
static YARD_TOTAL: u32 = 0;
#[unsafe(no_mangle)]
static YARD_PREFIX: u32 = 0;
#[unsafe(no_mangle)]
static YARD_SOURCE: u32 = 0;
#[unsafe(no_mangle)]
static YARD_WINDOW: u32 = 1;

/// Each CPU has values of its own, so what passes is the limit times the CPUs.
#[xdp(frags)]
pub fn lru_percpu(context: XdpContext) -> u32 {
    run(&context, |notes, now| judge::<PerCpu>(&judged(notes), now))
}

/// All CPUs share a value. A roll-over may lose what others add at that moment.
#[xdp(frags)]
pub fn lru(context: XdpContext) -> u32 {
    run(&context, |notes, now| judge::<Shared>(&judged(notes), now))
}

/// Where uses lie and how one is added to.
trait Store {
    fn get(level: Level, key: &Key, rule: u32) -> Option<*mut Use>;
    fn insert(level: Level, key: &Key, new: &Use);
    fn add(used: *mut u64);
}

/// One rule's uses by level; `None` where there is no entry yet.
struct Found([Option<*mut Use>; 3]);

/// A packet and its window.
struct Ask<'a> {
    packet: &'a Judged,
    window: u64,
}

#[inline(always)]
fn judge<S: Store>(packet: &Judged, now: u64) -> Exit {
    let ask = Ask {
        packet,
        window: Tick::from_unix_nanos(now)
            .0
            .checked_div(constant::read(&YARD_WINDOW) as u64)
            .unwrap_or(0),
    };
    let mut found: [Option<Found>; RULES as usize] = [const { None }; RULES as usize];
    let mut rule = 0;
    while rule < RULES {
        if packet.rules >> rule & 1 != 0 {
            let Some(uses) = room::<S>(&ask, rule) else {
                return Exit::Refused;
            };
            found[rule as usize] = Some(uses);
        }
        rule += 1;
    }
    let mut rule = 0;
    while rule < RULES {
        if let Some(uses) = &found[rule as usize] {
            debit::<S>(&ask, rule, uses);
        }
        rule += 1;
    }
    Exit::Admitted
}

/// `None` if a level has no room.
#[inline(always)]
fn room<S: Store>(ask: &Ask<'_>, rule: u32) -> Option<Found> {
    Some(Found([
        level_room::<S>(ask, rule, Level::Total)?,
        level_room::<S>(ask, rule, Level::Prefix)?,
        level_room::<S>(ask, rule, Level::Source)?,
    ]))
}

#[inline(always)]
fn level_room<S: Store>(ask: &Ask<'_>, rule: u32, level: Level) -> Option<Option<*mut Use>> {
    let Some(entry) = S::get(level, &key(ask, rule, level), rule) else {
        return Some(None);
    };
    // SAFETY: a map's value; others may change it, and any number is a valid one.
    let (window, used) = unsafe { ((*entry).window, (*entry).used) };
    if window == ask.window && used >= limit(level) as u64 {
        return None;
    }
    Some(Some(entry))
}

#[inline(always)]
fn debit<S: Store>(ask: &Ask<'_>, rule: u32, found: &Found) {
    level_debit::<S>(ask, rule, Level::Total, found.0[0]);
    level_debit::<S>(ask, rule, Level::Prefix, found.0[1]);
    level_debit::<S>(ask, rule, Level::Source, found.0[2]);
}

#[inline(always)]
fn level_debit<S: Store>(ask: &Ask<'_>, rule: u32, level: Level, entry: Option<*mut Use>) {
    let Some(entry) = entry else {
        S::insert(level, &key(ask, rule, level), &Use { window: ask.window, used: 1 });
        return;
    };
    // SAFETY: a map's value, as above.
    unsafe {
        if (*entry).window != ask.window {
            (*entry).window = ask.window;
            (*entry).used = 0;
        }
        S::add(&raw mut (*entry).used);
    }
}

#[inline(always)]
fn key(ask: &Ask<'_>, rule: u32, level: Level) -> Key {
    let key: LimiterKey = ask.packet.source.key(level);
    let bits = key.bits();
    Key([(key.tag() as u32) << 8 | rule, (bits >> 32) as u32, bits as u32])
}

#[inline(always)]
fn limit(level: Level) -> u32 {
    match level {
        Level::Total => constant::read(&YARD_TOTAL),
        Level::Prefix => constant::read(&YARD_PREFIX),
        Level::Source => constant::read(&YARD_SOURCE),
    }
}

struct PerCpu;

impl Store for PerCpu {
    #[inline(always)]
    fn get(level: Level, key: &Key, rule: u32) -> Option<*mut Use> {
        match level {
            Level::Total => PERCPU_TOTALS.get_ptr_mut(rule),
            Level::Prefix => PERCPU_PREFIXES.get_ptr_mut(key),
            Level::Source => PERCPU_SOURCES.get_ptr_mut(key),
        }
    }

    #[inline(always)]
    fn insert(level: Level, key: &Key, new: &Use) {
        let _ = match level {
            Level::Total => Ok(()),
            Level::Prefix => PERCPU_PREFIXES.insert(key, new, BPF_ANY as u64),
            Level::Source => PERCPU_SOURCES.insert(key, new, BPF_ANY as u64),
        };
    }

    #[inline(always)]
    fn add(used: *mut u64) {
        // SAFETY: this CPU's own value.
        unsafe { *used = (*used).wrapping_add(1) };
    }
}

struct Shared;

impl Store for Shared {
    #[inline(always)]
    fn get(level: Level, key: &Key, rule: u32) -> Option<*mut Use> {
        match level {
            Level::Total => SHARED_TOTALS.get_ptr_mut(rule),
            Level::Prefix => SHARED_PREFIXES.get_ptr_mut(key),
            Level::Source => SHARED_SOURCES.get_ptr_mut(key),
        }
    }

    #[inline(always)]
    fn insert(level: Level, key: &Key, new: &Use) {
        let _ = match level {
            Level::Total => Ok(()),
            Level::Prefix => SHARED_PREFIXES.insert(key, new, BPF_ANY as u64),
            Level::Source => SHARED_SOURCES.insert(key, new, BPF_ANY as u64),
        };
    }

    #[inline(always)]
    fn add(used: *mut u64) {
        // SAFETY: an aligned number in a map's value.
        unsafe {
            atomic_xadd::<u64, u64, { core::intrinsics::AtomicOrdering::SeqCst }>(used, 1);
        }
    }
}
