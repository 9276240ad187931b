//! The product as it is measured: its own program, maps and policy compiler, nothing replaced. Maps are
//! pinned while it lives, so that the bench's programs can share them.

use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use limiter_common::clock::Tick;
use limiter_common::counters::RuleCount;
use limiter_common::layout::VERSION;
use limiter_common::verdict::Exit;
use limiter_tests::owner::{is_orphan, unique_name};
use limiter_userspace::datapath::{Datapath, Options, Pins, attach};
use limiter_userspace::policy::Policy;
use limiter_userspace::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};

/// Where BPF file systems are mounted by custom.
const BPFFS: &str = "/sys/fs/bpf";

/// More than a slice uses up; the largest limit there is is 4,194,302.
const ENDLESS: u32 = 4_000_000;

/// Packets per window by level.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) source: u32,
    pub(crate) prefix: u32,
    pub(crate) total: u32,
}

impl Limits {
    pub(crate) const ALL_PASS: Self = Self { source: ENDLESS, prefix: ENDLESS, total: ENDLESS };
    pub(crate) const SOURCE_SPENT: Self = Self { source: 20, ..Self::ALL_PASS };
    pub(crate) const PREFIX_SPENT: Self = Self { source: 20, prefix: 200, ..Self::ALL_PASS };
}

/// Longer than the bench runs, so that nothing ends by itself.
const WINDOW: &str = "1h";
/// The same in ticks, and half of the time after which ends of windows repeat.
const SPAN: u32 = 72_000;
const FAR: u64 = 1 << 17;

/// A loaded product with a policy.
pub(crate) struct Product {
    datapath: Datapath,
    pins: PathBuf,
    policy: Policies,
    version: u64,
}

/// A policy, given a number that sets the names of its rules apart.
type Policies = Box<dyn Fn(u64) -> String + Send>;

/// How packets left, in shares of one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shares {
    pub(crate) admitted: f64,
    pub(crate) refused: f64,
    /// Levels that couldn't judge for want of a slot, per packet; may be above 1.
    pub(crate) crowded: f64,
}

/// Counts at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Tally {
    all: u64,
    admitted: u64,
    refused: u64,
    crowded: u64,
}

impl Tally {
    /// What happened since an earlier tally.
    pub(crate) fn since(self, before: Self) -> Shares {
        let share = |new: u64, old: u64| (new - old) as f64 / (self.all - before.all).max(1) as f64;
        Shares {
            admitted: share(self.admitted, before.admitted),
            refused: share(self.refused, before.refused),
            crowded: share(self.crowded, before.crowded),
        }
    }
}

impl Product {
    /// Loads it with a table of this many buckets and puts the bench's policy in force.
    pub(crate) fn load(buckets: u32, limits: Limits) -> Result<Self> {
        Self::with_policy(buckets, Box::new(move |version| policy(limits, version)))
    }

    /// The same with another policy.
    pub(crate) fn with_policy(buckets: u32, policy: Policies) -> Result<Self> {
        let pins = Path::new(BPFFS).join(unique_name("bench"));
        let options = Options { buckets, ..Options::default() };
        let (datapath, _) = Datapath::open(&Pins::new(&pins), options)?;
        let mut product = Self { datapath, pins, policy, version: 0 };
        product.renew()?;
        Ok(product)
    }

    /// The program under test.
    pub(crate) fn program(&self) -> BorrowedFd<'_> {
        self.datapath.program()
    }

    /// Where its maps are pinned.
    pub(crate) fn pins(&self) -> PathBuf {
        self.pins.join(format!("v{VERSION}"))
    }

    /// Attaches it to an interface of this thread's network namespace, while it lives.
    pub(crate) fn attach(&self, interface: &str) -> Result<()> {
        attach::attach(&Pins::new(&self.pins), interface, attach::Mode::Native)?;
        Ok(())
    }

    pub(crate) fn datapath(&self) -> &Datapath {
        &self.datapath
    }

    /// Puts the policy in force again under new names: every count begins anew, old words stay where
    /// they are until others need their place.
    pub(crate) fn renew(&mut self) -> Result<()> {
        self.version += 1;
        let checked = Policy::parse(&(self.policy)(self.version))
            .map_err(|problems| anyhow!("the bench's policy: {problems}"))?;
        let entries = self.datapath.registry()?;
        let registry = Registry::from_entries(&entries, self.datapath.next_rule_id());
        let now = UnixNanos(self.datapath.unix_now());
        let snapshot = Snapshot::compile(
            &checked.policy,
            &registry,
            &ModeOverrides::default(),
            self.version,
            now,
        )?;
        Ok(self.datapath.install(&snapshot)?)
    }

    /// The same with an empty table: to a clock this far ahead, every word is dead.
    pub(crate) fn renew_empty(&mut self) -> Result<()> {
        self.renew()?;
        let later = Tick(self.datapath.now().0 + FAR);
        self.datapath.table().clear_dead(later, SPAN);
        Ok(())
    }

    /// The share of the table's slots that are in use.
    pub(crate) fn fill(&self) -> f64 {
        let table = self.datapath.table();
        table.count_live(self.datapath.now(), SPAN) as f64 / table.slots() as f64
    }

    pub(crate) fn tally(&self) -> Result<Tally> {
        let counts = self.datapath.counts()?;
        let exits = |which: Option<Exit>| -> u64 {
            let chosen = counts.exits.iter().filter(|(exit, _)| which.is_none_or(|it| it == *exit));
            chosen.map(|(_, count)| count.packets).sum()
        };
        let of_rules = counts.rules.iter().flat_map(|rule| &rule.counts);
        let crowded = of_rules.filter(|(what, _)| matches!(what, RuleCount::Crowded(_)));
        Ok(Tally {
            all: exits(None),
            admitted: exits(Some(Exit::Admitted)),
            refused: exits(Some(Exit::Refused)),
            crowded: crowded.map(|(_, count)| count.packets).sum(),
        })
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // Nobody can act on a failure here; the next sweep tries again.
        let _ = fs::remove_dir_all(&self.pins);
    }
}

/// Removes the pins of benches that are no more.
pub(crate) fn sweep() {
    let entries = fs::read_dir(BPFFS).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        if name.starts_with("limiter-bench-") && is_orphan(&name) {
            let _ = fs::remove_dir_all(Path::new(BPFFS).join(name));
        }
    }
}

/// Four rules with three levels each; a UDP packet is judged by two of them. The bench can't do with
/// overrides: the policy language has none yet.
fn policy(limits: Limits, version: u64) -> String {
    let Limits { source, prefix, total } = limits;
    let matches = [
        ("syn", r#"protocol = "tcp", packets = "tcp-syn""#),
        ("udp", r#"protocol = "udp""#),
        ("icmp", r#"protocol = "icmp""#),
        ("any", r#"protocol = "any""#),
    ];
    let rules = matches.map(|(name, accept)| {
        format!(
            "[[rule]]\nname = \"{name}-{version}\"\nmatch = [{{ {accept} }}]\nwindow = \"{WINDOW}\"\n\
             limit = {{ source = {source}, prefix = {prefix}, total = {total} }}\n"
        )
    });
    format!("schema = 1\n{}", rules.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_valid() {
        for limits in [Limits::ALL_PASS, Limits::SOURCE_SPENT, Limits::PREFIX_SPENT] {
            let checked = Policy::parse(&policy(limits, 7)).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(checked.policy.rules().len(), 4);
        }
    }
}
