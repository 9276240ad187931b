//! Packets per second over a veth pair, frames injected at full speed. Generator and receiver share a CPU,
//! so every figure contains the generator's own time: what a guard costs is its time above a bare drop.

mod guard;
mod stage;

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::kernel::Sources;
use crate::rounds::Figure;
use guard::Guard;
pub(crate) use guard::Kind;
use stage::{Sent, Stage};

/// Sources in 2^…, first address, packets before measuring: enough to use up every prefix's 200.
const COUNTS: [(u32, Ipv4Addr, u32); 3] = [
    (0, Ipv4Addr::new(10, 1, 0, 1), 100_000),
    (16, Ipv4Addr::new(10, 2, 0, 0), 500_000),
    (20, Ipv4Addr::new(11, 0, 0, 0), 4_000_000),
];

/// A guard behind a stage, and generators by the number of sources.
struct Contest {
    kind: Kind,
    guard: Guard,
    stage: Stage,
    generators: Vec<OwnedFd>,
}

/// What one guard reached with one number of sources.
pub(crate) struct Reached {
    pub(crate) kind: Kind,
    pub(crate) sources: u64,
    /// Million packets per second.
    pub(crate) mpps: Figure,
    /// Nanoseconds per packet, the generator's included.
    pub(crate) nanos: Figure,
    /// Of what arrived.
    pub(crate) passed: f64,
    /// Of what was sent.
    pub(crate) delivered: f64,
}

/// Measures all guards with all numbers of sources, `rounds` times.
pub(crate) fn measure(cpu: usize, rounds: u32, packets: u32) -> Result<Vec<Reached>> {
    let contests = Kind::ALL.map(|kind| {
        Contest::set_up(kind, cpu).with_context(|| format!("setting up {}", kind.name()))
    });
    let contests = contests.into_iter().collect::<Result<Vec<_>>>()?;
    let mut runs: Vec<(Kind, usize, Sent)> = Vec::new();
    for _ in 0..rounds {
        for count in 0..COUNTS.len() {
            for contest in &contests {
                runs.push((contest.kind, count, contest.run(count, packets)?));
            }
        }
    }
    let mut reached = Vec::new();
    for (count, (bits, _, _)) in COUNTS.into_iter().enumerate() {
        for kind in Kind::ALL {
            let own = runs.iter().filter(|run| run.0 == kind && run.1 == count);
            let own: Vec<Sent> = own.map(|(_, _, sent)| *sent).collect();
            reached.push(Reached::of(kind, 1 << bits, &own, packets));
        }
    }
    Ok(reached)
}

impl Contest {
    fn set_up(kind: Kind, cpu: usize) -> Result<Self> {
        let stage = Stage::set_up(cpu)?;
        let guard = Guard::set_up(kind, &stage)?;
        let generators = COUNTS
            .into_iter()
            .map(|(bits, first, _)| stage.generator(Sources::random(bits).from(first)))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { kind, guard, stage, generators })
    }

    /// Warms up and measures, within one window: the first packets of a window pass and cost more than a
    /// microsecond each, further up.
    fn run(&self, count: usize, packets: u32) -> Result<Sent> {
        const NEEDED: Duration = Duration::from_secs(4);
        if let Some(left) = self.guard.window_left().filter(|left| *left < NEEDED) {
            thread::sleep(left);
        }
        let generator = &self.generators[count];
        self.stage.send(generator, COUNTS[count].2)?;
        self.stage.send(generator, packets)
    }
}

impl Reached {
    fn of(kind: Kind, sources: u64, runs: &[Sent], packets: u32) -> Self {
        let rounds = |of: fn(&Sent) -> f64| Figure::new(runs.iter().map(of).collect());
        let sum = |of: fn(&Sent) -> u64| runs.iter().map(of).sum::<u64>() as f64;
        let delivered = sum(|sent| sent.delivered);
        Self {
            kind,
            sources,
            mpps: rounds(|sent| sent.delivered as f64 / sent.seconds / 1e6),
            nanos: rounds(|sent| sent.seconds * 1e9 / sent.delivered as f64),
            passed: sum(|sent| sent.passed) / delivered,
            delivered: delivered / (f64::from(packets) * runs.len() as f64),
        }
    }
}
