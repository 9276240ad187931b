//! What the parser found out about a frame: small `Copy` values; nothing later sees bytes.

/// The source address of a packet, as it stood in its header (network byte order).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// IPv4.
    V4([u8; 4]),
    /// IPv6.
    V6([u8; 16]),
}

/// An IP protocol number, or [`Protocol::UNKNOWN`] where the headers hide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(u16);

impl Protocol {
    /// The headers don't say (too many extension headers; one that is cut off; a later fragment that
    /// starts inside one).
    /// Every rule that names no ports matches it, whatever the rule's protocol.
    pub const UNKNOWN: Self = Self(256);
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// ICMP for IPv6.
    pub const ICMPV6: Self = Self(58);

    /// The protocol with this number of the IANA registry.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number as u16)
    }

    /// 0 … 255, or 256 for [`Protocol::UNKNOWN`]: an index into the classifier's table.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0 as u32
    }
}

/// The part of a conversation that a packet plays, as far as rules can ask for it. One packet has
/// exactly one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Nothing below.
    Other = 0,
    /// TCP with SYN and without ACK: asks for a new connection.
    TcpSyn = 1,
}

impl Kind {
    /// How many kinds the classifier's table has room for (more kinds are to come).
    pub const ROOM: u32 = 8;
}

/// An IP packet with everything that rules ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it, or claims to have.
    pub source: Address,
    /// The transport protocol.
    pub protocol: Protocol,
    /// `None` for protocols without ports, later fragments and cut-off headers.
    pub destination_port: Option<u16>,
    /// Part of the conversation.
    pub kind: Kind,
    /// Any fragment, the first one included ("don't fragment" is none).
    pub fragment: bool,
}

/// Why a frame's headers could not be read to their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// The frame ends inside a header, or the packet does by its own length field.
    CutOff = 0,
    /// A header contradicts itself (IP version, IPv4 header length below 20).
    Malformed = 1,
    /// More than [`crate::parse::MAX_VLAN_TAGS`] tags.
    VlanDepth = 2,
    /// More than [`crate::parse::MAX_EXTENSION_HEADERS`] IPv6 extension headers.
    HeaderDepth = 3,
}

impl Fault {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::CutOff, Self::Malformed, Self::VlanDepth, Self::HeaderDepth];

    /// The word for it in metrics, policy keys and tests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CutOff => "cut-off",
            Self::Malformed => "malformed",
            Self::VlanDepth => "vlan-depth",
            Self::HeaderDepth => "header-depth",
        }
    }
}

/// The outcome of parsing one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// ARP: never refused.
    Arp,
    /// Anything else that isn't IP: never refused.
    NotIp,
    /// IPv6 neighbour discovery as RFC 4861 §6.1, §7.1 and §8.1 demand it (ICMPv6 types 133–137, hop limit
    /// 255, not a fragment): never refused.
    NeighbourDiscovery,
    /// IPv6 multicast listener discovery (RFC 3810 §5: types 130–132 and 143, hop limit 1, link-local
    /// source): never refused.
    MulticastListener,
    /// An IP packet, read to its end.
    Packet(Packet),
    /// Headers that can't be read to their end. With an address, the packet says what is known:
    /// no port, kind [`Kind::Other`].
    Fault(Fault, Option<Packet>),
}
