//! The parser against tables of situations, every cut of valid frames, random bytes and an
//! independent parser.

#![expect(clippy::arithmetic_side_effects, reason = "tests may overflow and panic")]

mod bytes;
mod cuts;
mod differential;
mod ethernet;
mod exempt;
mod ipv4;
mod ipv6;
mod transport;

use bytes::{SOURCE4, SOURCE6};

use crate::packet::{Address, Fault, Kind, Packet, Parsed, Protocol};
use crate::parse::parse;

/// A situation in words, its frame, and what the parser has to say about it.
type Row = (&'static str, Vec<u8>, Parsed);

#[track_caller]
fn check(rows: impl IntoIterator<Item = Row>) {
    for (situation, frame, expected) in rows {
        assert_eq!(parse(frame.as_slice()), expected, "{situation}: {frame:02x?}");
    }
}

/// A packet from [`SOURCE4`] without ports.
fn v4(protocol: u8) -> Packet {
    Packet {
        source: Address::V4(SOURCE4),
        protocol: Protocol::new(protocol),
        destination_port: None,
        kind: Kind::Other,
        fragment: false,
    }
}

/// A packet from [`SOURCE6`] without ports.
fn v6(protocol: u8) -> Packet {
    Packet { source: Address::V6(SOURCE6), ..v4(protocol) }
}

/// A packet from [`SOURCE6`] whose protocol its headers hide.
fn v6_unknown() -> Packet {
    Packet { protocol: Protocol::UNKNOWN, ..v6(0) }
}

impl Packet {
    fn port(self, port: u16) -> Self {
        Self { destination_port: Some(port), ..self }
    }

    fn syn(self) -> Self {
        Self { kind: Kind::TcpSyn, ..self }
    }

    fn fragment(self) -> Self {
        Self { fragment: true, ..self }
    }

    fn ok(self) -> Parsed {
        Parsed::Packet(self)
    }

    fn but(self, fault: Fault) -> Parsed {
        Parsed::Fault(fault, Some(self))
    }
}
