//! The claim: how tokens leave a pool that many CPUs share, exactly, without a lock.
//!
//! A pool is one [`Word`] in one bucket. Each change is one compare-and-swap of a whole word, so a
//! key's identity and what it used can't come apart. Three rules keep one key in one place:
//!
//! 1. A known key's word is changed where it is, also when a new window begins.
//! 2. A new key first reserves a slot (value [`RESERVED`]), then looks at the bucket again; who sees
//!    its key elsewhere clears the reservation and begins again. Of two that reserve, at least one
//!    sees the other.
//! 3. A slot belongs to its key until one tick after its end, so that a late CPU can't begin the old
//!    window a second time elsewhere.
//!
//! The loom tests (`tests/loom.rs`) try these with every interleaving of three threads.

use crate::clock::{Tick, WindowLength};
use crate::key::Level;
use crate::word::{END_MASK, Fingerprint, Heat, MAX_VALUE, RESERVED, Word};

/// How often a claim begins again after another CPU changed the word it was about to change.
pub const TRIES: u32 = 8;

/// A later clock than ours is believed up to this many ticks (1 s), or one window if that is more.
const LATEST: u64 = 10;

/// Eight words in one cache line, or what stands for them in a test.
pub trait Bucket {
    /// A power of two.
    const SLOTS: u32 = 8;

    /// Reads a slot; `slot` is below [`Bucket::SLOTS`].
    fn load(&self, slot: u32) -> Word;

    /// Replaces `old` by `new`, sequentially consistent; false if the slot no longer held `old`.
    fn exchange(&self, slot: u32, old: Word, new: Word) -> bool;

    /// Where the key is, or could go: [`find`]. The kernel puts a function border here, so that the
    /// verifier doesn't multiply the search with the tries around it.
    #[inline(always)]
    fn find(&self, ask: &Ask) -> Place {
        find(self, ask)
    }
}

/// A limit that never refuses: the key's use is counted and shown.
pub const UNLIMITED: u32 = u32::MAX;

/// What is asked of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Which key, within its bucket.
    pub fingerprint: Fingerprint,
    /// The time of this packet.
    pub now: Tick,
    /// The rule's window.
    pub window: WindowLength,
    /// Quanta per window, at most [`MAX_VALUE`], or [`UNLIMITED`].
    pub limit: u32,
    /// Quanta that this packet costs.
    pub cost: u32,
    /// The longest life of any word under the present policy, in ticks: see [`life`].
    pub span: u32,
    /// How warm the word is at least: see [`floor`].
    pub floor: Heat,
}

/// How warm a word of a level is from its first claim on. Who forges sources makes words of sources,
/// each for one packet: these must not push out what holds the flood as a whole. A rule's total is never
/// displaced, a prefix only once no source is as cold.
#[inline(always)]
#[must_use]
pub const fn floor(level: Level) -> Heat {
    match level {
        Level::Total => Heat::Hot,
        Level::Prefix => Heat::Warm,
        Level::Source => Heat::Cold,
    }
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// All of the cost was debited.
    Granted {
        /// The slot of a key that had none before.
        inserted: Option<u32>,
        /// Another key lost its count.
        displaced: bool,
    },
    /// Not enough is left; nothing was debited.
    Spent,
    /// The bucket is full of keys that are near or at their limits: this level can't judge.
    Crowded,
    /// Others kept changing the words.
    Contended,
}

/// The longest that a word of a rule with this window can matter, in ticks: the window, and what a
/// CPU with a later clock may have put behind it.
#[must_use]
pub const fn life(window: WindowLength) -> u32 {
    let ticks = window.ticks();
    ticks.wrapping_add(if ticks > 10 { ticks } else { 10 })
}

impl Ask {
    /// Whether `word`, one of this key, still counts: it belongs to the window of `now`, or to a
    /// later one, which another CPU has begun already and which nobody reopens.
    #[inline(always)]
    fn counts(&self, word: Word) -> bool {
        let later = word.end().wrapping_sub(self.window.end_of(self.now).low()) & END_MASK;
        if later == 0 {
            return true;
        }
        let length = u64::from(self.window.ticks());
        let latest = if length > LATEST { length } else { LATEST };
        later <= latest && later.checked_rem(length) == Some(0)
    }

    /// Whether this cost fits beside what was used.
    #[inline(always)]
    fn fits(&self, used: u32) -> bool {
        self.limit == UNLIMITED || used.saturating_add(self.cost) <= self.limit
    }

    #[inline(always)]
    fn heat(&self, used: u32) -> Heat {
        let heat = if used >= self.limit.div_ceil(2) {
            Heat::Hot
        } else if used >= self.limit.div_ceil(8) {
            Heat::Warm
        } else {
            Heat::Cold
        };
        warmer(heat, self.floor)
    }

    /// The word of a key whose window begins with this claim. However much it claims, it is as cold as
    /// its level allows: one packet must not make a slot hard to move.
    #[inline(always)]
    fn first(&self) -> Word {
        let end = self.window.end_of(self.now);
        Word::new(self.fingerprint, end, self.floor, self.capped(self.cost))
    }

    /// Only an unlimited pool can count further than a word.
    #[inline(always)]
    fn capped(&self, used: u32) -> u32 {
        if used > MAX_VALUE { MAX_VALUE } else { used }
    }
}

#[inline(always)]
fn warmer(one: Heat, other: Heat) -> Heat {
    if one > other { one } else { other }
}

/// Where a key is, or could go: a slot each. By the time the caller looks, another CPU may have
/// changed it; so the caller reads it again and checks it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Its own word, alive or dead.
    Own(u32),
    /// A slot that no living key needs.
    Free(u32),
    /// The coldest of a full bucket.
    Cold(u32),
    /// Nowhere: all are at or near their limits.
    Full,
}

impl Place {
    /// As one number: the slot in bits 0–7, the kind in bits 8–15.
    #[inline(always)]
    #[must_use]
    pub const fn pack(self) -> u32 {
        match self {
            Self::Own(slot) => slot,
            Self::Free(slot) => slot | 1 << 8,
            Self::Cold(slot) => slot | 2 << 8,
            Self::Full => 3 << 8,
        }
    }

    /// The reverse of [`Place::pack`].
    #[inline(always)]
    #[must_use]
    pub const fn unpack(packed: u32) -> Self {
        let slot = packed & 0xff;
        match packed >> 8 {
            0 => Self::Own(slot),
            1 => Self::Free(slot),
            2 => Self::Cold(slot),
            _ => Self::Full,
        }
    }
}

/// How little a slot's present key needs it: the smaller, the sooner it goes.
#[inline(always)]
fn rank(word: Word, ask: &Ask) -> u32 {
    if !word.occupied(ask.now, ask.span) {
        FREE
    } else if word.value() == RESERVED || word.heat() >= Heat::Hot {
        KEPT
    } else {
        1_u32.wrapping_add(word.heat() as u32)
    }
}

const FREE: u32 = 0;
const KEPT: u32 = 3;

/// Reads each slot once, beginning at one that depends on the key, so that ties fall differently for
/// different keys.
#[inline(always)]
pub fn find<B: Bucket + ?Sized>(bucket: &B, ask: &Ask) -> Place {
    #[expect(clippy::cast_possible_truncation, reason = "only the lowest bits are used")]
    let start = ask.fingerprint.get() as u32;
    let (mut best, mut best_slot) = (KEPT, 0);
    let mut i = 0_u32;
    while i < B::SLOTS {
        let slot = start.wrapping_add(i) & B::SLOTS.wrapping_sub(1);
        let word = bucket.load(slot);
        if word.belongs_to(ask.fingerprint) {
            return Place::Own(slot);
        }
        let rank = rank(word, ask);
        if rank < best {
            (best, best_slot) = (rank, slot);
        }
        i = i.wrapping_add(1);
    }
    match best {
        FREE => Place::Free(best_slot),
        KEPT => Place::Full,
        _ => Place::Cold(best_slot),
    }
}

/// The key's own word, if there is one.
#[inline(always)]
fn own<B: Bucket>(bucket: &B, ask: &Ask) -> Option<(u32, Word)> {
    let Place::Own(slot) = bucket.find(ask) else {
        return None;
    };
    let word = bucket.load(slot);
    if word.belongs_to(ask.fingerprint) { Some((slot, word)) } else { None }
}

/// Whether a claim would be granted now. A refusal marks the key as spent, so that nobody displaces
/// it while it is being limited; nothing is debited or inserted.
#[inline(always)]
pub fn has_room<B: Bucket>(bucket: &B, ask: &Ask) -> bool {
    if let Some((slot, word)) = own(bucket, ask)
        && ask.counts(word)
        // Whoever is putting the key there decides; the claim will see what it put.
        && word.value() != RESERVED
    {
        return ask.fits(word.value()) || refuse(bucket, slot, word);
    }
    ask.fits(0)
}

/// Marks a word as spent. Always false, the answer of its callers. If the swap fails, another CPU
/// has just changed the word, and the next refusal marks it.
#[inline(always)]
fn refuse<B: Bucket>(bucket: &B, slot: u32, word: Word) -> bool {
    if word.heat() != Heat::Spent {
        bucket.exchange(slot, word, word.with(Heat::Spent, word.value()));
    }
    false
}

/// Takes the cost out of the key's pool, all or nothing.
pub fn claim<B: Bucket>(bucket: &B, ask: &Ask) -> Claim {
    let mut tries = 0;
    while tries < TRIES {
        tries = tries.wrapping_add(1);
        if let Some(claim) = attempt(bucket, ask) {
            return claim;
        }
    }
    Claim::Contended
}

/// One try of [`claim`]; `None` if another CPU was faster, at most [`TRIES`] times.
#[inline(always)]
pub fn attempt<B: Bucket>(bucket: &B, ask: &Ask) -> Option<Claim> {
    match bucket.find(ask) {
        Place::Own(slot) => debit(bucket, ask, slot),
        Place::Free(slot) => insert(bucket, ask, slot, FREE),
        Place::Cold(slot) => insert(bucket, ask, slot, KEPT.wrapping_sub(1)),
        Place::Full if ask.fits(0) => Some(Claim::Crowded),
        Place::Full => Some(Claim::Spent),
    }
}

/// Debits a key where it is; `None` if the word changed meanwhile.
#[inline(always)]
fn debit<B: Bucket>(bucket: &B, ask: &Ask, slot: u32) -> Option<Claim> {
    let word = bucket.load(slot);
    if !word.belongs_to(ask.fingerprint) {
        return None;
    }
    let used = word.value();
    if used == RESERVED {
        // Also from a window that is over: its CPU may be about to find the key elsewhere, and
        // could not take a word back that we had made of it.
        return None;
    }
    let debited = if ask.counts(word) {
        if !ask.fits(used) {
            refuse(bucket, slot, word);
            return Some(Claim::Spent);
        }
        let used = ask.capped(used.saturating_add(ask.cost));
        let heat = ask.heat(used);
        word.with(warmer(heat, word.heat()), used)
    } else {
        // The window is over: the next one begins in the same slot.
        if !ask.fits(0) {
            return Some(Claim::Spent);
        }
        ask.first()
    };
    if bucket.exchange(slot, word, debited) {
        Some(Claim::Granted { inserted: None, displaced: false })
    } else {
        None
    }
}

/// Puts a new key into a slot whose key needs it as little as `worst`; `None` if it has to be tried
/// again.
#[inline(always)]
fn insert<B: Bucket>(bucket: &B, ask: &Ask, slot: u32, worst: u32) -> Option<Claim> {
    if !ask.fits(0) {
        return Some(Claim::Spent);
    }
    let word = bucket.load(slot);
    let rank = rank(word, ask);
    if rank > worst || word.belongs_to(ask.fingerprint) {
        return None;
    }
    let first = ask.first();
    let reserved = first.with(Heat::Cold, RESERVED);
    if !bucket.exchange(slot, word, reserved) {
        return None;
    }
    if has_twin(bucket, ask.fingerprint, slot) {
        bucket.exchange(slot, reserved, Word::EMPTY);
        return None;
    }
    // Nobody else changes a reserved word before its end.
    if bucket.exchange(slot, reserved, first) {
        Some(Claim::Granted { inserted: Some(slot), displaced: rank != FREE })
    } else {
        None
    }
}

/// Whether the key lies in any other slot.
#[inline(always)]
fn has_twin<B: Bucket>(bucket: &B, fingerprint: Fingerprint, own: u32) -> bool {
    let mut slot = 0;
    while slot < B::SLOTS {
        if slot != own && bucket.load(slot).belongs_to(fingerprint) {
            return true;
        }
        slot = slot.wrapping_add(1);
    }
    false
}

/// Gives back what [`claim`] debited, if the window of `ask.now` is still the word's. Once it is over,
/// there is nothing to give back to.
#[inline(always)]
pub fn refund<B: Bucket>(bucket: &B, ask: &Ask) {
    let end = ask.window.end_of(ask.now).low();
    let mut tries = 0;
    while tries < TRIES {
        tries = tries.wrapping_add(1);
        let Some((slot, word)) = own(bucket, ask) else {
            return;
        };
        if word.end() != end || word.value() == RESERVED {
            return;
        }
        let rest = word.value().saturating_sub(ask.cost);
        if bucket.exchange(slot, word, word.with(word.heat(), rest)) {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
