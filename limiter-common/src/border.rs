//! What the kernel's functions tell each other. The verifier checks each function on its own and
//! lets numbers cross the border between them, so these are values packed into one number.

use crate::bucket::Room;
use crate::key::{Family, Level};
use crate::layout::MAX_SETS;

/// What is to be judged, its source's bits aside: a set of rules, the family, the number of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject(pub u64);

impl Subject {
    const SET: u64 = MAX_SETS as u64 - 1;
    const V6: u64 = MAX_SETS as u64;
    const HALF: u64 = MAX_SETS as u64 * 2;

    /// Set below [`MAX_SETS`], policy's number (its lowest bit is the half of the maps it lies in), family.
    #[inline(always)]
    #[must_use]
    pub const fn new(set: u32, generation: u32, family: Family) -> Self {
        let v6 = if matches!(family, Family::V6) { Self::V6 } else { 0 };
        let half = if generation & 1 != 0 { Self::HALF } else { 0 };
        Self((generation as u64) << 32 | half | v6 | set as u64 & Self::SET)
    }

    /// The same with another set.
    #[inline(always)]
    #[must_use]
    pub const fn with_set(self, set: u32) -> Self {
        Self(self.0 & !Self::SET | set as u64 & Self::SET)
    }

    /// Set of rules: a class, or [`MAX_CLASSES`](crate::layout::MAX_CLASSES) plus the place of a rule by
    /// itself.
    #[inline(always)]
    #[must_use]
    pub const fn set(self) -> u32 {
        low(self.0 & Self::SET)
    }

    /// Number of the policy.
    #[inline(always)]
    #[must_use]
    pub const fn generation(self) -> u32 {
        low(self.0 >> 32)
    }

    /// IP version.
    #[inline(always)]
    #[must_use]
    pub const fn family(self) -> Family {
        if self.0 & Self::V6 != 0 { Family::V6 } else { Family::V4 }
    }

    /// All but the number of the policy, of which only the lowest bit is here.
    #[inline(always)]
    #[must_use]
    pub const fn low(self) -> u16 {
        #[expect(clippy::cast_possible_truncation, reason = "11 bits are used")]
        let low = self.0 as u16;
        low
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
        Taken(why & 3 | (level as u32) << 2 | place << 4)
    }
}

/// What one level's pools have room for, and which rule's has none, if one hasn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space(pub u32);

impl Space {
    /// Room for the chunk everywhere.
    pub const MORE: Self = Self(Room::More as u32);

    /// With so much room; without any, the rule's place.
    #[inline(always)]
    #[must_use]
    pub const fn new(room: Room, place: u32) -> Self {
        Self(room as u32 | place << 8)
    }

    /// The least of all pools.
    #[inline(always)]
    #[must_use]
    pub const fn room(self) -> Room {
        Room::from_number(self.0 & 0xff)
    }

    /// The refusing rule's place.
    #[inline(always)]
    #[must_use]
    pub const fn place(self) -> u32 {
        self.0 >> 8
    }
}

/// What all levels' pools gave together: everything, or a reason, a level and a rule's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken(pub u32);

impl Taken {
    /// Every pool was debited, for one packet.
    pub const ONE: Self = Self(0);
    /// Every pool was debited, for a chunk.
    pub const CHUNK: Self = Self(3);

    /// No pool was debited: there is no longer enough for a chunk, but perhaps for one packet.
    pub const LESS: Self = Self(1 << 15);

    /// No pool was debited: the reason in bits 0–1, the level in 2–3, the place in 4–8.
    #[inline(always)]
    #[must_use]
    pub const fn refused(why: Why, level: Level, place: u32) -> Self {
        Self(why as u32 | (level as u32) << 2 | (place & 0x1f) << 4)
    }

    /// The same with the refusing rule's counter row in bits 9–14.
    #[inline(always)]
    #[must_use]
    pub const fn with_row(self, row: u32) -> Self {
        Self(self.0 & 0x1ff | (row & 0x3f) << 9)
    }

    /// The refusing rule's counter row.
    #[inline(always)]
    #[must_use]
    pub const fn row(self) -> u32 {
        self.0 >> 9 & 0x3f
    }

    /// `None` if every pool was debited.
    #[inline(always)]
    #[must_use]
    pub const fn why(self) -> Option<Why> {
        match self.0 & 3 {
            1 => Some(Why::NoRoom),
            2 => Some(Why::Changing),
            _ => None,
        }
    }

    /// The level that refused.
    #[inline(always)]
    #[must_use]
    pub const fn level(self) -> Level {
        Level::from_index(self.0 >> 2)
    }

    /// The place of the rule that refused.
    #[inline(always)]
    #[must_use]
    pub const fn place(self) -> u32 {
        self.0 >> 4 & 0x1f
    }

    /// All of it.
    #[inline(always)]
    #[must_use]
    pub const fn low(self) -> u16 {
        #[expect(clippy::cast_possible_truncation, reason = "16 bits are used")]
        let low = self.0 as u16;
        low
    }
}

/// The lower half of a packed number.
#[inline(always)]
pub(crate) const fn low(number: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
    let low = number as u32;
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MAX_RULES;

    #[test]
    fn a_subject_comes_back() {
        let subject = Subject::new(255, u32::MAX, Family::V6);
        let parts = |subject: Subject| (subject.set(), subject.generation(), subject.family());
        assert_eq!(parts(subject), (255, u32::MAX, Family::V6));
        assert_eq!(parts(subject.with_set(287)), (287, u32::MAX, Family::V6));
        assert_eq!(parts(Subject::new(1, 2, Family::V4)), (1, 2, Family::V4));
        assert_ne!(subject.low(), Subject::new(255, u32::MAX, Family::V4).low());
    }

    #[test]
    fn a_refusal_of_one_level_is_the_refusal_of_all() {
        for why in [Why::NoRoom, Why::Changing] {
            let drawn = Drawn::refused(0x8000_0001, why, 31);
            assert!(!drawn.complete());
            assert_eq!(drawn.rules(), 0x8000_0001);
            let taken = drawn.at(Level::Prefix);
            assert_eq!(taken, Taken::refused(why, Level::Prefix, 31));
            let taken = taken.with_row(63);
            assert_eq!((taken.why(), taken.level(), taken.place()), (Some(why), Level::Prefix, 31));
            assert_eq!((taken.row(), Taken(u32::from(taken.low()))), (63, taken));
        }
        assert!(Drawn(0xffff_ffff).complete());
        assert_eq!((Taken::ONE.why(), Taken::CHUNK.why()), (None, None));
    }

    #[test]
    fn every_set_and_family_has_a_low_half_of_its_own() {
        let mut seen = std::collections::HashSet::new();
        for family in [Family::V4, Family::V6] {
            for set in 0..MAX_SETS {
                let low = Subject::new(set, 2, family).low();
                // The rest of the 16 bits is the level's: `Holder::name`.
                assert!(low < 1 << 11 && seen.insert(low), "{set} {family:?}");
            }
        }
    }

    #[test]
    fn an_answer_is_never_another_one() {
        let all = [Taken::ONE, Taken::CHUNK, Taken::LESS];
        for taken in all {
            assert_eq!(all.iter().filter(|other| **other == taken).count(), 1);
        }
        for why in [Why::NoRoom, Why::Changing] {
            for level in Level::ALL {
                for place in 0..MAX_RULES {
                    let taken = Taken::refused(why, level, place).with_row(place * 2 + 1);
                    assert!(!all.contains(&taken));
                    assert_eq!((taken.why(), taken.level()), (Some(why), level));
                    assert_eq!((taken.place(), taken.row()), (place, place * 2 + 1));
                    assert_eq!(Taken(u32::from(taken.low())), taken);
                    assert_ne!(taken.low(), 0, "0 is no refusal on a ticket");
                }
            }
        }
    }

    #[test]
    fn a_space_comes_back() {
        for room in [Room::None, Room::Cost, Room::More] {
            let space = Space::new(room, 31);
            assert_eq!((space.room(), space.place()), (room, 31));
        }
        assert_eq!(Space::MORE.room(), Room::More);
    }
}
