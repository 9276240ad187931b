//! IPv4 and IPv6 headers of a frame in the making.

use std::fmt::Display;
use std::net::{AddrParseError, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::{Extension, Frame, Network};

/// IPv4 and IPv6.
impl Frame {
    /// An IPv4 packet from this source (text or an `Ipv4Addr`) to 198.51.100.1.
    ///
    /// # Panics
    /// If the source is no IPv4 address.
    #[must_use]
    pub fn ipv4(self, source: impl Display) -> Self {
        let (source, destination) = (address(source), Ipv4Addr::new(198, 51, 100, 1));
        let network = Network::V4 { source, destination, hops: 64, options: 0, fragment: 0 };
        Self { network, ..self }
    }

    /// An IPv6 packet from this source (text or an `Ipv6Addr`) to 2001:db8:ffff::1.
    ///
    /// # Panics
    /// If the source is no IPv6 address.
    #[must_use]
    pub fn ipv6(self, source: impl Display) -> Self {
        let destination = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1);
        Self { network: Network::V6 { source: address(source), destination, hops: 64 }, ..self }
    }

    /// Another destination, of the same family as the source.
    ///
    /// # Panics
    /// If it is no such address.
    #[must_use]
    pub fn destination(mut self, to: impl Display) -> Self {
        match &mut self.network {
            Network::V4 { destination, .. } => *destination = address(to),
            Network::V6 { destination, .. } => *destination = address(to),
            Network::Other(..) => {}
        }
        self
    }

    /// Time to live, or hop limit (64 if not told).
    #[must_use]
    pub fn hop_limit(mut self, limit: u8) -> Self {
        if let Network::V4 { hops, .. } | Network::V6 { hops, .. } = &mut self.network {
            *hops = limit;
        }
        self
    }

    /// IPv4 options of `words` × 4 bytes, 0 … 10: all "no operation".
    #[must_use]
    pub fn options(mut self, words: u8) -> Self {
        if let Network::V4 { options, .. } = &mut self.network {
            *options = words;
        }
        self
    }

    /// IPv4's "don't fragment".
    #[must_use]
    pub fn dont_fragment(mut self) -> Self {
        if let Network::V4 { fragment, .. } = &mut self.network {
            *fragment |= 0x4000;
        }
        self
    }

    /// Makes it a fragment at `place` × 8 bytes, 0 … 8,191; in IPv6 by a fragment header here.
    #[must_use]
    pub fn fragment(mut self, place: u16, more: bool) -> Self {
        match &mut self.network {
            Network::V4 { fragment, .. } => *fragment |= place | u16::from(more) << 13,
            _ => {
                let [high, low] = (place << 3 | u16::from(more)).to_be_bytes();
                let bytes = vec![0, 0, high, low, 0, 0, 0, 7];
                self.extensions.push(Extension { number: 44, bytes });
            }
        }
        self
    }

    /// A hop-by-hop header of 8 bytes with a router alert, as listener reports have it.
    #[must_use]
    pub fn hop_by_hop(mut self) -> Self {
        let bytes = vec![0, 0, 5, 2, 0, 0, 1, 0];
        self.extensions.push(Extension { number: 0, bytes });
        self
    }

    /// A destination-options header of (`length` + 1) × 8 bytes.
    #[must_use]
    pub fn destination_options(self, length: u8) -> Self {
        self.extension(60, length)
    }

    /// Any extension header of (`length` + 1) × 8 bytes: options that pad, or zeros.
    #[must_use]
    pub fn extension(mut self, number: u8, length: u8) -> Self {
        let mut bytes = vec![0; (usize::from(length) + 1) * 8];
        bytes[1] = length;
        self.extensions.push(Extension { number, bytes });
        self
    }

    /// An authentication header of (`length` + 2) × 4 bytes.
    #[must_use]
    pub fn authentication(mut self, length: u8) -> Self {
        let mut bytes = vec![0; (usize::from(length) + 2) * 4];
        bytes[1] = length;
        self.extensions.push(Extension { number: 51, bytes });
        self
    }
}

/// An address of the family that the caller asks for.
fn address<A: FromStr<Err = AddrParseError>>(text: impl Display) -> A {
    let text = text.to_string();
    match text.parse() {
        Ok(address) => address,
        Err(error) => panic!("{text}: {error}"),
    }
}
