//! Where the demo plays: the host at the edge, the world outside, one link between them, and limiter
//! on that link. Everything is taken down on drop, in the order of the fields.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use anyhow::{Context, Result, bail};
use limiter_tests::net::{End, Mode, Namespace, attached, veth};
use limiter_tests::process::{Daemon, Home, Invocation};

use crate::process::target;

const POLICY: &str = include_str!("../../../examples/demo.toml");
const INTERFACE: &str = "edge0";

/// Addresses that are kept for documentation and measuring, so that none can be anybody's.
pub(super) const EDGE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
pub(super) const POLITE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
pub(super) const FLOOD: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 66);
/// The flooding /24.
pub(super) const PREFIX: [u8; 3] = [203, 0, 113];

/// Inside the edge's namespace, where no other program can have taken the port.
const METRICS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9184));

/// The two namespaces, and limiter if it was asked for.
#[derive(Debug)]
pub(super) struct Stage {
    limiter: Option<Limiter>,
    pub(super) outside: Namespace,
    pub(super) edge: Namespace,
}

#[derive(Debug)]
struct Limiter {
    daemon: Daemon,
    home: Home,
    program: u64,
}

impl Stage {
    /// Two namespaces with a link; nothing is limited yet. Clears away what a killed demo left.
    pub(super) fn set_up() -> Result<Self> {
        let edge = Namespace::create("demo")?;
        let outside = Namespace::create("demo")?;
        veth(
            End { namespace: &edge, interface: INTERFACE, addresses: &["198.18.0.1/30"] },
            End { namespace: &outside, interface: "world0", addresses: &["198.18.0.2/30"] },
        )?;
        edge.ip(&["route add default via 198.18.0.2"])?;
        // Whole networks as local addresses: each party can bind to its own without adding hundreds.
        outside.ip(&[
            "route add local 192.0.2.0/24 dev lo",
            "route add local 198.51.100.0/24 dev lo",
            "route add local 203.0.113.0/24 dev lo",
        ])?;
        Ok(Self { limiter: None, outside, edge })
    }

    /// Starts the real daemon at the edge, and sees for itself that the program is on the interface.
    pub(super) fn start_limiter(&mut self) -> Result<()> {
        let home = Home::create("demo")?;
        let invocation = Invocation {
            binary: target("release/limiter"),
            interfaces: vec![INTERFACE.into()],
            policy: home.write("demo.toml", POLICY)?,
            metrics: Some(METRICS),
            extra: Vec::new(),
        };
        let daemon = Daemon::start(&self.edge, &home, &invocation)?;
        let program = self.program()?;
        self.limiter = Some(Limiter { daemon, home, program });
        Ok(())
    }

    /// Fails if the daemon died or its program left the interface.
    pub(super) fn check_limiter(&mut self) -> Result<()> {
        let on_interface = self.limiter.is_some().then(|| self.program()).transpose()?;
        let Some(limiter) = &mut self.limiter else {
            return Ok(());
        };
        if !limiter.daemon.is_running() {
            bail!("the daemon ended by itself; it said:\n{}", limiter.home.log());
        }
        if on_interface != Some(limiter.program) {
            bail!("another program took the place of limiter's on {INTERFACE}");
        }
        Ok(())
    }

    /// Where the exporter listens, in the edge's namespace.
    pub(super) fn exporter(&self) -> SocketAddr {
        METRICS
    }

    fn program(&self) -> Result<u64> {
        let on_interface = attached(&self.edge, INTERFACE)?;
        let found =
            on_interface.with_context(|| format!("no XDP program is attached to {INTERFACE}"))?;
        if found.mode != Mode::Native {
            bail!(
                "the program on {INTERFACE} isn't attached natively but in mode {:?}",
                found.mode
            );
        }
        Ok(found.program)
    }
}
