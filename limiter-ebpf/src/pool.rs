//! One pool of one rule: what this CPU holds of it, its bucket in the table, and the claim's steps on it.
//! Each step is a function of its own for the verifier, which then checks it once instead of once per rule
//! and level.

use core::intrinsics::{AtomicOrdering, atomic_cxchg};

use limiter_common::border::Subject;
use limiter_common::bucket::{self, Ask, Bucket, Claim, Place, Room};
use limiter_common::clock::Tick;
use limiter_common::counters::RuleCount;
use limiter_common::hash::KeyHash;
use limiter_common::held::{self, Held};
use limiter_common::key::{Level, Source};
use limiter_common::layout::{AddressEntry, RuleEntry};
use limiter_common::take::Step;
use limiter_common::want::Want;
use limiter_common::word::Word;

use crate::maps::{self, Notes};
use crate::stats;

/// A bucket of the table: eight words in a cache line, shared by all CPUs and the daemon.
struct TableBucket<'a> {
    words: *mut u64,
    pool: &'a Pool,
}

impl TableBucket<'_> {
    #[inline(always)]
    fn word(&self, slot: u32) -> *mut u64 {
        // SAFETY: the map's value is eight words, and `slot` is below eight.
        unsafe { self.words.add((slot & (Self::SLOTS - 1)) as usize) }
    }
}

impl Bucket for TableBucket<'_> {
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
    fn find(&self, _: &Ask) -> Place {
        find(self.pool.name);
        self.pool.place()
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
    fn words(&self) -> Option<TableBucket<'_>> {
        Some(TableBucket { words: maps::words(self.bucket())?, pool: self })
    }

    /// What to ask for `cost`, or better `more`.
    #[inline(always)]
    fn ask(&self, (cost, more): (u32, u32)) -> Option<Ask> {
        Some(Ask {
            fingerprint: self.hash.fingerprint(self.rule.id()),
            now: self.now,
            window: self.rule.window(),
            limit: self.rule.limit(self.level())?,
            cost,
            more,
            share: maps::share(),
            span: maps::policy(self.name >> 7)?.span,
            floor: bucket::floor(self.level()),
        })
    }

    /// What this CPU holds of the pool; `None` at the source level, where tickets hold it.
    #[inline(always)]
    fn held(&self) -> Option<&'static mut Held> {
        if self.level() == Level::Source {
            return None;
        }
        let pool = held::Pool {
            name: self.hash.of_rule(self.rule.id()),
            generation: self.name >> 7,
            now: self.now,
            window: self.rule.window(),
        };
        // SAFETY: this CPU's own map value, and nothing else on this CPU runs meanwhile.
        let held = unsafe { &mut *maps::held(pool.name)? };
        if !held.is_of(&pool) {
            held.begin(&pool);
        }
        Some(held)
    }

    /// One try to claim from the table.
    #[inline(always)]
    fn claim(&self, costs: (u32, u32), want: u64) -> Option<Result<u32, Step>> {
        Some(match bucket::attempt(&self.words()?, &self.ask(costs)?, self.place()) {
            Some(Claim::Granted { amount, known, displaced }) => {
                if let Some(slot) = known {
                    self.write_address(slot);
                }
                if displaced {
                    self.count(RuleCount::Displaced(self.level()), want);
                }
                Ok(amount)
            }
            Some(Claim::Spent) => Err(Step::NoRoom),
            Some(Claim::Crowded) => {
                // This level can't judge: the coarser ones do.
                self.count(RuleCount::Crowded(self.level()), want);
                Err(Step::Nothing)
            }
            Some(Claim::Contended) | None => Err(Step::Again),
        })
    }

    #[inline(always)]
    fn write_address(&self, slot: u32) {
        let source = Source::from_bits(Subject(self.notes.subject.get()).family(), self.notes.source.get());
        let entry = AddressEntry::new(source.key(self.level()), self.rule.id());
        maps::set_address(self.bucket(), slot, entry);
    }

    #[inline(always)]
    fn count(&self, what: RuleCount, want: u64) {
        stats::rule(self.rule.row(), what, Want(want).least().1);
    }
}

/// Looks where the key is, or could go, and notes it. (The bucket's search as a function of its own.)
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

/// What the pool, and what this CPU holds of it, have room for.
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
    let costs = Want(want).costs(pool.rule);
    let Some(held) = pool.held() else {
        return Some(bucket::look(&pool.words()?, &pool.ask(costs)?));
    };
    if let Some(room) = held.room(costs) {
        return Some(room);
    }
    let room = bucket::look(&pool.words()?, &pool.ask(held.lacks(costs))?);
    if room == Room::None && pool.rule.counts_packets() {
        held.set_spent();
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
    let held = pool.held();
    let claim = match &held {
        Some(held) => held.claim(cost),
        None if cost == 0 => return None,
        None => Some((cost, cost)),
    };
    let amount = match claim {
        None => 0,
        Some(claim) => match pool.claim(claim, want)? {
            Ok(amount) => amount,
            Err(step) => return Some(step),
        },
    };
    if let Some(held) = held {
        held.take(amount, cost);
    }
    Some(Step::Debited)
}

/// Gives back what was drawn, since another pool refused.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn give_back(name: u32, want: u64) -> u32 {
    if let Some(pool) = Pool::open(name) {
        let (cost, _) = Want(want).costs(pool.rule);
        match pool.held() {
            Some(held) => held.give_back(cost),
            None => {
                if let (Some(words), Some(ask)) = (pool.words(), pool.ask((cost, cost))) {
                    bucket::refund(&words, &ask);
                }
            }
        }
    }
    0
}
