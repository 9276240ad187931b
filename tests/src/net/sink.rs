//! A UDP receiver that counts what really arrived behind the limiter, by source address.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::{Error, Namespace, Result};

/// Room for tens of thousands of small packets between two reads.
const RECEIVE_BUFFER: usize = 16 << 20;

/// A bound UDP socket inside a namespace.
#[derive(Debug)]
pub struct UdpSink {
    socket: UdpSocket,
}

impl UdpSink {
    /// Binds inside; port 0 picks a free one.
    pub fn bind(namespace: &Namespace, address: SocketAddr) -> Result<Self> {
        let socket = namespace.run(|| bind(address))?;
        let socket =
            socket.map_err(|source| Error::system(format!("bind UDP {address}"), source))?;
        Ok(Self { socket })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr> {
        self.socket.local_addr().map_err(|source| Error::system("ask a socket's address", source))
    }

    /// Packets by source, until none has come for `quiet` (above 0): the kernel hands packets on
    /// within microseconds, so some ten milliseconds are plenty.
    pub fn collect(&self, quiet: Duration) -> Result<BTreeMap<IpAddr, u64>> {
        let mut by_source = BTreeMap::new();
        self.set_patience(quiet)?;
        while let Some((source, _length)) = self.receive(&mut [0; 2048])? {
            *by_source.entry(source.ip().to_canonical()).or_insert(0) += 1;
        }
        Ok(by_source)
    }

    /// The next packet: its sender and length; `None` if none came within the patience set last.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<(SocketAddr, usize)>> {
        loop {
            match self.socket.recv_from(buffer) {
                Ok((length, source)) => return Ok(Some((source, length))),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return Ok(None);
                }
                Err(source) => return Err(Error::system("receive a packet", source)),
            }
        }
    }

    /// How long [`Self::receive`] waits; above 0.
    pub fn set_patience(&self, patience: Duration) -> Result<()> {
        let set = self.socket.set_read_timeout(Some(patience));
        set.map_err(|source| Error::system("set a timeout", source))
    }
}

fn bind(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // The plain option is capped by net.core.rmem_max; a packet lost here would look refused.
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
