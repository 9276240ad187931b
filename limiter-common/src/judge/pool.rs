//! One pool of one rule: its bucket in the table, and the claim's steps on it.

use super::{Maps, Notes};
use crate::border::Subject;
use crate::bucket::{self, Ask, Claim, Place, Room};
use crate::clock::Tick;
use crate::counters::RuleCount;
use crate::hash::KeyHash;
use crate::key::{Level, Source};
use crate::layout::{AddressEntry, RuleEntry};
use crate::take::Step;
use crate::want::Want;

/// A rule's pool for the key that the packet in this CPU's notes has at a level.
struct Pool<M> {
    maps: M,
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

impl<M: Maps> Pool<M> {
    /// `None` if the rule doesn't limit the level.
    #[inline(always)]
    fn open(maps: M, name: u32) -> Option<Self> {
        let (notes, rule) = (maps.notes()?, maps.rule(name >> 7, name)?);
        rule.limit(Level::from_index(name >> 5))?;
        let hash = KeyHash(notes.hash((name >> 5) as usize).get());
        Some(Self { maps, rule, notes, hash, now: Tick(notes.tick.get()), name })
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
        self.hash.bucket(self.rule.group(), self.maps.bucket_mask())
    }

    #[inline(always)]
    fn words(&self) -> Option<M::Bucket> {
        self.maps.bucket(self.bucket())
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
            share: self.maps.share(),
            span: self.maps.policy(self.name >> 7)?.span,
            known_from: self.rule.known_from(),
            floor: bucket::floor(self.level()),
        })
    }

    #[inline(always)]
    fn write_address(&self, slot: u32) {
        let source =
            Source::from_bits(Subject(self.notes.subject.get()).family(), self.notes.source.get());
        let entry = AddressEntry::new(source.key(self.level()), self.rule.id());
        self.maps.set_address(self.bucket(), slot, entry);
    }

    #[inline(always)]
    fn count(&self, what: RuleCount, want: Want) {
        self.maps.count(self.rule.row(), what, want.least().1);
    }
}

/// Looks again where the key is, or could go, and notes it.
#[inline(always)]
pub fn find(maps: impl Maps, name: u32) {
    if let Some(pool) = Pool::open(maps, name)
        && let (Some(words), Some(ask)) = (pool.words(), pool.ask((0, 0)))
    {
        pool.notes.place(name as usize).set(bucket::find(&words, &ask).pack());
    }
}

/// What the pool has room for; notes where the key is, or could go.
#[inline(always)]
pub fn look(maps: impl Maps, name: u32, want: Want) -> Room {
    look_at(maps, name, want).unwrap_or(Room::More)
}

#[inline(always)]
fn look_at(maps: impl Maps, name: u32, want: Want) -> Option<Room> {
    let pool = Pool::open(maps, name)?;
    let ask = pool.ask(want.costs(pool.rule))?;
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

/// One try to take what is wanted, where [`look`] or [`find`] have seen the key.
#[inline(always)]
pub fn draw(maps: impl Maps, name: u32, want: Want) -> Step {
    try_draw(maps, name, want).unwrap_or(Step::Nothing)
}

#[inline(always)]
fn try_draw(maps: impl Maps, name: u32, want: Want) -> Option<Step> {
    let pool = Pool::open(maps, name)?;
    let (cost, _) = want.costs(pool.rule);
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
#[inline(always)]
pub fn give_back(maps: impl Maps, name: u32, want: Want) {
    if let Some(pool) = Pool::open(maps, name) {
        let (cost, _) = want.costs(pool.rule);
        if let (Some(words), Some(ask)) = (pool.words(), pool.ask((cost, cost))) {
            bucket::refund(&words, &ask, Place::slot(pool.notes.place(name as usize).get()));
        }
    }
}
