//! Where in its bucket a key is, or could go. Reads, and changes nothing.

use super::{Ask, Bucket};
use crate::word::{Fingerprint, Heat, RESERVED, Word};

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

    /// The slot in what [`Place::pack`] made.
    #[inline(always)]
    #[must_use]
    pub const fn slot(packed: u32) -> u32 {
        packed & 0xff
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

/// How little a slot's present key needs it: the smaller, the sooner it goes. Of equally warm keys the least
/// used one, so that one claim never displaces many.
#[inline(always)]
pub(super) fn rank(word: Word, ask: &Ask) -> u32 {
    if !word.occupied(ask.now, ask.span) {
        FREE
    } else if word.value() == RESERVED || word.heat() >= Heat::Hot {
        KEPT
    } else {
        // Heat and value lie side by side in the word: of equally warm ones the least used goes.
        1_u32.wrapping_add((word.heat() as u32) << 22 | word.value())
    }
}

pub(super) const FREE: u32 = 0;
pub(super) const KEPT: u32 = u32::MAX;

/// Looks for the key's own slot; if it has none, for the one that is needed least, beginning at one that
/// depends on the key, so that ties fall differently for different keys.
#[inline(always)]
pub fn find<B: Bucket + ?Sized>(bucket: &B, ask: &Ask) -> Place {
    let mut slot = 0_u32;
    let mut place = None;
    while place.is_none() && slot < B::SLOTS {
        if bucket.load(slot).belongs_to(ask.fingerprint) {
            place = Some(Place::Own(slot));
        }
        slot = slot.wrapping_add(1);
    }
    let place = match place {
        Some(place) => place,
        None => coldest(bucket, ask),
    };
    Place::unpack(bucket.forget(place.pack()))
}

#[inline(always)]
fn coldest<B: Bucket + ?Sized>(bucket: &B, ask: &Ask) -> Place {
    #[expect(clippy::cast_possible_truncation, reason = "only the lowest bits are used")]
    let start = ask.fingerprint.get() as u32;
    let (mut best, mut best_slot) = (KEPT, 0);
    let mut i = 0_u32;
    while i < B::SLOTS {
        let slot = start.wrapping_add(i) & B::SLOTS.wrapping_sub(1);
        let rank = rank(bucket.load(slot), ask);
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

/// Whether the key lies in any other slot.
#[inline(always)]
pub(super) fn has_twin<B: Bucket>(bucket: &B, fingerprint: Fingerprint, own: u32) -> bool {
    let mut slot = 0;
    while slot < B::SLOTS {
        if slot != own && bucket.load(slot).belongs_to(fingerprint) {
            return true;
        }
        slot = slot.wrapping_add(1);
    }
    false
}
