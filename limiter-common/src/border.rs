//! What the kernel's functions tell each other. The verifier checks each function on its own and
//! lets numbers cross the border between them, so these are values packed into one number.

use crate::key::{Family, Level};

/// What is to be judged, its source's bits aside: class, policy generation, family; and, once the class
/// has been looked up, the rules to judge it, as bits by their place in the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject(pub u64);

impl Subject {
    /// Class below 256, generation (its lowest bit counts), family.
    #[inline(always)]
    #[must_use]
    pub const fn new(class: u32, generation: u32, family: Family) -> Self {
        Self(class as u64 & 0xff | (generation as u64 & 1) << 8 | (family as u64) << 16)
    }

    /// The same with these rules.
    #[inline(always)]
    #[must_use]
    pub const fn with_rules(self, rules: u32) -> Self {
        Self(self.0 & 0xffff_ffff | (rules as u64) << 32)
    }

    /// Class number.
    #[inline(always)]
    #[must_use]
    pub const fn class(self) -> u32 {
        low(self.0) & 0xff
    }

    /// 0 or 1.
    #[inline(always)]
    #[must_use]
    pub const fn generation(self) -> u32 {
        low(self.0) >> 8 & 1
    }

    /// IP version.
    #[inline(always)]
    #[must_use]
    pub const fn family(self) -> Family {
        if low(self.0) >> 16 & 0xff == Family::V6 as u32 { Family::V6 } else { Family::V4 }
    }

    /// Rules as bits.
    #[inline(always)]
    #[must_use]
    pub const fn rules(self) -> u32 {
        low(self.0 >> 32)
    }
}

/// Why a pool gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// Too little is left.
    NoRoom = 1,
    /// Other CPUs kept changing its word.
    Changing = 2,
}

/// What one level's pools gave: the rules whose pools were debited, and who refused first, if any did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn(pub u64);

impl Drawn {
    /// Rules (as bits) in bits 0–31, the reason in 32–39, the refusing rule's place in 40–47.
    #[inline(always)]
    #[must_use]
    pub const fn refused(rules: u64, why: Why, place: u32) -> Self {
        Self(rules | (why as u64) << 32 | (place as u64) << 40)
    }

    /// Nobody refused.
    #[inline(always)]
    #[must_use]
    pub const fn complete(self) -> bool {
        self.0 >> 32 == 0
    }

    /// The rules whose pools were debited.
    #[inline(always)]
    #[must_use]
    pub const fn rules(self) -> u32 {
        low(self.0)
    }

    /// The refusal, as the answer of all levels.
    #[inline(always)]
    #[must_use]
    pub const fn at(self, level: Level) -> Taken {
        let (why, place) = (low(self.0 >> 32) & 0xff, low(self.0 >> 40) & 0xff);
        Taken(why | (level as u32) << 8 | place << 16)
    }
}

/// What all levels' pools gave together: everything, or a reason, a level and a rule's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken(pub u32);

impl Taken {
    /// Every pool was debited.
    pub const ALL: Self = Self(0);

    /// No pool was debited: the reason in bits 0–7, the level in 8–15, the place in 16–31.
    #[inline(always)]
    #[must_use]
    pub const fn refused(why: Why, level: Level, place: u32) -> Self {
        Self(why as u32 | (level as u32) << 8 | place << 16)
    }

    /// `None` if every pool was debited.
    #[inline(always)]
    #[must_use]
    pub const fn why(self) -> Option<Why> {
        match self.0 & 0xff {
            0 => None,
            1 => Some(Why::NoRoom),
            _ => Some(Why::Changing),
        }
    }

    /// The level that refused.
    #[inline(always)]
    #[must_use]
    pub const fn level(self) -> Level {
        Level::from_index(self.0 >> 8)
    }

    /// The place of the rule that refused.
    #[inline(always)]
    #[must_use]
    pub const fn place(self) -> u32 {
        self.0 >> 16
    }
}

#[inline(always)]
const fn low(number: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
    let low = number as u32;
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_comes_back_with_and_without_rules() {
        let subject = Subject::new(255, 3, Family::V6);
        for subject in [subject, subject.with_rules(u32::MAX), subject.with_rules(1)] {
            let parts = (subject.class(), subject.generation(), subject.family());
            assert_eq!(parts, (255, 1, Family::V6));
        }
        assert_eq!(subject.rules(), 0);
        assert_eq!(subject.with_rules(u32::MAX).with_rules(5).rules(), 5);
        assert_eq!(Subject::new(1, 0, Family::V4).family(), Family::V4);
    }

    #[test]
    fn a_refusal_of_one_level_is_the_refusal_of_all() {
        for why in [Why::NoRoom, Why::Changing] {
            let drawn = Drawn::refused(0x8000_0001, why, 31);
            assert!(!drawn.complete());
            assert_eq!(drawn.rules(), 0x8000_0001);
            let taken = drawn.at(Level::Prefix);
            assert_eq!(taken, Taken::refused(why, Level::Prefix, 31));
            assert_eq!((taken.why(), taken.level(), taken.place()), (Some(why), Level::Prefix, 31));
        }
        assert!(Drawn(0xffff_ffff).complete());
        assert_eq!(Taken::ALL.why(), None);
    }
}
