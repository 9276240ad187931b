//! What the kernel says about network interfaces: index, MTU, and which XDP program is on it, whoever
//! attached it. Asks by rtnetlink (RTM_GETLINK), changes nothing.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_GETLINK: u16 = 18;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;

const HEADER: usize = 16;
const LINK_HEADER: usize = 16;

/// An interface of this network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) index: u32,
    pub(super) mtu: u32,
    pub(super) xdp: Option<Attached>,
}

/// An XDP program on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attached {
    /// 0 if several are attached in several ways.
    pub(super) program: u32,
    /// In the driver; else in the stack (or in hardware).
    pub(super) native: bool,
}

/// All interfaces, in the kernel's order.
pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let socket = open()?;
    let request = request();
    sendto(&socket, &request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let (mut found, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let (_, length) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if !read_messages(buffer.get(..length).unwrap_or(&[]), &mut found)? {
            return Ok(found);
        }
    }
}

/// The interface of that name, if there is one.
pub(super) fn interface(name: &str) -> io::Result<Option<Interface>> {
    Ok(interfaces()?.into_iter().find(|interface| interface.name == name))
}

fn open() -> io::Result<OwnedFd> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // Protocol 0: rtnetlink.
        None,
    )?;
    bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

/// A header and an empty `ifinfomsg`: all links.
fn request() -> [u8; HEADER + LINK_HEADER] {
    let mut bytes = [0; HEADER + LINK_HEADER];
    bytes[0] = 32;
    bytes[4..6].copy_from_slice(&RTM_GETLINK.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes
}

/// Reads one datagram; false after the last message.
fn read_messages(mut bytes: &[u8], found: &mut Vec<Interface>) -> io::Result<bool> {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = (length as usize).max(HEADER);
        let body = bytes.get(HEADER..length).unwrap_or(&[]);
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let code = u32_at(body, 0).unwrap_or(0).cast_signed();
                return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
            }
            RTM_NEWLINK => found.extend(read_link(body)),
            _ => {}
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Ok(true)
}

fn read_link(body: &[u8]) -> Option<Interface> {
    let mut interface = Interface { index: u32_at(body, 4)?, ..Interface::default() };
    for (kind, value) in attributes(body.get(LINK_HEADER..)?) {
        match kind {
            IFLA_IFNAME => {
                let name = value.split(|byte| *byte == 0).next().unwrap_or(value);
                interface.name = String::from_utf8_lossy(name).into_owned();
            }
            IFLA_MTU => interface.mtu = u32_at(value, 0)?,
            IFLA_XDP => interface.xdp = read_xdp(value),
            _ => {}
        }
    }
    Some(interface)
}

fn read_xdp(nested: &[u8]) -> Option<Attached> {
    let (mut mode, mut program) = (0, 0);
    for (kind, value) in attributes(nested) {
        match kind {
            IFLA_XDP_ATTACHED => mode = value.first().copied().unwrap_or(0),
            IFLA_XDP_PROG_ID => program = u32_at(value, 0).unwrap_or(0),
            _ => {}
        }
    }
    (mode != 0).then_some(Attached { program, native: mode == 1 })
}

/// Splits a row of attributes into kinds (without flags) and values.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(bytes, 0)?), u16_at(bytes, 2)? & 0x3fff);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(4 + value.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn the_loopback_of_this_machine_is_read() {
        let lo = interface("lo").unwrap().expect("every machine has it");
        assert_eq!((lo.index, lo.name.as_str()), (1, "lo"));
        assert!(lo.mtu >= 1280);
        assert_eq!(interface("no-such-one").unwrap(), None);
    }

    #[test]
    fn an_attached_program_is_read_from_nested_attributes() {
        let mut nested = attribute(IFLA_XDP_ATTACHED, &[1]);
        nested.extend(attribute(IFLA_XDP_PROG_ID, &77_u32.to_ne_bytes()));
        assert_eq!(read_xdp(&nested), Some(Attached { program: 77, native: true }));
        assert_eq!(read_xdp(&attribute(IFLA_XDP_ATTACHED, &[0])), None);
    }

    #[test]
    fn bytes_that_end_too_early_are_no_attributes() {
        assert_eq!(attributes(&[9, 0, 3, 0, 1]).count(), 0);
        assert_eq!(attributes(&[2, 0, 3, 0]).count(), 0);
        assert!(read_messages(&[1, 2, 3], &mut Vec::new()).unwrap());
    }
}
