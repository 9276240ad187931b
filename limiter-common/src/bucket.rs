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

mod ask;
mod clear;
mod place;

pub use ask::{Ask, UNLIMITED, floor, life};
pub use clear::clear_dead;
pub use place::{Place, find};

use crate::word::{Heat, RESERVED, Word};
use ask::warmer;
use place::{FREE, KEPT, has_twin, own, rank};

/// How often a claim begins again after another CPU changed the word it was about to change.
pub const TRIES: u32 = 8;

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
