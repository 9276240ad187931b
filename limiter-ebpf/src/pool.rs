//! One pool of one rule: its bucket in the table, and the claim's steps on it.
//! Each step is a function of its own for the verifier, which then checks it once instead of once per rule
//! and level.

use core::intrinsics::{AtomicOrdering, atomic_cxchg};

use limiter_common::border::Subject;
use limiter_common::bucket::{self, Ask, Bucket, Claim, Place, Room};
use limiter_common::clock::Tick;
use limiter_common::counters::RuleCount;
use limiter_common::hash::KeyHash;
use limiter_common::key::{Level, Source};
use limiter_common::layout::{AddressEntry, RuleEntry};
use limiter_common::take::Step;
use limiter_common::want::Want;
use limiter_common::word::Word;

use crate::maps::{self, Notes};
use crate::stats;

/// A bucket of the table: eight words in a cache line, shared by all CPUs and the daemon.
struct TableBucket {
    words: *mut u64,
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
}

/// A rule's pool for the key that the packet in this CPU's notes has at a level.
struct Pool {
    rule: &'static RuleEntry,
    notes: &'static Notes,
    hash: KeyHash,
    now: Tick,
    name: u32,
}

/// Which pool is meant: the rule's place goes into bits 0–4, the level is in 5–6, the lower bits of the
/// policy's number in the rest.
#[inline(always)]
pub fn name(generation: u32, level: u32) -> u32 {
    level << 5 | generation << 7
}

impl Pool {
    /// `None` if the rule doesn't limit the level.
    #[inline(always)]
    fn open(name: u32) -> Option<Self> {
        let (notes, rule) = (maps::notes()?, maps::rule(name >> 7, name)?);
        rule.limit(Level::from_index(name >> 5))?;
        let hash = KeyHash(notes.hash((name >> 5) as usize).get());
        Some(Self { rule, notes, hash, now: Tick(notes.tick.get()), name })
    }

    #[inline(always)]
    fn level(&self) -> Level {
        Level::from_index(self.name >> 5)
    }

    /// Where the key was seen last; see [`find`].
    #[inline(always)]
    fn place(&self) -> Place {
        Place::unpack(self.notes.place(self.name as usize).get())
    }

    #[inline(always)]
    fn bucket(&self) -> u32 {
        self.hash.bucket(self.rule.group(), maps::bucket_mask())
    }

    #[inline(always)]
    fn words(&self) -> Option<TableBucket> {
        Some(TableBucket { words: maps::words(self.bucket())? })
    }

    /// What to ask for `cost`, or better `more`.
    #[inline(always)]
    fn ask(&self, (cost, more): (u32, u32)) -> Option<Ask> {
        Some(Ask {
            fingerprint: self.hash.fingerprint(self.rule.id()),
            now: self.now,
            window: self.rule.window(),
            end: self.notes.end_of(self.rule.window()),
            limit: self.rule.limit(self.level())?,
            cost,
            more,
            share: maps::share(),
            span: maps::policy(self.name >> 7)?.span,
            known_from: self.rule.known_from(),
            floor: bucket::floor(self.level()),
        })
    }

    #[inline(always)]
    fn write_address(&self, slot: u32) {
        let source =
            Source::from_bits(Subject(self.notes.subject.get()).family(), self.notes.source.get());
        let entry = AddressEntry::new(source.key(self.level()), self.rule.id());
        maps::set_address(self.bucket(), slot, entry);
    }

    #[inline(always)]
    fn count(&self, what: RuleCount, want: u64) {
        stats::rule(self.rule.row(), what, Want(want).least().1);
    }
}

/// Looks again where the key is, or could go, and notes it.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn find(name: u32) -> u32 {
    if let Some(pool) = Pool::open(name)
        && let (Some(words), Some(ask)) = (pool.words(), pool.ask((0, 0)))
    {
        pool.notes.place(name as usize).set(bucket::find(&words, &ask).pack());
    }
    0
}

/// What the pool has room for.
#[inline(always)]
pub fn room(name: u32, want: u64) -> Room {
    Room::from_number(pool_room(name, want))
}

#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn pool_room(name: u32, want: u64) -> u32 {
    look(name, want).unwrap_or(Room::More) as u32
}

#[inline(always)]
fn look(name: u32, want: u64) -> Option<Room> {
    let pool = Pool::open(name)?;
    let ask = pool.ask(Want(want).costs(pool.rule))?;
    let (room, place) = bucket::look(&pool.words()?, &ask);
    pool.notes.place(name as usize).set(place.pack());
    // Who is refused shall be known, also if it claimed only once.
    if room == Room::None
        && let Place::Own(slot) = place
    {
        pool.write_address(slot);
    }
    Some(room)
}

/// One try to take what is wanted: a packed [`Step`]. Called after [`room`], for the same pool.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn draw(name: u32, want: u64) -> u32 {
    try_draw(name, want).unwrap_or(Step::Nothing).pack()
}

#[inline(always)]
fn try_draw(name: u32, want: u64) -> Option<Step> {
    let pool = Pool::open(name)?;
    let (cost, _) = Want(want).costs(pool.rule);
    if cost == 0 {
        return None;
    }
    Some(match bucket::attempt(&pool.words()?, &pool.ask((cost, cost))?, pool.place()) {
        Some(Claim::Granted { known, displaced, .. }) => {
            if let Some(slot) = known {
                pool.write_address(slot);
            }
            if displaced {
                pool.count(RuleCount::Displaced(pool.level()), want);
            }
            Step::Debited
        }
        Some(Claim::Spent) => Step::NoRoom,
        Some(Claim::Crowded) => {
            // This level can't judge: the coarser ones do.
            pool.count(RuleCount::Crowded(pool.level()), want);
            Step::Nothing
        }
        Some(Claim::Contended) | None => Step::Again,
    })
}

/// Gives back what was drawn, since another pool of the level refused.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn pool_give_back(name: u32, want: u64) -> u32 {
    if let Some(pool) = Pool::open(name) {
        let (cost, _) = Want(want).costs(pool.rule);
        if let (Some(words), Some(ask)) = (pool.words(), pool.ask((cost, cost))) {
            bucket::refund(&words, &ask, Place::slot(pool.notes.place(name as usize).get()));
        }
    }
    0
}
