//! Which pools a packet draws from: its source, its source's prefix, and the total of a rule.

use crate::packet::Address;

/// What a rule limits. The order is the order of judging: coarse first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// All traffic of a rule.
    Total = 0,
    /// IPv4 /24, IPv6 /48.
    Prefix = 1,
    /// One IPv4 address; an IPv6 /64, since a host may pick any address inside it.
    Source = 2,
}

impl Level {
    /// All, in the order of judging.
    pub const ALL: [Self; 3] = [Self::Total, Self::Prefix, Self::Source];
    /// How many there are.
    pub const COUNT: usize = 3;

    /// The level with this number in its lowest two bits; 3 counts as [`Level::Source`].
    #[must_use]
    pub const fn from_index(index: u32) -> Self {
        match index & 3 {
            0 => Self::Total,
            1 => Self::Prefix,
            _ => Self::Source,
        }
    }

    /// The word for it in metrics, policies and tests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Prefix => "prefix",
            Self::Source => "source",
        }
    }
}

/// IP version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Family {
    /// IPv4.
    V4 = 4,
    /// IPv6.
    V6 = 6,
}

/// The source of a packet as far as limits go: an IPv4 address or an IPv6 /64, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    family: Family,
    /// IPv4: the address, at most 32 bits. IPv6: the upper 64 bits.
    bits: u64,
}

impl Source {
    /// The source that a packet from this address counts for.
    #[must_use]
    pub const fn of(address: Address) -> Self {
        match address {
            Address::V4(bytes) => {
                Self { family: Family::V4, bits: u32::from_be_bytes(bytes) as u64 }
            }
            Address::V6(b) => Self {
                family: Family::V6,
                bits: u64::from_be_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]),
            },
        }
    }

    /// A source from its parts (as [`Source::bits`] gives them).
    #[must_use]
    pub const fn from_bits(family: Family, bits: u64) -> Self {
        Self { family, bits }
    }

    /// IPv4: the address. IPv6: its upper 64 bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// IP version.
    #[must_use]
    pub const fn family(self) -> Family {
        self.family
    }

    /// The key of the pool that this source uses at a level.
    #[must_use]
    pub const fn key(self, level: Level) -> Key {
        match (level, self.family) {
            (Level::Total, _) => Key::TOTAL,
            (Level::Prefix, Family::V4) => Key { tag: 1, bits: self.bits >> 8 },
            (Level::Prefix, Family::V6) => Key { tag: 2, bits: self.bits >> 16 },
            (Level::Source, Family::V4) => Key { tag: 3, bits: self.bits },
            (Level::Source, Family::V6) => Key { tag: 4, bits: self.bits },
        }
    }
}

/// The key of a pool, the rule aside: level, family and address bits. IPv4 and IPv6 never share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    tag: u8,
    bits: u64,
}

impl Key {
    /// The one key of the total level.
    pub const TOTAL: Self = Self { tag: 0, bits: 0 };

    /// Level and family as a number 0 … 4.
    #[must_use]
    pub const fn tag(self) -> u8 {
        self.tag
    }

    /// The address bits above the level's prefix length, right-aligned.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// A key as it was stored beside a word; `None` for a tag that doesn't exist.
    #[must_use]
    pub const fn from_parts(tag: u8, bits: u64) -> Option<Self> {
        if tag <= 4 { Some(Self { tag, bits }) } else { None }
    }

    /// The level this key belongs to.
    #[must_use]
    pub const fn level(self) -> Level {
        match self.tag {
            0 => Level::Total,
            1 | 2 => Level::Prefix,
            _ => Level::Source,
        }
    }

    /// The network address and prefix length, for people: `None` at the total level.
    #[must_use]
    pub const fn network(self) -> Option<(Address, u8)> {
        match self.tag {
            1 => Some((v4(self.bits << 8), 24)),
            2 => Some((v6(self.bits << 16), 48)),
            3 => Some((v4(self.bits), 32)),
            4 => Some((v6(self.bits), 64)),
            _ => None,
        }
    }
}

const fn v4(bits: u64) -> Address {
    let b = bits.to_be_bytes();
    Address::V4([b[4], b[5], b[6], b[7]])
}

const fn v6(bits: u64) -> Address {
    let b = bits.to_be_bytes();
    Address::V6([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], 0, 0, 0, 0, 0, 0, 0, 0])
}
