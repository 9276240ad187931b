//! A generator and a receiver in network namespaces of their own, joined by a veth pair; and what the
//! kernel says of how many packets came, and how many got through.

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result, anyhow, bail};
use limiter_tests::bpf;
use limiter_tests::frame::Frame;
use limiter_tests::net::{End, Namespace, on_cpu, veth};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::guard;
use super::time::{Took, timed};
use crate::kernel::{self, Sources};

/// The interfaces.
const FROM: &str = "from";
pub(crate) const TO: &str = "to";

const TO_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const TO_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Both namespaces. Whatever guards the receiving interface is set up from outside.
pub(crate) struct Stage {
    sender: Namespace,
    receiver: Namespace,
    cpu: usize,
    interface: u32,
}

/// What one run sent, and what became of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    sent: u64,
    delivered: u64,
    passed: u64,
    pub(crate) took: Took,
}

impl Sent {
    /// Takes in another run.
    pub(crate) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.delivered += other.delivered;
        self.passed += other.passed;
        self.took.wall += other.took.wall;
        self.took.cpu += other.took.cpu;
    }

    /// Nanoseconds per packet that arrived, of CPU time or by the wall clock.
    pub(crate) fn nanos(&self, by_cpu: bool) -> f64 {
        let took = if by_cpu { self.took.cpu } else { self.took.wall };
        took.as_secs_f64() * 1e9 / self.delivered as f64
    }

    /// What got through, of what arrived.
    pub(crate) fn passed_share(&self) -> f64 {
        self.passed as f64 / self.delivered as f64
    }

    /// What arrived, of what was sent.
    pub(crate) fn delivered_share(&self) -> f64 {
        self.delivered as f64 / self.sent as f64
    }
}

/// What the receiving side has counted.
struct Received {
    packets: u64,
    passed: u64,
}

impl Stage {
    /// Generator and receiver share this CPU, as a veth pair handles packets where they were sent.
    pub(crate) fn set_up(cpu: usize) -> Result<Self> {
        let (sender, receiver) = (Namespace::create("bench")?, Namespace::create("bench")?);
        veth(
            End { namespace: &sender, interface: FROM, addresses: &["198.18.0.2/24"] },
            End { namespace: &receiver, interface: TO, addresses: &["198.18.0.1/24"] },
        )?;
        let [a, b, c, d, e, f] = TO_MAC;
        let mac = format!("link set {TO} address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        receiver.ip(&[&mac])?;
        let interface = sender.run(|| index(FROM))??;
        Ok(Self { sender, receiver, cpu, interface })
    }

    /// Runs `work` where the guarded interface [`TO`] is.
    pub(crate) fn at_receiver<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> Result<T> {
        self.receiver.run(work)?
    }

    /// A generator of such sources.
    pub(crate) fn generator(&self, sources: Sources) -> Result<OwnedFd> {
        kernel::generator(sources, self.interface)
    }

    /// Sends at full speed.
    pub(crate) fn send(&self, generator: &OwnedFd, frames: u32) -> Result<Sent> {
        let frame = Frame::new()
            .ethernet(TO_MAC, [2, 0, 0, 0, 0, 9])
            .ipv4("10.0.0.1")
            .destination(TO_ADDRESS)
            .udp(9)
            .payload(18)
            .build();
        let before = self.received()?;
        let inject = || {
            timed(self.cpu, || bpf::send_live(generator.as_fd(), &frame, self.interface, frames))
        };
        let (injected, took) = self.sender.run(|| on_cpu(self.cpu, inject))??;
        injected.context("injecting frames")?;
        let after = self.received()?;
        let delivered = after.packets - before.packets;
        if delivered == 0 {
            bail!("none of {frames} frames arrived");
        }
        let passed = after.passed - before.passed;
        Ok(Sent { sent: u64::from(frames), delivered, passed, took })
    }

    fn received(&self) -> Result<Received> {
        self.at_receiver(|| Ok(Received { packets: arrived()?, passed: guard::passed()? }))
    }
}

/// An interface's number in this thread's namespace.
fn index(interface: &str) -> Result<u32> {
    let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    Ok(name_to_index(&any, interface)?)
}

/// Packets that the guarded interface has taken, whatever became of them.
fn arrived() -> Result<u64> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix("to:"));
    let packets = line.and_then(|line| line.split_whitespace().nth(1));
    packets.and_then(|word| word.parse().ok()).ok_or_else(|| anyhow!("no `{TO}` in {text}"))
}
