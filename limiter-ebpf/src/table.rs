//! The table's buckets, as [`limiter_common::bucket`] wants them.

use core::intrinsics::{AtomicOrdering, atomic_cxchg};

use limiter_common::bucket::Bucket;
use limiter_common::judge::Maps;
use limiter_common::word::Word;

use crate::maps::Kernel;

/// A bucket of the table: eight words in a cache line, shared by all CPUs and the daemon.
pub struct TableBucket {
    pub words: *mut u64,
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
    fn forget(&self, number: u32) -> u32 {
        match Kernel.notes() {
            Some(notes) => notes.forget(number as u64) as u32,
            None => number,
        }
    }

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
