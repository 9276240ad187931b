//! What the daemon does to words while the program runs: it clears those that no window needs any more.
//! Ends are kept modulo seven hours, so that a word left lying would seem alive again some day.

use super::Bucket;
use crate::clock::Tick;
use crate::word::Word;

/// Clears the bucket's dead words and returns how many. `span` is the longest life of any word, as in
/// [`super::Ask::span`].
///
/// A dead word is one whose slot any key may take: one tick after its end, since a CPU may be that late.
/// So none may be *later*: after a jump of the clock, the caller first waits until all packets that saw the
/// old time are through.
pub fn clear_dead<B: Bucket>(bucket: &B, now: Tick, span: u32) -> u32 {
    let (mut cleared, mut slot) = (0_u32, 0_u32);
    while slot < B::SLOTS {
        let word = bucket.load(slot);
        let dead = word != Word::EMPTY && !word.occupied(now, span);
        // If a CPU has just begun a new window there, the word stays.
        if dead && bucket.exchange(slot, word, Word::EMPTY) {
            cleared = cleared.wrapping_add(1);
        }
        slot = slot.wrapping_add(1);
    }
    cleared
}
