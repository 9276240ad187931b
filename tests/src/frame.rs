//! Builds test frames, header by header, in the order in which they lie on the wire. Lengths and
//! checksums come out right, so that a real host accepts what is built; a test that wants them wrong
//! patches the bytes. It must not share code with the parser it is used to test.

mod network;
mod wire;

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::BitOr;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const NO_NEXT_HEADER: u8 = 59;

/// The source port of everything built here.
pub const SOURCE_PORT: u16 = 40_000;

/// Flags of TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more from this side.
    pub const FIN: Self = Self(0x01);
    /// Opens a connection.
    pub const SYN: Self = Self(0x02);
    /// Breaks it off.
    pub const RST: Self = Self(0x04);
    /// Hand the data over now.
    pub const PSH: Self = Self(0x08);
    /// Something is acknowledged.
    pub const ACK: Self = Self(0x10);
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An Ethernet frame in the making.
///
/// ```
/// # use limiter_tests::frame::{Flags, Frame};
/// let query = Frame::new().vlan(7).ipv4("192.0.2.1").options(4).udp(53).payload(20).build();
/// let open = Frame::new().ipv6("2001:db8::1").destination_options(0).tcp(80, Flags::SYN).build();
/// # assert_eq!((query.len(), open.len()), (14 + 4 + 20 + 16 + 8 + 20, 14 + 40 + 8 + 20));
/// ```
#[derive(Clone, Debug)]
pub struct Frame {
    to: [u8; 6],
    from: [u8; 6],
    /// TPID and VLAN, outermost first.
    tags: Vec<(u16, u16)>,
    network: Network,
    /// IPv6 extension headers, each without knowing its next one yet.
    extensions: Vec<Extension>,
    protocol: u8,
    transport: Vec<u8>,
    payload: usize,
}

#[derive(Clone, Debug)]
enum Network {
    /// Anything but IP: an EtherType and what follows it.
    Other(u16, Vec<u8>),
    V4 {
        source: Ipv4Addr,
        destination: Ipv4Addr,
        hops: u8,
        options: u8,
        fragment: u16,
    },
    V6 {
        source: Ipv6Addr,
        destination: Ipv6Addr,
        hops: u8,
    },
}

#[derive(Clone, Debug)]
struct Extension {
    number: u8,
    /// All bytes; the first will become the number of what follows.
    bytes: Vec<u8>,
}

impl Default for Frame {
    fn default() -> Self {
        Self::new()
    }
}

/// The link.
impl Frame {
    /// A frame to everyone, of an EtherType for local experiments until another method says more.
    #[must_use]
    pub fn new() -> Self {
        Self {
            to: [0xff; 6],
            from: [2, 0, 0, 0, 0, 9],
            tags: Vec::new(),
            network: Network::Other(0x88b5, Vec::new()),
            extensions: Vec::new(),
            protocol: NO_NEXT_HEADER,
            transport: Vec::new(),
            payload: 0,
        }
    }

    /// The MAC addresses.
    #[must_use]
    pub fn ethernet(self, to: [u8; 6], from: [u8; 6]) -> Self {
        Self { to, from, ..self }
    }

    /// An 802.1Q tag for this VLAN, inside the tags before it.
    #[must_use]
    pub fn vlan(self, id: u16) -> Self {
        self.tag(0x8100, id)
    }

    /// An 802.1ad service tag.
    #[must_use]
    pub fn service_vlan(self, id: u16) -> Self {
        self.tag(0x88a8, id)
    }

    /// A tag with any TPID.
    #[must_use]
    pub fn tag(mut self, tpid: u16, id: u16) -> Self {
        self.tags.push((tpid, id));
        self
    }

    /// An ARP request.
    #[must_use]
    pub fn arp(self) -> Self {
        let mut request = vec![0, 1, 8, 0, 6, 4, 0, 1];
        request.extend(self.from);
        request.extend([192, 0, 2, 1, 0, 0, 0, 0, 0, 0, 192, 0, 2, 2]);
        self.other(0x0806, request)
    }

    /// Anything that isn't IP.
    #[must_use]
    pub fn other(self, ether_type: u16, bytes: Vec<u8>) -> Self {
        Self { network: Network::Other(ether_type, bytes), ..self }
    }
}

/// What IP carries.
impl Frame {
    /// A UDP header.
    #[must_use]
    pub fn udp(self, port: u16) -> Self {
        self.protocol(UDP, [ports(port), vec![0; 4]].concat())
    }

    /// A TCP header without options.
    #[must_use]
    pub fn tcp(self, port: u16, flags: Flags) -> Self {
        let rest = vec![0, 0, 0, 1, 0, 0, 0, 1, 0x50, flags.0, 0x20, 0, 0, 0, 0, 0];
        self.protocol(TCP, [ports(port), rest].concat())
    }

    /// An ICMP message of 8 bytes, for instance an echo request (8).
    #[must_use]
    pub fn icmp(self, message: u8) -> Self {
        self.protocol(ICMP, vec![message, 0, 0, 0, 0, 7, 0, 1])
    }

    /// An ICMPv6 message of 24 bytes, for instance a neighbour solicitation (135, hop limit 255).
    #[must_use]
    pub fn icmpv6(self, message: u8, hop_limit: u8) -> Self {
        let mut bytes = vec![0; 24];
        bytes[0] = message;
        self.hop_limit(hop_limit).protocol(ICMPV6, bytes)
    }

    /// Any protocol with any bytes.
    #[must_use]
    pub fn protocol(self, number: u8, bytes: Vec<u8>) -> Self {
        Self { protocol: number, transport: bytes, ..self }
    }

    /// `length` bytes behind all headers.
    #[must_use]
    pub fn payload(self, length: usize) -> Self {
        Self { payload: length, ..self }
    }
}

/// The first four bytes of all transport headers that have ports.
fn ports(destination: u16) -> Vec<u8> {
    [SOURCE_PORT.to_be_bytes(), destination.to_be_bytes()].concat()
}
