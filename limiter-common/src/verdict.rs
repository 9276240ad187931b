//! What happens to a packet, and why. A reason is a counter, a metric's label and a test's name at
//! once, so each has one word here and nowhere else.

use crate::key::Level;

/// How a frame left the program. Each frame has exactly one exit, so that their counts add up to
/// the frames received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Passed: not IP.
    NotIp = 0,
    /// Passed: ARP.
    Arp = 1,
    /// Passed: IPv6 neighbour discovery.
    NeighbourDiscovery = 2,
    /// Passed: IPv6 multicast listener discovery.
    MulticastListener = 3,
    /// Passed: no rule applies.
    Unmatched = 4,
    /// Passed: every rule and level that applies had room.
    Admitted = 5,
    /// Refused by a rule at a level.
    Refused = 6,
    /// Refused: other CPUs kept changing the very same words (8 tries).
    Contended = 7,
    /// Passed, as the policy's `[parse]` says for this fault (or no address could be read).
    UnreadablePassed = 8,
    /// Refused, as the policy's `[parse]` says for this fault.
    UnreadableDropped = 9,
    /// Passed without a look: `limiter bypass pass`.
    BypassPass = 10,
    /// Passed, though it would have been refused: `limiter bypass shadow`.
    BypassShadow = 11,
    /// Passed: no policy is loaded, or a table that can't be missing is missing.
    NoPolicy = 12,
}

impl Exit {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::NotIp,
        Self::Arp,
        Self::NeighbourDiscovery,
        Self::MulticastListener,
        Self::Unmatched,
        Self::Admitted,
        Self::Refused,
        Self::Contended,
        Self::UnreadablePassed,
        Self::UnreadableDropped,
        Self::BypassPass,
        Self::BypassShadow,
        Self::NoPolicy,
    ];

    /// The exit with this number; unknown ones are [`Exit::NoPolicy`].
    #[inline(always)]
    #[must_use]
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::NotIp,
            1 => Self::Arp,
            2 => Self::NeighbourDiscovery,
            3 => Self::MulticastListener,
            4 => Self::Unmatched,
            5 => Self::Admitted,
            6 => Self::Refused,
            7 => Self::Contended,
            8 => Self::UnreadablePassed,
            9 => Self::UnreadableDropped,
            10 => Self::BypassPass,
            11 => Self::BypassShadow,
            _ => Self::NoPolicy,
        }
    }

    /// The word for it in metrics and tests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not-ip",
            Self::Arp => "arp",
            Self::NeighbourDiscovery => "neighbour-discovery",
            Self::MulticastListener => "multicast-listener",
            Self::Unmatched => "unmatched",
            Self::Admitted => "admitted",
            Self::Refused => "refused",
            Self::Contended => "contended",
            Self::UnreadablePassed => "unreadable-passed",
            Self::UnreadableDropped => "unreadable-dropped",
            Self::BypassPass => "bypass-pass",
            Self::BypassShadow => "bypass-shadow",
            Self::NoPolicy => "no-policy",
        }
    }

    /// Whether the packet went on to the stack.
    #[must_use]
    pub const fn passes(self) -> bool {
        !matches!(self, Self::Refused | Self::Contended | Self::UnreadableDropped)
    }
}

/// Who refused: a rule's counter row, and the level that had no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The rule's counter row, below [`crate::layout::RULE_ROWS`].
    pub row: u32,
    /// The level that refused.
    pub level: Level,
}

/// What the limiting stage answers. It crosses a function border in the kernel as one number, see
/// [`Judgement::pack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// No rule applies.
    Unmatched,
    /// All had room.
    Admitted,
    /// One had none; no pool was debited.
    Refused(Refusal),
    /// The words could not be changed in 8 tries; no pool was debited.
    Contended,
    /// A policy table was missing.
    NoPolicy,
}

impl Judgement {
    /// As one number: the exit in bits 0–7, the level in 8–15, the row in 16–31.
    #[must_use]
    pub const fn pack(self) -> u32 {
        match self {
            Self::Unmatched => Exit::Unmatched as u32,
            Self::Admitted => Exit::Admitted as u32,
            Self::Contended => Exit::Contended as u32,
            Self::NoPolicy => Exit::NoPolicy as u32,
            Self::Refused(Refusal { row, level }) => {
                Exit::Refused as u32 | (level as u32) << 8 | (row & 0xffff) << 16
            }
        }
    }

    /// The reverse of [`Judgement::pack`]; unknown numbers are [`Judgement::NoPolicy`].
    #[must_use]
    pub const fn unpack(packed: u32) -> Self {
        const UNMATCHED: u32 = Exit::Unmatched as u32;
        const ADMITTED: u32 = Exit::Admitted as u32;
        const REFUSED: u32 = Exit::Refused as u32;
        const CONTENDED: u32 = Exit::Contended as u32;
        match packed & 0xff {
            UNMATCHED => Self::Unmatched,
            ADMITTED => Self::Admitted,
            REFUSED => {
                Self::Refused(Refusal { row: packed >> 16, level: Level::from_index(packed >> 8) })
            }
            CONTENDED => Self::Contended,
            _ => Self::NoPolicy,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_and_judgements_come_back_from_their_numbers() {
        for exit in Exit::ALL {
            assert_eq!(Exit::from_number(exit as u32), exit);
        }
        let refused = Judgement::Refused(Refusal { row: 63, level: Level::Source });
        for judgement in [
            refused,
            Judgement::Unmatched,
            Judgement::Admitted,
            Judgement::Contended,
            Judgement::NoPolicy,
        ] {
            assert_eq!(Judgement::unpack(judgement.pack()), judgement);
        }
    }
}
