//! What is measured by test-run: each scenario by its name in the report, how it is set up, and one slice
//! of it. Knows nothing of rounds, medians and floors.

use std::os::fd::OwnedFd;

use anyhow::{Result, ensure};
use limiter_tests::frame::Frame;
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::kernel::{self, Sources, Yard};
use crate::measure::{self, Runner};
use crate::product::{Limits, Product, Shares};

/// A table that holds the two rules' words of 1,048,576 sources at a quarter full.
pub(crate) const MILLION: u32 = 1 << 20;
/// Enough for a few sources.
const SMALL: u32 = 1 << 12;

/// Entries a level of the yardsticks: 1,048,576 for each of the two rules that judge a packet.
const YARD_ENTRIES: u32 = 2 << 20;

/// By name, in the order in which a round runs them.
pub(crate) const ALL: [(&str, Make); 24] = [
    ("bare", |it| it.plain("bare")),
    ("ref_parse_drop", |it| it.plain("ref_parse_drop")),
    ("parse_drop", |it| it.parse_drop(v4())),
    ("parse_drop_ipv6", |it| it.parse_drop(v6())),
    ("one_source_refused", |it| it.one(v4(), Limits::SOURCE_SPENT)),
    ("one_source_admitted", |it| it.one(v4(), Limits::ALL_PASS)),
    ("ipv6_refused", |it| it.one(v6(), Limits::SOURCE_SPENT)),
    ("ipv6_admitted", |it| it.one(v6(), Limits::ALL_PASS)),
    ("wrapper", Setup::wrapped_bare),
    ("wrapper_parse_drop", Setup::wrapped_parse_drop),
    ("random_64k", |it| it.many(16, Limits::ALL_PASS)),
    ("random_1m", |it| it.many(20, Limits::ALL_PASS)),
    ("random_1m_refused", |it| it.many(20, Limits::PREFIX_SPENT)),
    ("spoofed_full", Setup::spoofed),
    ("two_cpu_one_prefix", |it| it.two([0, 0])),
    ("two_cpu_two_prefixes", |it| it.two([0, 1])),
    ("lru_percpu_64k", |it| it.yard("lru_percpu", Sources::random(16))),
    ("lru_percpu_1m", |it| it.yard("lru_percpu", Sources::random(20))),
    ("lru_percpu_spoofed", |it| it.yard("lru_percpu", Sources::ALL_ONCE)),
    ("lru_64k", |it| it.yard("lru", Sources::random(16))),
    ("lru_1m", |it| it.yard("lru", Sources::random(20))),
    ("lru_spoofed", |it| it.yard("lru", Sources::ALL_ONCE)),
    ("lru_percpu_two_cpu_one_prefix", |it| it.two_yard("lru_percpu")),
    ("lru_two_cpu_one_prefix", |it| it.two_yard("lru")),
];

type Make = fn(&Setup) -> Result<Scenario>;

fn v4() -> Frame {
    Frame::new().ipv4("10.0.0.1").udp(53).payload(18)
}

fn v6() -> Frame {
    Frame::new().ipv6("2001:db8::1").udp(53).payload(18)
}

/// How each slice begins.
#[derive(Clone, Copy, PartialEq)]
enum Begin {
    /// Where the last one ended.
    Same,
    /// With every count at zero, so that no limit is used up.
    Anew,
    /// With an empty table too.
    Empty,
}

/// How packets must leave.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Anything,
    Refused,
    Admitted,
}

/// One program, set up and warm.
pub(crate) struct Scenario {
    runners: Vec<Runner>,
    /// Runs before each slice this many times, unmeasured.
    warm: Option<(Runner, u32)>,
    frame: Vec<u8>,
    packets: u32,
    begin: Begin,
    expect: Expect,
    product: Option<Product>,
    /// Tables behind the wrappers; they empty themselves when let go.
    _tables: Vec<OwnedFd>,
}

impl Scenario {
    /// Nanoseconds per packet over one slice.
    pub(crate) fn slice(&mut self) -> Result<f64> {
        if let Some(product) = &mut self.product {
            match self.begin {
                Begin::Same => {}
                Begin::Anew => product.renew()?,
                Begin::Empty => product.renew_empty()?,
            }
        }
        self.warm_up()?;
        let before = self.product.as_ref().map(Product::tally).transpose()?;
        let nanos = measure::run(&self.runners, &self.frame, self.packets)?;
        if let (Some(product), Some(before)) = (&self.product, before) {
            self.check(product.tally()?.since(before))?;
        }
        Ok(nanos)
    }

    fn warm_up(&self) -> Result<()> {
        if let Some((runner, packets)) = &self.warm {
            measure::run(std::slice::from_ref(runner), &self.frame, *packets)?;
        }
        // The first packets of every slice meet cold code.
        measure::run(&self.runners, &self.frame, 1_000).map(drop)
    }

    /// A figure is worth nothing if packets didn't go the way it is about.
    fn check(&self, shares: Shares) -> Result<()> {
        let met = match self.expect {
            Expect::Anything => 1.0,
            Expect::Refused => shares.refused,
            Expect::Admitted => shares.admitted,
        };
        ensure!(
            met > 0.98,
            "only {:.1} % of the packets went the way that is measured",
            met * 100.0
        );
        Ok(())
    }

    /// The share of the table's slots in use, if there is one.
    pub(crate) fn fill(&self) -> Option<f64> {
        self.product.as_ref().map(Product::fill)
    }

    /// Bytes of the table.
    pub(crate) fn table_bytes(&self) -> Option<u64> {
        Some(self.product.as_ref()?.datapath().table().bytes())
    }
}

/// What all scenarios have in common.
pub(crate) struct Setup {
    /// Where one program runs, and where two do.
    cpus: Vec<usize>,
    packets: u32,
}

impl Setup {
    /// Slices of this many packets.
    pub(crate) fn new(packets: u32) -> Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
        Ok(Self { cpus, packets })
    }

    /// CPU 0 has most of the interrupts.
    fn cpu(&self) -> usize {
        self.cpus.last().copied().unwrap_or(0)
    }

    fn runner(&self, program: OwnedFd) -> Runner {
        Runner { program, cpu: self.cpu() }
    }

    fn scenario(&self, runners: Vec<Runner>, frame: &Frame) -> Scenario {
        Scenario {
            runners,
            warm: None,
            frame: frame.build(),
            packets: self.packets,
            begin: Begin::Same,
            expect: Expect::Anything,
            product: None,
            _tables: Vec::new(),
        }
    }

    fn plain(&self, name: &str) -> Result<Scenario> {
        Ok(self.scenario(vec![self.runner(kernel::plain(name, None)?)], &v4()))
    }

    fn parse_drop(&self, frame: Frame) -> Result<Scenario> {
        let product = Product::load(SMALL, Limits::ALL_PASS)?;
        let program = kernel::plain("parse_drop", Some(&product.pins()))?;
        let scenario = self.scenario(vec![self.runner(program)], &frame);
        Ok(Scenario { expect: Expect::Refused, product: Some(product), ..scenario })
    }

    fn one(&self, frame: Frame, limits: Limits) -> Result<Scenario> {
        let product = Product::load(SMALL, limits)?;
        let program = product.program().try_clone_to_owned()?;
        let scenario = self.scenario(vec![self.runner(program)], &frame);
        let (begin, expect) = match limits.source {
            20 => (Begin::Same, Expect::Refused),
            _ => (Begin::Empty, Expect::Admitted),
        };
        Ok(Scenario { begin, expect, product: Some(product), ..scenario })
    }

    fn wrapped_bare(&self) -> Result<Scenario> {
        let bare = kernel::plain("bare", None)?;
        let (wrapper, table) = kernel::wrapper(Sources::random(20), bare)?;
        let scenario = self.scenario(vec![self.runner(wrapper)], &v4());
        Ok(Scenario { _tables: vec![table], ..scenario })
    }

    fn wrapped_parse_drop(&self) -> Result<Scenario> {
        let product = Product::load(SMALL, Limits::ALL_PASS)?;
        let program = kernel::plain("parse_drop", Some(&product.pins()))?;
        let (wrapper, table) = kernel::wrapper(Sources::random(20), program)?;
        let scenario = self.scenario(vec![self.runner(wrapper)], &v4());
        Ok(Scenario { product: Some(product), _tables: vec![table], ..scenario })
    }

    /// 2^`bits` random sources, each with its words in the table already.
    fn many(&self, bits: u32, limits: Limits) -> Result<Scenario> {
        let product = Product::load(MILLION, limits)?;
        let sources = Sources::random(bits);
        let (program, first) = kernel::wrapper(sources, product.program())?;
        let (filler, second) = kernel::wrapper(sources.each_once(), product.program())?;
        let scenario = self.scenario(vec![self.runner(program)], &v4());
        let (begin, expect) = match limits.prefix {
            200 => (Begin::Same, Expect::Anything),
            _ => (Begin::Empty, Expect::Admitted),
        };
        Ok(Scenario {
            warm: Some((self.runner(filler), 1 << bits)),
            begin,
            expect,
            product: Some(product),
            _tables: vec![first, second],
            ..scenario
        })
    }

    /// A source never seen before with each packet, over a table without a free slot.
    fn spoofed(&self) -> Result<Scenario> {
        let product = Product::load(MILLION, Limits::ALL_PASS)?;
        let (program, table) = kernel::wrapper(Sources::ALL_ONCE, product.program())?;
        let scenario = self.scenario(vec![self.runner(program)], &v4());
        let mut scenario = Scenario {
            begin: Begin::Anew,
            expect: Expect::Admitted,
            product: Some(product),
            _tables: vec![table],
            ..scenario
        };
        for _ in 0..20 {
            if scenario.fill() > Some(0.999) {
                break;
            }
            scenario.fill_up()?;
        }
        Ok(scenario)
    }

    /// Two CPUs at once, each with the 256 sources of one of these prefixes.
    fn two(&self, prefixes: [u32; 2]) -> Result<Scenario> {
        let product = Product::load(SMALL, Limits::ALL_PASS)?;
        let (runners, tables) = self.pair(prefixes, &product.program().try_clone_to_owned()?)?;
        let scenario = self.scenario(runners, &v4());
        Ok(Scenario {
            begin: Begin::Empty,
            expect: Expect::Admitted,
            product: Some(product),
            _tables: tables,
            ..scenario
        })
    }

    fn pair(&self, prefixes: [u32; 2], to: &OwnedFd) -> Result<(Vec<Runner>, Vec<OwnedFd>)> {
        ensure!(self.cpus.len() >= 2, "two CPUs are needed, {} may be used", self.cpus.len());
        let (mut runners, mut tables) = (Vec::new(), Vec::new());
        for (prefix, cpu) in prefixes.into_iter().zip(&self.cpus) {
            let (program, table) = kernel::wrapper(Sources::random(8).in_prefix(prefix), to)?;
            runners.push(Runner { program, cpu: *cpu });
            tables.push(table);
        }
        Ok((runners, tables))
    }

    fn yard(&self, program: &'static str, sources: Sources) -> Result<Scenario> {
        let product = Product::load(SMALL, Limits::ALL_PASS)?;
        let yard = kernel::yardstick(Yard { program, entries: YARD_ENTRIES }, &product.pins())?;
        let (wrapper, first) = kernel::wrapper(sources, &yard)?;
        let (filler, second) = kernel::wrapper(sources.each_once(), &yard)?;
        let filler = self.runner(filler);
        // Spoofed ones need every entry in use; of others, each its own.
        let fill = sources.count().min(u64::from(YARD_ENTRIES)) as u32;
        measure::run(std::slice::from_ref(&filler), &v4().build(), fill)?;
        let scenario = self.scenario(vec![self.runner(wrapper)], &v4());
        Ok(Scenario {
            expect: Expect::Admitted,
            product: Some(product),
            _tables: vec![first, second],
            ..scenario
        })
    }

    fn two_yard(&self, program: &'static str) -> Result<Scenario> {
        let product = Product::load(SMALL, Limits::ALL_PASS)?;
        let yard = kernel::yardstick(Yard { program, entries: YARD_ENTRIES }, &product.pins())?;
        let (runners, tables) = self.pair([0, 0], &yard)?;
        let scenario = self.scenario(runners, &v4());
        Ok(Scenario {
            expect: Expect::Admitted,
            product: Some(product),
            _tables: tables,
            ..scenario
        })
    }
}

impl Scenario {
    /// Runs packets through until the limits are nearly used up.
    fn fill_up(&mut self) -> Result<()> {
        const ALMOST_ALL: u32 = 3_900_000;
        if let Some(product) = &mut self.product {
            product.renew()?;
        }
        measure::run(&self.runners, &self.frame, ALMOST_ALL).map(drop)
    }
}
