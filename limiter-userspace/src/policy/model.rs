//! A policy that is known to be good. Only [`Policy::parse`] makes one: every value here is in its
//! range, every combination allowed.

use std::ops::RangeInclusive;

use limiter_common::clock::WindowLength;
use limiter_common::key::Level;
use limiter_common::layout::OnFault;
use limiter_common::packet::Fault;
use limiter_common::quantum::{MAX_BYTE_SHIFT, Quantum};

/// The largest quantum: 64 bytes.
const COARSEST: Quantum = match Quantum::from_shift(MAX_BYTE_SHIFT) {
    Some(quantum) => quantum,
    None => Quantum::ONE,
};

/// What is limited: at most 32 rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub(super) version: Option<u64>,
    pub(super) rules: Vec<Rule>,
    pub(super) on_fault: [OnFault; Fault::ALL.len()],
}

impl Policy {
    /// The version as the file says it, 1 or more.
    #[must_use]
    pub const fn version(&self) -> Option<u64> {
        self.version
    }

    /// In the file's order, which is the order of judging.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What happens to a frame whose headers can't be read.
    #[must_use]
    pub const fn on_fault(&self, fault: Fault) -> OnFault {
        self.on_fault[fault as usize]
    }
}

/// A rule's identity across versions: 1 … 48 of `a`–`z`, `0`–`9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleName(pub(super) String);

impl RuleName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What counts, and how much of it passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(super) name: RuleName,
    pub(super) matches: Vec<Match>,
    pub(super) limits: [Option<Limit>; Level::COUNT],
    pub(super) window: WindowLength,
    pub(super) unit: Unit,
    pub(super) mode: Mode,
}

impl Rule {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &RuleName {
        &self.name
    }

    /// A packet that any of these accepts is the rule's. Never empty.
    #[must_use]
    pub fn matches(&self) -> &[Match] {
        &self.matches
    }

    /// The limit per window at a level; `None` if the level isn't evaluated. At least one is there.
    #[must_use]
    pub const fn limit(&self, level: Level) -> Option<Limit> {
        self.limits[level as usize]
    }

    /// The levels that are evaluated, in the order of judging.
    pub fn limits(&self) -> impl Iterator<Item = (Level, Limit)> + '_ {
        Level::ALL.into_iter().filter_map(|level| Some((level, self.limit(level)?)))
    }

    /// Length of its windows.
    #[must_use]
    pub const fn window(&self) -> WindowLength {
        self.window
    }

    /// What is counted.
    #[must_use]
    pub const fn unit(&self) -> Unit {
        self.unit
    }

    /// The mode that the file says.
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// The smallest quantum in which all limits fit a word. Where nothing is limited, the largest:
    /// there, seeing far is worth more than exact counts.
    #[must_use]
    pub fn quantum(&self) -> Quantum {
        if self.unit == Unit::Packets {
            return Quantum::ONE;
        }
        let largest = self.limits().filter_map(|(_, limit)| limit.finite()).max();
        largest.and_then(Quantum::for_bytes).unwrap_or(COARSEST)
    }
}

/// How much passes per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// This many packets or bytes. 0 refuses everything.
    Finite(u64),
    /// Use is counted and shown, nothing is refused.
    Unlimited,
}

impl Limit {
    /// The number, if there is one.
    #[must_use]
    pub const fn finite(self) -> Option<u64> {
        match self {
            Self::Finite(amount) => Some(amount),
            Self::Unlimited => None,
        }
    }
}

/// What a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Each packet is 1.
    Packets,
    /// Each packet is its frame's length, Ethernet header included.
    Bytes,
}

/// Whether a rule refuses, or only says what it would refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Refuses.
    Enforce,
    /// Only counts what it would refuse.
    Shadow,
}

/// A condition on packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    pub(super) protocol: Option<u8>,
    pub(super) ports: Vec<RangeInclusive<u16>>,
    pub(super) packets: Packets,
}

impl Match {
    /// The IP protocol's number; `None` for any.
    #[must_use]
    pub const fn protocol(&self) -> Option<u8> {
        self.protocol
    }

    /// Destination ports in the file's order; empty: packets with any port and with none. Only for
    /// protocols that have ports.
    #[must_use]
    pub fn ports(&self) -> &[RangeInclusive<u16>] {
        &self.ports
    }

    /// Which packets of the protocol.
    #[must_use]
    pub const fn packets(&self) -> Packets {
        self.packets
    }
}

/// Which packets of a protocol a match accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Packets {
    /// All of them.
    All,
    /// TCP with SYN and without ACK: new connections.
    TcpSyn,
}
