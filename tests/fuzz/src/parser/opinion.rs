//! What `etherparse` makes of a frame, in limiter's words. Where the two differ on purpose, it says so
//! here and nowhere else.

use etherparse::{
    IpAuthHeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice,
    Ipv6RawExtHeaderSlice, LaxLinkExtSlice, LaxSlicedPacket, err, ether_type,
};
use limiter_common::packet::{Address, Fault, Kind, Packet, Parsed, Protocol};
use limiter_common::parse::MAX_EXTENSION_HEADERS;

/// What limiter should say.
pub(super) enum Opinion {
    /// Just this.
    Exactly(Parsed),
    /// Some fault, from this source if it was read.
    Fault(Option<Address>),
    /// A packet or a fault from this source; about the rest they differ on purpose.
    From(Address),
    /// Nothing to compare.
    None,
}

/// What IANA lists as extension headers, but for ESP, which hides the rest.
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const ICMPV6: u8 = 58;

impl Opinion {
    pub(super) fn of(frame: &[u8]) -> Self {
        let Ok(sliced) = LaxSlicedPacket::from_ethernet(frame) else {
            return Self::Exactly(Parsed::Fault(Fault::CutOff, None));
        };
        // Other than limiter, etherparse looks into MACsec.
        let macsec = |ext: &LaxLinkExtSlice<'_>| matches!(ext, LaxLinkExtSlice::Macsec(_));
        if sliced.link_exts.iter().any(macsec) {
            return Self::None;
        }
        let Some(inner) = sliced.ether_payload() else {
            return Self::None;
        };
        match inner.ether_type {
            ether_type::IPV4 => ipv4(inner.payload),
            ether_type::IPV6 => ipv6(inner.payload),
            ether_type::ARP => Self::Exactly(Parsed::Arp),
            // A tag that is cut off, or the fourth.
            ether_type::VLAN_TAGGED_FRAME
            | ether_type::PROVIDER_BRIDGING
            | ether_type::VLAN_DOUBLE_TAGGED_FRAME => match sliced.stop_err {
                Some(_) => Self::Exactly(Parsed::Fault(Fault::CutOff, None)),
                None => Self::None,
            },
            ether_type::MACSEC => Self::None,
            _ => Self::Exactly(Parsed::NotIp),
        }
    }

    pub(super) fn check(&self, parsed: &Parsed) {
        match self {
            Self::Exactly(expected) => assert_eq!(parsed, expected, "etherparse reads the latter"),
            Self::Fault(source) => {
                let Parsed::Fault(_, packet) = parsed else {
                    panic!("{parsed:?}, but etherparse can't read it");
                };
                assert_eq!(packet.map(|packet| packet.source), *source);
            }
            Self::From(source) => match parsed {
                Parsed::Packet(packet) | Parsed::Fault(_, Some(packet)) => {
                    assert_eq!(packet.source, *source);
                }
                Parsed::NeighbourDiscovery | Parsed::MulticastListener => {}
                other => panic!("{other:?}, but etherparse reads the source {source:?}"),
            },
            Self::None => {}
        }
    }
}

fn ipv4(bytes: &[u8]) -> Opinion {
    let header = match Ipv4HeaderSlice::from_slice(bytes) {
        Ok(header) => header,
        Err(error) => return ipv4_fault(bytes, &error),
    };
    let packet = Packet {
        source: Address::V4(header.source()),
        protocol: Protocol::new(header.protocol().0),
        destination_port: None,
        kind: Kind::Other,
        fragment: header.is_fragmenting_payload(),
    };
    let later = header.fragments_offset().value() != 0;
    let start = header.slice().len();
    // A length of 0 is one that isn't told: packets beyond 64 KiB inside of Linux.
    let end = match usize::from(header.total_len()) {
        0 => bytes.len(),
        told => told.min(bytes.len()),
    };
    Opinion::Exactly(transport(packet, bytes.get(start..end), later))
}

fn ipv4_fault(bytes: &[u8], error: &err::ipv4::HeaderSliceError) -> Opinion {
    use err::ipv4::{HeaderError, HeaderSliceError};
    let source = match error {
        HeaderSliceError::Content(HeaderError::UnexpectedVersion { .. }) => None,
        _ => bytes.get(..20).map(|header| [header[12], header[13], header[14], header[15]]),
    };
    Opinion::Fault(source.map(Address::V4))
}

fn ipv6(bytes: &[u8]) -> Opinion {
    let Ok(header) = Ipv6HeaderSlice::from_slice(bytes) else {
        return Opinion::Fault(None);
    };
    let source = Address::V6(header.source());
    let inner = bytes.get(header.slice().len()..).unwrap_or_default();
    // A length of 0 is one that isn't told: jumbograms.
    let inner = match usize::from(header.payload_length()) {
        0 => inner,
        told => inner.get(..told).unwrap_or(inner),
    };
    let chain = match Chain::walk(header.next_header().0, inner) {
        Ok(chain) => chain,
        // limiter may look at bytes behind the packet's end before it says so.
        Err(Stop::CutOff) => return Opinion::Fault(Some(source)),
        Err(Stop::TooMany) => return Opinion::Fault(Some(source)),
        Err(Stop::ZeroLength) => return Opinion::From(source),
    };
    let packet = Packet {
        source,
        protocol: chain.protocol(),
        destination_port: None,
        kind: Kind::Other,
        fragment: chain.fragment,
    };
    Opinion::Exactly(match chain.next {
        ICMPV6 if !chain.fragment => icmpv6(packet, &header, chain.payload),
        _ => transport(packet, Some(chain.payload), chain.later),
    })
}

/// What lies behind the extension headers, up to the first that hides what follows.
struct Chain<'a> {
    next: u8,
    payload: &'a [u8],
    /// There was a fragment header.
    fragment: bool,
    /// One of a fragment other than the first: what follows is no header.
    later: bool,
}

/// Why a chain has no end.
enum Stop {
    CutOff,
    TooMany,
    /// An authentication header without its fixed part: limiter steps over it.
    ZeroLength,
}

impl<'a> Chain<'a> {
    /// etherparse's own walk knows fewer headers, and goes on behind a later fragment's; so its headers
    /// are taken one by one.
    fn walk(next: u8, payload: &'a [u8]) -> Result<Self, Stop> {
        let mut chain = Self { next, payload, fragment: false, later: false };
        let mut headers = 0;
        while !chain.later && EXTENSIONS.contains(&chain.next) {
            headers += 1;
            if headers > MAX_EXTENSION_HEADERS {
                return Err(Stop::TooMany);
            }
            chain.step()?;
        }
        Ok(chain)
    }

    fn step(&mut self) -> Result<(), Stop> {
        let (next, length) = match self.next {
            FRAGMENT => {
                let header = Ipv6FragmentHeaderSlice::from_slice(self.payload);
                let header = header.or(Err(Stop::CutOff))?;
                self.fragment = true;
                self.later = header.fragment_offset().value() != 0;
                (header.next_header(), header.slice().len())
            }
            AUTHENTICATION if self.payload.get(1) == Some(&0) => return Err(Stop::ZeroLength),
            AUTHENTICATION => {
                let header = IpAuthHeaderSlice::from_slice(self.payload).or(Err(Stop::CutOff))?;
                (header.next_header(), header.slice().len())
            }
            _ => {
                let header = Ipv6RawExtHeaderSlice::from_slice(self.payload);
                let header = header.or(Err(Stop::CutOff))?;
                (header.next_header(), header.slice().len())
            }
        };
        self.next = next.0;
        self.payload = self.payload.get(length..).unwrap_or_default();
        Ok(())
    }

    fn protocol(&self) -> Protocol {
        match self.later && EXTENSIONS.contains(&self.next) {
            true => Protocol::UNKNOWN,
            false => Protocol::new(self.next),
        }
    }
}

/// RFC 4861 (hop limit 255, types 133 to 137) and RFC 3810 (hop limit 1; a link-local source, or none
/// yet in a report).
fn icmpv6(packet: Packet, header: &Ipv6HeaderSlice<'_>, payload: &[u8]) -> Parsed {
    let Some([message, ..]) = payload.first_chunk::<4>() else {
        return Parsed::Fault(Fault::CutOff, Some(packet));
    };
    let source = header.source_addr();
    let reports = [131, 143].contains(message) && source.is_unspecified();
    let listens = [130, 131, 132, 143].contains(message) && source.is_unicast_link_local();
    match header.hop_limit() {
        255 if (133..=137).contains(message) => Parsed::NeighbourDiscovery,
        1 if reports || listens => Parsed::MulticastListener,
        _ => Parsed::Packet(packet),
    }
}

/// `payload` is `None` if the packet ends before it.
fn transport(packet: Packet, payload: Option<&[u8]>, later: bool) -> Parsed {
    let Some(payload) = payload else {
        return Parsed::Fault(Fault::CutOff, Some(packet));
    };
    if later {
        return Parsed::Packet(packet);
    }
    // TCP, UDP, UDP-Lite, SCTP and DCCP begin with two ports.
    let least = match packet.protocol.index() {
        6 => 20,
        17 | 136 => 8,
        33 | 132 => 12,
        _ => return Parsed::Packet(packet),
    };
    let Some(header) = payload.get(..least) else {
        return Parsed::Fault(Fault::CutOff, Some(packet));
    };
    let destination_port = Some(u16::from_be_bytes([header[2], header[3]]));
    let syn = packet.protocol == Protocol::TCP && header[13] & 0x12 == 0x02;
    let kind = if syn { Kind::TcpSyn } else { Kind::Other };
    Parsed::Packet(Packet { destination_port, kind, ..packet })
}
