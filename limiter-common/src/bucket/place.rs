//! Where in its bucket a key is, or could go. Reads, and changes nothing.

use super::{Ask, Bucket};
use crate::word::{Fingerprint, RESERVED, Word};

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
///
/// Without a branch: the kernel's verifier would follow every sequence of answers over the eight slots.
#[inline(always)]
pub(super) fn rank(word: Word, ask: &Ask) -> u64 {
    // Heat and value lie side by side, so one number orders by both.
    let need = (word.0 & NEED).wrapping_add(1);
    let kept = all_ones_if((word.0 & HOT) >> HOT_SHIFT) | if_equal(word.0 & VALUE, VALUE);
    let lives = if_below(word.ticks_left(ask.now), (ask.span as u64).wrapping_add(1));
    (need | kept & KEPT) & lives & !if_equal(word.0, 0)
}

/// Heat and value of a word.
const NEED: u64 = (1 << 24) - 1;
const VALUE: u64 = RESERVED as u64;
/// The upper bit of the heat: hot or spent.
const HOT_SHIFT: u32 = 23;
const HOT: u64 = 1 << HOT_SHIFT;

pub(super) const FREE: u64 = 0;
/// From here on: not to be displaced.
pub(super) const KEPT: u64 = 1 << 25;

/// All ones for 1, 0 for 0.
#[inline(always)]
const fn all_ones_if(bit: u64) -> u64 {
    bit.wrapping_neg()
}

/// All ones if equal, else 0.
#[inline(always)]
const fn if_equal(one: u64, other: u64) -> u64 {
    let differ = one ^ other;
    !all_ones_if((differ | differ.wrapping_neg()) >> 63)
}

/// All ones if `one` is below `other`, both below 2^63; else 0.
#[inline(always)]
const fn if_below(one: u64, other: u64) -> u64 {
    all_ones_if(one.wrapping_sub(other) >> 63)
}

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
    let mut best = KEPT << SLOT_BITS;
    let mut i = 0_u32;
    while i < B::SLOTS {
        let slot = start.wrapping_add(i) & B::SLOTS.wrapping_sub(1);
        let this = rank(bucket.load(slot), ask) << SLOT_BITS | slot as u64;
        let less = if_below(this, best & !SLOT);
        best = this & less | best & !less;
        i = i.wrapping_add(1);
    }
    #[expect(clippy::cast_possible_truncation, reason = "a slot is below 8")]
    let slot = (best & SLOT) as u32;
    match best >> SLOT_BITS {
        FREE => Place::Free(slot),
        rank if rank >= KEPT => Place::Full,
        _ => Place::Cold(slot),
    }
}

const SLOT_BITS: u32 = 3;
const SLOT: u64 = (1 << SLOT_BITS) - 1;

/// Whether the key lies in any other slot. Without a branch, as [`rank`].
#[inline(always)]
pub(super) fn has_twin<B: Bucket>(bucket: &B, fingerprint: Fingerprint, own: u32) -> bool {
    let (mut twins, mut slot) = (0, 0);
    while slot < B::SLOTS {
        let same = if_equal(bucket.load(slot).fingerprint(), fingerprint.get());
        twins |= same & !if_equal(slot as u64, own as u64);
        slot = slot.wrapping_add(1);
    }
    twins != 0
}
