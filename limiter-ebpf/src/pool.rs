//! One pool of one rule: its bucket in the table, and the claim's steps on it. Each step is a function
//! of its own for the verifier, which then checks it once instead of once per rule and level.

use core::intrinsics::{AtomicOrdering, atomic_cxchg};

use limiter_common::bucket::{self, Ask, Bucket, Claim, Place};
use limiter_common::clock::Tick;
use limiter_common::counters::RuleCount;
use limiter_common::hash::KeyHash;
use limiter_common::key::{Key, Level};
use limiter_common::layout::{AddressEntry, RuleEntry};
use limiter_common::take::Step;
use limiter_common::word::Word;

use crate::{maps, stats};

/// A bucket of the table: eight words in a cache line, shared by all CPUs and the daemon.
struct TableBucket {
    words: *mut u64,
    /// What [`find`] needs to come here again.
    hash: u64,
    name: u32,
}

impl TableBucket {
    #[inline(always)]
    fn word(&self, slot: u32) -> *mut u64 {
        // SAFETY: the map's value is eight words, and `slot` is below eight.
        unsafe { self.words.add((slot & (Self::SLOTS - 1)) as usize) }
    }
}

impl Bucket for TableBucket {
    #[inline(always)]
    fn load(&self, slot: u32) -> Word {
        // SAFETY: an aligned word of a map's value; the read is one instruction. (LLVM can't select
        // a relaxed atomic load for BPF, a volatile one is the same instruction.)
        Word(unsafe { self.word(slot).read_volatile() })
    }

    #[inline(always)]
    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool {
        // SAFETY: an aligned word of a map's value.
        unsafe {
            atomic_cxchg::<u64, { AtomicOrdering::SeqCst }, { AtomicOrdering::SeqCst }>(
                self.word(slot),
                old.0,
                new.0,
            )
            .1
        }
    }

    #[inline(always)]
    fn find(&self, ask: &Ask) -> Place {
        Place::unpack(find(self.hash, self.name, ask.now.0))
    }
}

/// [`bucket::find`] as a function of its own; a packed [`Place`].
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn find(hash: u64, name: u32, tick: u64) -> u32 {
    match Pool::open(hash, name, tick, 0) {
        Some(pool) => bucket::find(&pool.words, &pool.ask).pack(),
        None => Place::Full.pack(),
    }
}

/// A rule's pool for one key, as far as it exists.
struct Pool {
    rule: &'static RuleEntry,
    bucket: u32,
    words: TableBucket,
    ask: Ask,
}

/// Generation and place of a rule, and the key's tag, in one number.
#[inline(always)]
pub fn name(generation: u32, place: u32, key: Key) -> u32 {
    place | generation << 8 | (key.tag() as u32) << 16
}

impl Pool {
    #[inline(always)]
    fn open(hash: u64, name: u32, tick: u64, length: u32) -> Option<Self> {
        let generation = name >> 8 & 1;
        let rule = maps::rule(generation, name)?;
        let level = level(name);
        let hash = KeyHash(hash);
        let bucket = hash.bucket(rule.group(), maps::bucket_mask());
        let ask = Ask {
            fingerprint: hash.fingerprint(rule.id()),
            now: Tick(tick),
            window: rule.window(),
            limit: rule.limit(level)?,
            cost: rule.cost(length),
            span: maps::policy(generation)?.span,
            floor: bucket::floor(level),
        };
        Some(Self {
            rule,
            bucket,
            words: TableBucket { words: maps::words(bucket)?, hash: hash.0, name },
            ask,
        })
    }
}

#[inline(always)]
fn level(name: u32) -> Level {
    match name >> 16 & 7 {
        0 => Level::Total,
        1 | 2 => Level::Prefix,
        _ => Level::Source,
    }
}

/// 1 if the pool would grant this packet, or the rule doesn't limit this level.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn has_room(hash: u64, name: u32, tick: u64, length: u32) -> u32 {
    match Pool::open(hash, name, tick, length) {
        Some(pool) => bucket::has_room(&pool.words, &pool.ask) as u32,
        None => 1,
    }
}

/// One try to claim this packet's cost: a packed [`Step`]. `bits` is the key without its tag.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn draw(hash: u64, bits: u64, name: u32, tick: u64, length: u32) -> u32 {
    let Some(pool) = Pool::open(hash, name, tick, length) else {
        return Step::Nothing.pack();
    };
    let step = match bucket::attempt(&pool.words, &pool.ask) {
        Some(Claim::Granted { inserted, displaced }) => {
            if let Some(slot) = inserted
                && let Some(key) = Key::from_parts((name >> 16 & 7) as u8, bits)
            {
                maps::set_address(pool.bucket, slot, AddressEntry::new(key, pool.rule.id()));
            }
            if displaced {
                stats::rule(pool.rule.row(), RuleCount::Displaced(level(name)), length);
            }
            Step::Debited
        }
        Some(Claim::Spent) => Step::NoRoom,
        Some(Claim::Crowded) => {
            // This level can't judge: the coarser ones do.
            stats::rule(pool.rule.row(), RuleCount::Crowded(level(name)), length);
            Step::Nothing
        }
        Some(Claim::Contended) | None => Step::Again,
    };
    step.pack()
}

/// Gives a granted cost back, since another pool refused.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn give_back(hash: u64, name: u32, tick: u64, length: u32) -> u32 {
    if let Some(pool) = Pool::open(hash, name, tick, length) {
        bucket::refund(&pool.words, &pool.ask);
    }
    0
}
