//! From a described frame to its bytes: lengths, the chain of next headers, checksums.

use super::{Extension, Frame, ICMP, ICMPV6, Network, TCP, UDP};

/// Identification of every IPv4 packet and, in extension headers, of every fragment.
const IDENTIFICATION: [u8; 2] = [0, 7];

impl Frame {
    /// The frame from its destination address on, without the checksum that a NIC appends.
    ///
    /// Of packets above 64 KiB the IP length is 0, as Linux has it. Fragments carry no transport
    /// checksum, since it would have to cover all of them.
    #[must_use]
    pub fn build(&self) -> Vec<u8> {
        let (ether_type, packet) = match &self.network {
            Network::Other(ether_type, bytes) => (*ether_type, bytes.clone()),
            Network::V4 { .. } => (0x0800, self.ipv4_packet()),
            Network::V6 { .. } => (0x86dd, self.ipv6_packet()),
        };
        let mut frame = [self.to, self.from].concat();
        for (tpid, id) in &self.tags {
            frame.extend(tpid.to_be_bytes());
            frame.extend(id.to_be_bytes());
        }
        frame.extend(ether_type.to_be_bytes());
        frame.extend(packet);
        frame
    }

    fn ipv4_packet(&self) -> Vec<u8> {
        let Network::V4 { source, destination, hops, options, fragment } = &self.network else {
            return Vec::new();
        };
        let addresses = [source.octets(), destination.octets()].concat();
        let body = self.body(&addresses, fragment & 0x3fff != 0);
        let options = vec![1; usize::from(*options) * 4];
        let words = u8::try_from(5 + options.len() / 4).unwrap_or(u8::MAX);
        let mut header = vec![0x40 | words, 0];
        header.extend(length_field(20 + options.len() + body.len()));
        header.extend(IDENTIFICATION);
        header.extend(fragment.to_be_bytes());
        header.extend([*hops, self.protocol, 0, 0]);
        header.extend(addresses);
        header.extend(options);
        let checksum = checksum(&[&header]);
        header[10..12].copy_from_slice(&checksum);
        [header, body].concat()
    }

    fn ipv6_packet(&self) -> Vec<u8> {
        let Network::V6 { source, destination, hops } = &self.network else {
            return Vec::new();
        };
        let addresses = [source.octets(), destination.octets()].concat();
        let fragment = self.extensions.iter().any(|extension| extension.number == 44);
        let body = self.body(&addresses, fragment);
        let (next, chain) = chain(&self.extensions, self.protocol);
        let mut header = vec![0x60, 0, 0, 0];
        header.extend(length_field(chain.len() + body.len()));
        header.extend([next, *hops]);
        header.extend(addresses);
        [header, chain, body].concat()
    }

    /// Transport header and payload, with length and checksum filled in where they belong.
    fn body(&self, addresses: &[u8], fragment: bool) -> Vec<u8> {
        let mut body = self.transport.clone();
        body.resize(body.len() + self.payload, 0x5a);
        if self.protocol == UDP && body.len() >= 8 {
            let length = length_field(body.len());
            body[4..6].copy_from_slice(&length);
        }
        let at = match self.protocol {
            TCP => 16,
            UDP => 6,
            ICMP | ICMPV6 => 2,
            _ => return body,
        };
        if fragment || body.len() < at + 2 {
            return body;
        }
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
        let pseudo = [addresses, &length, &[0, self.protocol]].concat();
        let sum = match self.protocol {
            ICMP => checksum(&[&body]),
            _ => checksum(&[&pseudo, &body]),
        };
        // RFC 768: a sum of zero is sent as all ones, for zero means "none".
        let sum = if self.protocol == UDP && sum == [0, 0] { [0xff, 0xff] } else { sum };
        body[at..at + 2].copy_from_slice(&sum);
        body
    }
}

/// The number of the first header, and all extension headers, each knowing its next.
fn chain(extensions: &[Extension], protocol: u8) -> (u8, Vec<u8>) {
    let mut next = protocol;
    let mut chain = Vec::new();
    for extension in extensions.iter().rev() {
        let mut bytes = extension.bytes.clone();
        bytes[0] = next;
        bytes.extend(chain);
        (next, chain) = (extension.number, bytes);
    }
    (next, chain)
}

fn length_field(length: usize) -> [u8; 2] {
    u16::try_from(length).unwrap_or(0).to_be_bytes()
}

/// RFC 1071, over parts of which only the last may have an odd length.
pub(super) fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 =
        words.map(|word| u64::from(word[0]) << 8 | u64::from(*word.get(1).unwrap_or(&0))).sum();
    let mut folded = sum;
    while folded > 0xffff {
        folded = (folded & 0xffff) + (folded >> 16);
    }
    let [.., high, low] = (!folded).to_be_bytes();
    [high, low]
}
