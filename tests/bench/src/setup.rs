//! What there is to measure by test-run: each scenario by its name in the report, and how it is set up.

use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Result, ensure};
use limiter_tests::frame::Frame;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::kernel::{self, Sources, Yard};
use crate::measure::{self, Runner};
use crate::product::{Limits, Product};
use crate::scenario::{Begin, Expect, Scenario};

/// By name, in the order in which a round runs them.
pub(crate) const ALL: [(&str, Make); 24] = [
    ("bare", |it| it.plain("bare")),
    ("ref_parse_drop", |it| it.plain("ref_parse_drop")),
    ("parse_drop", |it| it.parse_drop(&v4())),
    ("one_source_refused", |it| it.one(&v4(), Limits::SOURCE_SPENT)),
    ("one_source_admitted", |it| it.one(&v4(), Limits::ALL_PASS)),
    ("ipv6_parse_drop", |it| it.parse_drop(&v6())),
    ("ipv6_refused", |it| it.one(&v6(), Limits::SOURCE_SPENT)),
    ("ipv6_admitted", |it| it.one(&v6(), Limits::ALL_PASS)),
    ("wrapper", Setup::wrapped_bare),
    ("wrapper_parse_drop", Setup::wrapped_parse_drop),
    ("random_64k", |it| it.many(16, Limits::ALL_PASS)),
    ("random_1m", |it| it.many(20, Limits::ALL_PASS)),
    ("random_1m_refused", |it| it.many(20, Limits::PREFIX_SPENT)),
    ("spoofed_full", Setup::spoofed),
    ("two_cpu_one_prefix", |it| it.two([0, 0])),
    ("two_cpu_two_prefixes", |it| it.two([0, 1])),
    ("lru_percpu_64k", |it| it.yard("lru_percpu", it.sources(16))),
    ("lru_percpu_1m", |it| it.yard("lru_percpu", it.sources(20))),
    ("lru_percpu_spoofed", |it| it.yard("lru_percpu", Sources::ALL_ONCE)),
    ("lru_percpu_two_cpu_one_prefix", |it| it.two_yard("lru_percpu")),
    ("lru_64k", |it| it.yard("lru", it.sources(16))),
    ("lru_1m", |it| it.yard("lru", it.sources(20))),
    ("lru_spoofed", |it| it.yard("lru", Sources::ALL_ONCE)),
    ("lru_two_cpu_one_prefix", |it| it.two_yard("lru")),
];

pub(crate) type Make = fn(&Setup) -> Result<Scenario>;

/// A table that holds both rules' words of 1,048,576 sources at a quarter full.
const MILLION_BUCKETS: u32 = 1 << 20;
/// Enough for a few sources.
const FEW_BUCKETS: u32 = 1 << 12;
/// Entries a level of the yardsticks: 1,048,576 for each of the two rules that judge a packet.
const YARD_ENTRIES: u32 = 2 << 20;
/// Packets of a slice at most, so that no limit is used up.
pub(crate) const MOST_PACKETS: i64 = 2_000_000;

fn v4() -> Frame {
    Frame::new().ipv4("10.0.0.1").udp(53).payload(18)
}

fn v6() -> Frame {
    Frame::new().ipv6("2001:db8::1").udp(53).payload(18)
}

/// What all scenarios have in common.
pub(crate) struct Setup {
    /// Those that may be used.
    cpus: Vec<usize>,
    packets: u32,
    /// Tables and numbers of sources are 2^this times smaller than the names say: for a smoke test.
    shrink: u32,
}

impl Setup {
    /// Slices of this many packets.
    pub(crate) fn new(packets: u32, shrink: u32) -> Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        Ok(Self { cpus, packets, shrink })
    }

    /// Where one program runs: the first CPU has most of the interrupts.
    pub(crate) fn cpu(&self) -> usize {
        self.cpus.last().copied().unwrap_or(0)
    }

    fn sources(&self, bits: u32) -> Sources {
        Sources::random(bits - self.shrink)
    }

    fn scenario(&self, program: OwnedFd, frame: &Frame) -> Scenario {
        let runner = Runner { program, cpu: self.cpu() };
        Scenario::new(vec![runner], frame.build(), self.packets)
    }

    fn plain(&self, name: &str) -> Result<Scenario> {
        Ok(self.scenario(kernel::plain(name, None)?, &v4()))
    }

    fn parse_drop(&self, frame: &Frame) -> Result<Scenario> {
        let product = Product::load(FEW_BUCKETS, Limits::ALL_PASS)?;
        let program = kernel::plain("parse_drop", Some(&product.pins()))?;
        let scenario = self.scenario(program, frame);
        Ok(Scenario { expect: Expect::Refused, product: Some(product), ..scenario })
    }

    fn one(&self, frame: &Frame, limits: Limits) -> Result<Scenario> {
        let product = Product::load(FEW_BUCKETS, limits)?;
        let scenario = self.scenario(product.program().try_clone_to_owned()?, frame);
        let (begin, expect) = if limits == Limits::ALL_PASS {
            (Begin::Empty, Expect::Admitted)
        } else {
            (Begin::Same, Expect::Refused)
        };
        Ok(Scenario { begin, expect, product: Some(product), ..scenario })
    }

    fn wrapped_bare(&self) -> Result<Scenario> {
        let bare = kernel::plain("bare", None)?;
        self.wrapped(self.sources(20), &bare)
    }

    fn wrapped_parse_drop(&self) -> Result<Scenario> {
        let product = Product::load(FEW_BUCKETS, Limits::ALL_PASS)?;
        let program = kernel::plain("parse_drop", Some(&product.pins()))?;
        let scenario = self.wrapped(self.sources(20), &program)?;
        Ok(Scenario { expect: Expect::Refused, product: Some(product), ..scenario })
    }

    fn wrapped(&self, sources: Sources, target: impl AsFd) -> Result<Scenario> {
        let (wrapper, table) = kernel::wrapper(sources, target)?;
        Ok(Scenario { tables: vec![table], ..self.scenario(wrapper, &v4()) })
    }

    /// A runner that meets each of the sources once, and the table behind it.
    fn filler(&self, sources: Sources, target: impl AsFd) -> Result<(Runner, OwnedFd)> {
        let (program, table) = kernel::wrapper(sources.each_once(), target)?;
        Ok((Runner { program, cpu: self.cpu() }, table))
    }

    /// 2^`bits` random sources; where they pass, each has its words in the table already.
    fn many(&self, bits: u32, limits: Limits) -> Result<Scenario> {
        let product = Product::load(MILLION_BUCKETS >> self.shrink, limits)?;
        let sources = self.sources(bits);
        let (filler, table) = self.filler(sources, product.program())?;
        let mut scenario = self.wrapped(sources, product.program())?;
        scenario.tables.push(table);
        let once = sources.count() as u32;
        let (begin, expect) = if limits == Limits::ALL_PASS {
            (Begin::Empty, Expect::Admitted)
        } else {
            (Begin::Same, Expect::Refused)
        };
        if expect == Expect::Refused {
            // A prefix's 200 are spent once each of its 256 sources has come.
            measure::run(std::slice::from_ref(&filler), &scenario.frame, once)?;
        }
        let warm = (expect == Expect::Admitted).then_some((filler, once));
        Ok(Scenario { warm, begin, expect, product: Some(product), ..scenario })
    }

    /// A source never seen before with each packet, over a table without a free slot.
    fn spoofed(&self) -> Result<Scenario> {
        /// Nearly all that the limits let pass.
        const PASSING: u32 = 3_900_000;
        let mut product = Product::load(MILLION_BUCKETS >> self.shrink, Limits::ALL_PASS)?;
        let scenario = self.wrapped(Sources::ALL_ONCE, product.program())?;
        for _ in 0..20 {
            if product.fill() > 0.999 {
                break;
            }
            measure::run(&scenario.runners, &scenario.frame, PASSING >> self.shrink)?;
            product.renew()?;
        }
        let (begin, expect) = (Begin::Anew, Expect::Admitted);
        Ok(Scenario { begin, expect, product: Some(product), ..scenario })
    }

    /// Two CPUs at once, each with the 256 sources of one of these prefixes.
    fn two(&self, prefixes: [u32; 2]) -> Result<Scenario> {
        let product = Product::load(FEW_BUCKETS, Limits::ALL_PASS)?;
        let scenario = self.pair(prefixes, product.program())?;
        let (begin, expect) = (Begin::Empty, Expect::Admitted);
        Ok(Scenario { begin, expect, product: Some(product), ..scenario })
    }

    fn pair(&self, prefixes: [u32; 2], target: impl AsFd) -> Result<Scenario> {
        ensure!(self.cpus.len() >= 2, "two CPUs are needed, {} may be used", self.cpus.len());
        let (mut runners, mut tables) = (Vec::new(), Vec::new());
        for (prefix, cpu) in prefixes.into_iter().zip(&self.cpus) {
            let sources = Sources::random(8).in_prefix(prefix);
            let (program, table) = kernel::wrapper(sources, &target)?;
            runners.push(Runner { program, cpu: *cpu });
            tables.push(table);
        }
        // Both draw from the same totals.
        let packets = self.packets / 4 * 3;
        Ok(Scenario { tables, ..Scenario::new(runners, v4().build(), packets) })
    }

    fn yard(&self, program: &'static str, sources: Sources) -> Result<Scenario> {
        let product = Product::load(FEW_BUCKETS, Limits::ALL_PASS)?;
        let entries = YARD_ENTRIES >> self.shrink;
        let yard = kernel::yardstick(Yard { program, entries }, &product.pins())?;
        let mut scenario = self.wrapped(sources, &yard)?;
        if sources.are_new() {
            measure::run(&scenario.runners, &scenario.frame, entries)?;
        } else {
            let (filler, table) = self.filler(sources, &yard)?;
            scenario.tables.push(table);
            let once = sources.count() as u32;
            measure::run(std::slice::from_ref(&filler), &scenario.frame, once)?;
        }
        Ok(Scenario { expect: Expect::Admitted, product: Some(product), ..scenario })
    }

    fn two_yard(&self, program: &'static str) -> Result<Scenario> {
        let product = Product::load(FEW_BUCKETS, Limits::ALL_PASS)?;
        let entries = YARD_ENTRIES >> self.shrink;
        let yard = kernel::yardstick(Yard { program, entries }, &product.pins())?;
        let scenario = self.pair([0, 0], &yard)?;
        Ok(Scenario { expect: Expect::Admitted, product: Some(product), ..scenario })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_leaves_room_in_every_limit() {
        let most = u32::try_from(MOST_PACKETS).unwrap_or(u32::MAX);
        let once = 1 << 20;
        assert!(most + once < Limits::ALL_PASS.total);
        assert!(2 * (most / 4 * 3) < Limits::ALL_PASS.total);
    }

    #[test]
    fn names_are_unique() {
        let mut names = ALL.map(|(name, _)| name);
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
