//! What guards the receiving interface: nothing but a drop, limiter, or what the kernel brings along.
//! Like for like: UDP, 20 per 10 s from a source, 200 from its /24, the /24 asked first. What a guard lets
//! through is counted and dropped right behind it, so that figures are about guards and not about how a
//! host receives packets.

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use aya::Ebpf;

use super::stage::{Stage, TO};
use crate::kernel;
use crate::product::Product;

/// By its name in the report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bare,
    Limiter,
    Nft,
    Hashlimit,
    /// The same, but what was used up stays used up, as it does with limiter until the window ends: their
    /// best, since nothing passes any more.
    NftStill,
    HashlimitStill,
}

impl Kind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Bare,
        Self::Limiter,
        Self::Nft,
        Self::Hashlimit,
        Self::NftStill,
        Self::HashlimitStill,
    ];
    /// Those with the rates that are asked for.
    pub(crate) const COMPARED: [Self; 4] = [Self::Bare, Self::Limiter, Self::Nft, Self::Hashlimit];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Limiter => "limiter",
            Self::Nft => "nft",
            Self::Hashlimit => "hashlimit",
            Self::NftStill => "nft_still",
            Self::HashlimitStill => "hashlimit_still",
        }
    }
}

/// Of prefixes and of sources, as nft and iptables write them.
struct Rates {
    prefix: &'static str,
    source: &'static str,
}

/// 200 and 20 in 10 s.
const RATES: Rates = Rates { prefix: "20/second", source: "2/second" };
/// So slow that nothing comes back while the bench runs.
const STILL: Rates = Rates { prefix: "1/hour", source: "1/hour" };

/// Holds what must live while the interface is guarded.
pub(crate) enum Guard {
    Bare {
        _program: Ebpf,
    },
    Limiter(Box<Product>),
    /// The kernel's rules go with their namespace.
    Rules,
}

/// Slots for four times a million sources.
const BUCKETS: u32 = 1 << 19;
const WINDOW: Duration = Duration::from_secs(10);

impl Guard {
    pub(crate) fn set_up(kind: Kind, stage: &Stage) -> Result<Self> {
        stage.at_receiver(|| {
            let guard = match kind {
                Kind::Bare => Self::Bare { _program: kernel::drop_everything(TO)? },
                Kind::Limiter => limiter()?,
                Kind::Nft => nft(&RATES)?,
                Kind::Hashlimit => hashlimit(&RATES)?,
                Kind::NftStill => nft(&STILL)?,
                Kind::HashlimitStill => hashlimit(&STILL)?,
            };
            drop_what_passes()?;
            Ok(guard)
        })
    }

    /// What is left of the window that counts now; `None` if there is none.
    pub(crate) fn window_left(&self) -> Option<Duration> {
        let Self::Limiter(product) = self else {
            return None;
        };
        let now = Duration::from_nanos(product.datapath().unix_now()).as_nanos();
        let left = WINDOW.as_nanos() - now % WINDOW.as_nanos();
        Some(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX)))
    }
}

fn limiter() -> Result<Guard> {
    let policy = |version| {
        format!(
            "schema = 1\n[[rule]]\nname = \"udp-{version}\"\nmatch = [{{ protocol = \"udp\" }}]\n\
             limit = {{ source = 20, prefix = 200 }}\nwindow = \"10s\"\n"
        )
    };
    let product = Product::with_policy(BUCKETS, Box::new(policy))?;
    product.attach(TO)?;
    Ok(Guard::Limiter(Box::new(product)))
}

fn nft(rates: &Rates) -> Result<Guard> {
    receive_in_driver()?;
    let Rates { prefix, source } = rates;
    let rules = format!(
        "table netdev bench {{
            set prefixes {{ type ipv4_addr; flags dynamic; size 65536; }}
            set sources {{ type ipv4_addr; flags dynamic; size 2097152; }}
            chain input {{
                type filter hook ingress device \"{TO}\" priority 0; policy accept;
                ip protocol udp update @prefixes {{ ip saddr & 255.255.255.0 limit rate over {prefix} burst 200 packets }} drop
                ip protocol udp update @sources {{ ip saddr limit rate over {source} burst 20 packets }} drop
            }}
        }}"
    );
    command("nft", &[&rules])?;
    Ok(Guard::Rules)
}

fn hashlimit(rates: &Rates) -> Result<Guard> {
    receive_in_driver()?;
    for (name, mask, rate, burst, buckets, most) in [
        ("prefixes", "24", rates.prefix, "200", "16384", "65536"),
        ("sources", "32", rates.source, "20", "1048576", "2097152"),
    ] {
        let line = format!(
            "-t raw -A PREROUTING -i {TO} -p udp -m hashlimit --hashlimit-name {name} \
             --hashlimit-mode srcip --hashlimit-srcmask {mask} --hashlimit-above {rate} \
             --hashlimit-burst {burst} --hashlimit-htable-size {buckets} \
             --hashlimit-htable-max {most} --hashlimit-htable-expire 60000 -j DROP"
        );
        let words: Vec<&str> = line.split_whitespace().collect();
        command(iptables(), &words)?;
    }
    Ok(Guard::Rules)
}

/// Without an XDP program, a veth takes injected frames only with GRO on.
fn receive_in_driver() -> Result<()> {
    command("ethtool", &["-K", TO, "gro", "on"]).map(drop)
}

/// The first rule behind XDP, ingress and, as it is the last of them, the hashlimit rules.
fn drop_what_passes() -> Result<()> {
    command(iptables(), &["-t", "raw", "-A", "PREROUTING", "-i", TO, "-j", "DROP"]).map(drop)
}

/// How many packets that rule has met.
pub(super) fn passed() -> Result<u64> {
    let listed = command(iptables(), &["-t", "raw", "-nvxL", "PREROUTING"])?;
    let last = listed.lines().rev().find(|line| line.contains("DROP"));
    let packets = last.and_then(|line| line.split_whitespace().next()?.parse().ok());
    packets.with_context(|| format!("no packets counted in `{listed}`"))
}

/// The older iptables asks hashlimit directly, the newer one by way of nftables: the older where the
/// kernel still has it.
fn iptables() -> &'static str {
    static FOUND: OnceLock<&str> = OnceLock::new();
    const OLDER: &str = "iptables-legacy";
    FOUND.get_or_init(|| match command(OLDER, &["-t", "raw", "-nL"]) {
        Ok(_) => OLDER,
        Err(_) => "iptables",
    })
}

fn command(program: &str, words: &[&str]) -> Result<String> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output =
        Command::new(program).args(words).env("PATH", path).output().with_context(|| {
            format!(
                "cannot run {program}: `cargo xtask setup` installs what the bench compares with"
            )
        })?;
    if !output.status.success() {
        bail!("{program} refuses: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
