//! What happens to a packet, and why. A reason is a counter, a metric's label and a test's name at
//! once, so each has one word here and nowhere else.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_come_back_from_their_numbers() {
        for exit in Exit::ALL {
            assert_eq!(Exit::from_number(exit as u32), exit);
        }
    }
}
