//! Where a key's word lies in the table, and how the word is told from others there.
//!
//! SipHash-1-3 (Aumasson and Bernstein, 2012; the variant of hash tables in Rust, Python and Ruby)
//! with a random 128-bit seed: who doesn't know the seed can't aim at a bucket or a fingerprint.

use crate::key::Key;
use crate::word::Fingerprint;

/// The secret of one table, made once when the table is made, kept as long as the table lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub [u64; 2]);

/// 64 keyed bits of a key: the lower ones choose the bucket, the upper 22 are the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(pub u64);

/// Spreads the rules of one source over buckets, `group` by `group`: an odd number, so that no two
/// of up to 2^32 groups share a bucket of one key.
const GROUP_STEP: u64 = 0x9e37_79b9;

/// Maps rule ids to fingerprint differences one to one modulo 2^22, so that two rules of a source
/// in one bucket never look alike.
const RULE_STEP: u64 = 0x9e37_79b1;

impl KeyHash {
    /// Hashes level, family and address under the seed.
    #[inline(always)]
    #[must_use]
    pub const fn of(seed: Seed, key: Key) -> Self {
        Self(siphash_1_3(seed, key.bits(), key.tag() as u64))
    }

    /// The bucket for rules of this group, in a table of `mask + 1` buckets (a power of two).
    #[inline(always)]
    #[must_use]
    pub const fn bucket(self, group: u32, mask: u32) -> u32 {
        let place = self.0.wrapping_add((group as u64).wrapping_mul(GROUP_STEP));
        let low = (place & 0xffff_ffff) as u32;
        low & mask
    }

    /// All bits, for one rule: tells its pool for this key from all others.
    #[inline(always)]
    #[must_use]
    pub const fn of_rule(self, rule: u32) -> u64 {
        self.0 ^ (rule as u64).wrapping_mul(GROUP_STEP << 31 | RULE_STEP)
    }

    /// The mark of a rule's word for this key.
    #[inline(always)]
    #[must_use]
    pub const fn fingerprint(self, rule: u32) -> Fingerprint {
        Fingerprint::new((self.0 >> 42) ^ (rule as u64).wrapping_mul(RULE_STEP))
    }
}

/// The place of a source's ticket for a set of rules: the upper bits count. Multiplying by a secret odd
/// number is enough here: a collision costs time and changes no verdict.
#[inline(always)]
#[must_use]
pub const fn ticket_place(Seed([k0, k1]): Seed, source: u64, set: u16) -> u64 {
    let mixed = (source ^ k0 ^ (set as u64).wrapping_mul(GROUP_STEP << 20)).wrapping_mul(k1 | 1);
    (mixed ^ mixed >> 32).wrapping_mul(k1 | 1)
}

/// SipHash-1-3 of the 16 bytes `a`, `b` (little-endian).
#[inline(always)]
const fn siphash_1_3(Seed([k0, k1]): Seed, a: u64, b: u64) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    v = compress(v, a);
    v = compress(v, b);
    v = compress(v, 16 << 56);
    v[2] ^= 0xff;
    v = round(round(round(v)));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[inline(always)]
const fn compress(mut v: [u64; 4], word: u64) -> [u64; 4] {
    v[3] ^= word;
    v = round(v);
    v[0] ^= word;
    v
}

#[inline(always)]
const fn round([mut a, mut b, mut c, mut d]: [u64; 4]) -> [u64; 4] {
    a = a.wrapping_add(b);
    b = b.rotate_left(13) ^ a;
    a = a.rotate_left(32);
    c = c.wrapping_add(d);
    d = d.rotate_left(16) ^ c;
    a = a.wrapping_add(d);
    d = d.rotate_left(21) ^ a;
    c = c.wrapping_add(b);
    b = b.rotate_left(17) ^ c;
    c = c.rotate_left(32);
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{Family, Level, Source};
    use std::hash::Hasher;

    #[test]
    fn is_siphash_1_3() {
        // The standard library's DefaultHasher is SipHash-1-3 with the key 0, 0.
        let mut theirs = std::hash::DefaultHasher::new();
        theirs.write(&0x0123_4567_89ab_cdef_u64.to_le_bytes());
        theirs.write(&7_u64.to_le_bytes());
        assert_eq!(siphash_1_3(Seed([0, 0]), 0x0123_4567_89ab_cdef, 7), theirs.finish());
    }

    #[test]
    fn rules_of_one_source_have_different_marks_and_groups_different_buckets() {
        let source = Source::from_bits(Family::V4, 0x0a00_0001);
        let hash = KeyHash::of(Seed([1, 2]), source.key(Level::Source));
        let mut marks: Vec<u64> = (0..4096).map(|rule| hash.fingerprint(rule).get()).collect();
        marks.sort_unstable();
        marks.dedup();
        // One of the 4,096 may have met the reserved 0.
        assert!(marks.len() >= 4095);
        assert_ne!(hash.bucket(0, 0xffff), hash.bucket(1, 0xffff));
    }

    #[test]
    fn an_ipv4_source_and_a_prefix_with_the_same_bits_differ() {
        let seed = Seed([3, 4]);
        let source = Source::from_bits(Family::V4, 0x000a_0000);
        let prefix = Source::from_bits(Family::V4, 0x0a00_0000);
        assert_ne!(
            KeyHash::of(seed, source.key(Level::Source)),
            KeyHash::of(seed, prefix.key(Level::Prefix))
        );
    }
}
