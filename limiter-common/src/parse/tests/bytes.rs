//! Headers as bytes, to be put together with `[a, b].concat()`. Nothing here asks the parser's own
//! constants.

/// Source of all IPv4 packets here.
pub(super) const SOURCE4: [u8; 4] = [192, 0, 2, 1];
/// Source of all IPv6 packets here, unless a test names another.
pub(super) const SOURCE6: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
/// fe80::1
pub(super) const LINK_LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

pub(super) const SYN: u8 = 0x02;
pub(super) const ACK: u8 = 0x10;

/// An Ethernet header.
pub(super) fn ethernet(ether_type: u16) -> Vec<u8> {
    tagged(&[], ether_type)
}

/// An Ethernet header with tags of these TPIDs, outermost first.
pub(super) fn tagged(tpids: &[u16], ether_type: u16) -> Vec<u8> {
    let mut bytes = vec![0x02, 0, 0, 0, 0, 0x02, 0x02, 0, 0, 0, 0, 0x01];
    for tpid in tpids {
        bytes.extend(tpid.to_be_bytes());
        bytes.extend([0x20, 0x07]);
    }
    bytes.extend(ether_type.to_be_bytes());
    bytes
}

/// An IPv4 packet without options.
pub(super) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_with(protocol, 0, 0, payload)
}

/// An IPv4 packet with `words` × 4 bytes of options and the 16 bits of flags and fragment offset.
pub(super) fn ipv4_with(protocol: u8, words: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let options = vec![1; usize::from(words) * 4];
    let length = u16::try_from(20 + options.len() + payload.len()).unwrap().to_be_bytes();
    let fragment = fragment.to_be_bytes();
    let mut bytes = vec![0x45 + words, 0, length[0], length[1], 0, 7, fragment[0], fragment[1]];
    bytes.extend([64, protocol, 0, 0]);
    bytes.extend(SOURCE4);
    bytes.extend([198, 51, 100, 2]);
    [bytes, options, payload.to_vec()].concat()
}

/// An IPv6 packet from [`SOURCE6`] with hop limit 64.
pub(super) fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    ipv6_from(SOURCE6, 64, next, payload)
}

pub(super) fn ipv6_from(source: [u8; 16], hop_limit: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![0x60, 0, 0, 0, length[0], length[1], next, hop_limit];
    bytes.extend(source);
    bytes.extend([0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    [bytes, payload.to_vec()].concat()
}

/// Any extension header whose length counts units of 8 bytes, of (`length` + 1) × 8 bytes.
pub(super) fn extension(next: u8, length: u8) -> Vec<u8> {
    let mut bytes = vec![0; (usize::from(length) + 1) * 8];
    bytes[0] = next;
    bytes[1] = length;
    bytes
}

/// An authentication header of (`length` + 2) × 4 bytes.
pub(super) fn authentication(next: u8, length: u8) -> Vec<u8> {
    let mut bytes = vec![0; (usize::from(length) + 2) * 4];
    bytes[0] = next;
    bytes[1] = length;
    bytes
}

/// An IPv6 fragment header; `offset` in units of 8 bytes.
pub(super) fn fragment(next: u8, offset: u16, more: bool) -> Vec<u8> {
    let field = (offset << 3 | u16::from(more)).to_be_bytes();
    vec![next, 0, field[0], field[1], 0, 0, 0, 7]
}

/// A TCP header without options.
pub(super) fn tcp(port: u16, flags: u8) -> Vec<u8> {
    let port = port.to_be_bytes();
    let mut bytes = vec![0x9c, 0x40, port[0], port[1], 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags];
    bytes.extend([0x20, 0, 0, 0, 0, 0]);
    bytes
}

/// A UDP header and four bytes of payload.
pub(super) fn udp(port: u16) -> Vec<u8> {
    let port = port.to_be_bytes();
    vec![0x9c, 0x40, port[0], port[1], 0, 12, 0, 0, 1, 2, 3, 4]
}

/// An ICMPv6 message of 24 bytes.
pub(super) fn icmpv6(message: u8) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    bytes[0] = message;
    bytes
}
