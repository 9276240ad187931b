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

pub use ask::{Ask, Room, UNLIMITED, floor, life};
pub use clear::clear_dead;
pub use place::{Place, find};

use crate::word::{Heat, RESERVED, Word};
use ask::warmer;
use place::{FREE, KEPT, has_twin, rank};

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

    /// The same number. The kernel's verifier forgets here how it was come by: it would check all that
    /// follows once for each slot.
    #[inline(always)]
    fn forget(&self, number: u32) -> u32 {
        number
    }
}

/// How a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Tokens were debited.
    Granted {
        /// How many: [`Ask::cost`] or [`Ask::more`].
        amount: u32,
        /// The key's slot, if now is the time to write down whose it is: at [`Ask::known_from`], and as it
        /// gets hot. (Not at insertion: who forges sources would have us fetch two lines for each.)
        known: Option<u32>,
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

/// What a claim would be granted now, and where it would begin. A refusal marks the key as spent, so
/// that nobody displaces it while it is being limited; nothing is debited or inserted.
#[inline(always)]
pub fn look<B: Bucket>(bucket: &B, ask: &Ask) -> (Room, Place) {
    let place = find(bucket, ask);
    let room = match place {
        Place::Own(slot) => {
            let word = bucket.load(slot);
            let own = word.belongs_to(ask.fingerprint) && ask.counts(word);
            // Whoever is putting the key there decides; the claim will see what it put.
            let own = own && word.value() != RESERVED;
            let room = ask.room(if own { word.value() } else { 0 });
            if own && room == Room::None {
                refuse(bucket, slot, word);
            }
            room
        }
        Place::Free(_) | Place::Cold(_) => ask.room(0),
        // Nothing is kept of who can't be judged here, so no chunk either: each packet is counted.
        Place::Full => less(ask.room(0), Room::Cost),
    };
    (room, place)
}

#[inline(always)]
fn less(one: Room, other: Room) -> Room {
    if one < other { one } else { other }
}

/// Marks a word as spent. If the swap fails, another CPU has just changed the word, and the next refusal
/// marks it.
#[inline(always)]
fn refuse<B: Bucket>(bucket: &B, slot: u32, word: Word) {
    if word.heat() != Heat::Spent {
        bucket.exchange(slot, word, word.with(Heat::Spent, word.value()));
    }
}

/// Takes the cost, or more, out of the key's pool; or nothing.
pub fn claim<B: Bucket>(bucket: &B, ask: &Ask) -> Claim {
    let mut tries = 0;
    while tries < TRIES {
        tries = tries.wrapping_add(1);
        if let Some(claim) = attempt(bucket, ask, find(bucket, ask)) {
            return claim;
        }
    }
    Claim::Contended
}

/// One try of [`claim`], at a place found before; `None` if another CPU was faster, or the place is no
/// longer what it was. At most [`TRIES`] times.
#[inline(always)]
pub fn attempt<B: Bucket>(bucket: &B, ask: &Ask, place: Place) -> Option<Claim> {
    match place {
        Place::Own(slot) => debit(bucket, ask, slot),
        Place::Free(slot) => insert(bucket, ask, slot, FREE),
        Place::Cold(slot) => insert(bucket, ask, slot, KEPT.wrapping_sub(1)),
        Place::Full if ask.amount(0).is_some() => Some(Claim::Crowded),
        Place::Full => Some(Claim::Spent),
    }
}

/// Changes a known key's word where it is.
#[inline(always)]
fn debit<B: Bucket>(bucket: &B, ask: &Ask, slot: u32) -> Option<Claim> {
    let word = bucket.load(slot);
    // A reserved word also from a window that is over: its CPU may be about to find the key elsewhere,
    // and could not take a word back that we had made of it.
    if !word.belongs_to(ask.fingerprint) || word.value() == RESERVED {
        return None;
    }
    let counts = ask.counts(word);
    let used = if counts { word.value() } else { 0 };
    let Some(amount) = ask.amount(used) else {
        if counts {
            refuse(bucket, slot, word);
        }
        return Some(Claim::Spent);
    };
    let (debited, known) = if counts {
        let after = ask.capped(used.saturating_add(amount));
        let heat = warmer(ask.heat(after), word.heat());
        let met = used < ask.known_from && after >= ask.known_from;
        let hot = heat > word.heat() && heat >= Heat::Hot;
        (word.with(heat, after), met || hot)
    } else {
        // The window is over: the next one begins in the same slot.
        (ask.first(amount), false)
    };
    if bucket.exchange(slot, word, debited) {
        let known = if known { Some(slot) } else { None };
        Some(Claim::Granted { amount, known, displaced: false })
    } else {
        None
    }
}

/// Puts a new key into a slot whose key needs it as little as `worst`; `None` if it has to be tried
/// again.
#[inline(always)]
fn insert<B: Bucket>(bucket: &B, ask: &Ask, slot: u32, worst: u32) -> Option<Claim> {
    let Some(amount) = ask.amount(0) else {
        return Some(Claim::Spent);
    };
    let word = bucket.load(slot);
    let rank = rank(word, ask);
    if rank > worst || word.belongs_to(ask.fingerprint) {
        return None;
    }
    let first = ask.first(amount);
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
        Some(Claim::Granted { amount, known: None, displaced: rank != FREE })
    } else {
        None
    }
}

/// Gives back what [`claim`] debited in this slot, if the window of `ask.now` is still the word's. Once it
/// is over, there is nothing to give back to.
#[inline(always)]
pub fn refund<B: Bucket>(bucket: &B, ask: &Ask, slot: u32) {
    let end = ask.end.low();
    let mut tries = 0;
    while tries < TRIES {
        tries = tries.wrapping_add(1);
        let word = bucket.load(slot);
        if !word.belongs_to(ask.fingerprint) || word.end() != end || word.value() == RESERVED {
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
