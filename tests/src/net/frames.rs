//! Sends raw Ethernet frames, so that a test decides about every byte on the wire. The only part of
//! the kit with `unsafe`: the kernel's link-layer address has no safe constructor in our crates.

use std::os::fd::{AsFd as _, AsRawFd as _};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::{Error, Namespace, Result};

/// How often a frame is sent again to a full queue: seconds, on a busy machine.
const PATIENCE: u32 = 100_000;

/// A packet socket bound to one interface. It only sends.
#[derive(Debug)]
pub struct FrameSocket {
    socket: Socket,
}

impl FrameSocket {
    /// On this interface, from where frames leave to the other end of the veth pair: those sent on the
    /// n-th CPU by its n-th queue, if it has so many.
    pub fn open(namespace: &Namespace, interface: &str) -> Result<Self> {
        namespace.run(|| open(interface))?.map_err(|source| {
            Error::system(
                format!("open a packet socket on {interface} in {}", namespace.name()),
                source,
            )
        })
    }

    /// Sends one frame, from the destination's MAC address on, as it stands. While the other end's queue
    /// is full the frame has gone nowhere, and is sent again.
    pub fn send(&self, frame: &[u8]) -> Result<()> {
        let mut sent = self.socket.send(frame);
        for _ in 0..PATIENCE {
            match &sent {
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    std::thread::yield_now();
                    sent = self.socket.send(frame);
                }
                _ => break,
            }
        }
        sent.map(drop).map_err(|source| {
            Error::system(format!("send a frame of {} bytes", frame.len()), source)
        })
    }
}

fn open(interface: &str) -> std::io::Result<FrameSocket> {
    // Protocol 0: it never receives, so nothing fills its buffer.
    let socket = Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(0)))?;
    let index = rustix::net::netdevice::name_to_index(socket.as_fd(), interface)?;
    socket.bind(&link_address(index)?)?;
    pick_queue_by_cpu(&socket)?;
    Ok(FrameSocket { socket })
}

/// Else a hash of the addresses picks it, and a source never changes its queue. The kernel does so only for
/// sockets that pass by the queueing discipline; a veth has none.
fn pick_queue_by_cpu(socket: &Socket) -> std::io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int that outlives the call, and its length is told.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_QDISC_BYPASS,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    } != 0;
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn link_address(index: u32) -> std::io::Result<SockAddr> {
    let index = i32::try_from(index).map_err(std::io::Error::other)?;
    // SAFETY: the storage is zeroed and at least as large and aligned as any socket address, so it
    // holds a sockaddr_ll; family, index and length are those of one.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            let link = storage.cast::<libc::sockaddr_ll>();
            (*link).sll_family = libc::AF_PACKET as libc::sa_family_t;
            (*link).sll_ifindex = index;
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })?
    };
    Ok(address)
}
