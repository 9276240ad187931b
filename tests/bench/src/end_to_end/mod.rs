//! Packets per second over a veth pair, frames injected at full speed. Generator and receiver share a CPU,
//! so every figure contains the generator's own time: what a guard costs is its time above a bare drop.

mod guard;
mod stage;
mod time;

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

/// 2^`bits` sources from this address on, and packets enough that each of their prefixes gets its 200.
struct Count {
    bits: u32,
    first: Ipv4Addr,
    warm: u32,
}

const COUNTS: [Count; 3] = [
    Count { bits: 0, first: Ipv4Addr::new(10, 1, 0, 1), warm: 10_000 },
    Count { bits: 16, first: Ipv4Addr::new(10, 2, 0, 0), warm: 200_000 },
    Count { bits: 20, first: Ipv4Addr::new(11, 0, 0, 0), warm: 1_500_000 },
];

/// How much to measure.
#[derive(Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) rounds: u32,
    /// In each round, for each guard and number of sources.
    pub(crate) packets: u32,
    /// 2^this times fewer sources and packets to warm up, in whatever window: for a smoke test.
    pub(crate) shrink: u32,
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

/// Limiter with 1,048,576 sources over all of a window, its beginning included.
pub(crate) struct Whole {
    pub(crate) mpps: f64,
    pub(crate) passed: f64,
}

/// All guards, each behind a stage of its own.
pub(crate) struct Contest {
    lanes: Vec<Lane>,
    extent: Extent,
}

/// A guard and generators, by the number of sources.
struct Lane {
    kind: Kind,
    guard: Guard,
    stage: Stage,
    generators: Vec<OwnedFd>,
}

impl Kind {
    /// Whether it is measured with this number of sources: with few, next to nothing passes anyway.
    fn meets(self, count: usize) -> bool {
        Self::COMPARED.contains(&self) || count == COUNTS.len() - 1
    }
}

impl Contest {
    /// On this CPU.
    pub(crate) fn set_up(cpu: usize, extent: Extent) -> Result<Self> {
        let lanes = Kind::ALL.map(|kind| {
            Lane::set_up(kind, cpu, extent).with_context(|| format!("setting up {}", kind.name()))
        });
        Ok(Self { lanes: lanes.into_iter().collect::<Result<_>>()?, extent })
    }

    /// Measures all guards with all numbers of sources, round by round; then, if `whole`, one window of
    /// limiter from its beginning.
    pub(crate) fn measure(&self, whole: bool) -> Result<(Vec<Reached>, Option<Whole>)> {
        let mut runs: Vec<(Kind, usize, Sent)> = Vec::new();
        for _ in 0..self.extent.rounds {
            for count in 0..COUNTS.len() {
                for lane in self.lanes.iter().filter(|lane| lane.kind.meets(count)) {
                    let sent = lane.run(count, self.extent);
                    let sent = sent.with_context(|| format!("behind {}", lane.kind.name()))?;
                    runs.push((lane.kind, count, sent));
                }
            }
        }
        let by_cpu = time::softirqs_are_counted()
            .unwrap_or_else(|| runs.iter().any(|(_, _, sent)| sent.took.is_whole()));
        let reached = (0..COUNTS.len()).flat_map(|count| {
            let runs = &runs;
            Kind::ALL.into_iter().filter(move |kind| kind.meets(count)).map(move |kind| {
                let own = runs.iter().filter(|run| run.0 == kind && run.1 == count);
                let own: Vec<Sent> = own.map(|(_, _, sent)| *sent).collect();
                Reached::of(kind, 1 << COUNTS[count].bits, &own, by_cpu)
            })
        });
        let reached = reached.collect();
        Ok((reached, if whole { self.whole_window(by_cpu)? } else { None }))
    }

    fn whole_window(&self, by_cpu: bool) -> Result<Option<Whole>> {
        let lane = self.lanes.iter().find(|lane| lane.kind == Kind::Limiter);
        let Some((lane, left)) = lane.and_then(|lane| Some((lane, lane.guard.window_left()?)))
        else {
            return Ok(None);
        };
        thread::sleep(left);
        let mut all = lane.stage.send(&lane.generators[2], self.extent.packets)?;
        while lane.guard.window_left() > Some(Duration::from_millis(500)) {
            all.add(lane.stage.send(&lane.generators[2], self.extent.packets / 4)?);
        }
        Ok(Some(Whole { mpps: 1e3 / all.nanos(by_cpu), passed: all.passed_share() }))
    }
}

impl Lane {
    fn set_up(kind: Kind, cpu: usize, extent: Extent) -> Result<Self> {
        let stage = Stage::set_up(cpu)?;
        let guard = Guard::set_up(kind, &stage)?;
        let generators = COUNTS
            .iter()
            .map(|count| {
                let bits = count.bits.saturating_sub(extent.shrink);
                stage.generator(Sources::random(bits).from(count.first))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { kind, guard, stage, generators })
    }

    /// Warms up and measures, within one window: at its beginning, packets pass until limits are used up,
    /// and a packet that passes costs far more, further up.
    fn run(&self, count: usize, extent: Extent) -> Result<Sent> {
        /// On a busy machine a slice may be slower than its window; then the share that passed tells.
        const TRIES: u32 = 3;
        let mut tries = 0;
        loop {
            self.await_room(extent);
            let left = self.guard.window_left();
            let generator = &self.generators[count];
            self.stage.send(generator, COUNTS[count].warm >> extent.shrink)?;
            let sent = self.stage.send(generator, extent.packets)?;
            tries += 1;
            if self.guard.window_left() <= left || tries == TRIES {
                return Ok(sent);
            }
        }
    }

    /// Waits for the next window, if there is little left of this one.
    fn await_room(&self, extent: Extent) {
        const NEEDED: Duration = Duration::from_secs(5);
        let short = self.guard.window_left().filter(|left| *left < NEEDED);
        if let (Some(left), 0) = (short, extent.shrink) {
            thread::sleep(left);
        }
    }
}

impl Reached {
    fn of(kind: Kind, sources: u64, runs: &[Sent], by_cpu: bool) -> Self {
        let rounds = |of: &dyn Fn(&Sent) -> f64| Figure::new(runs.iter().map(of).collect());
        let mean = |of: fn(&Sent) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        Self {
            kind,
            sources,
            mpps: rounds(&|sent| 1e3 / sent.nanos(by_cpu)),
            nanos: rounds(&|sent| sent.nanos(by_cpu)),
            passed: mean(Sent::passed_share),
            delivered: mean(Sent::delivered_share),
        }
    }
}
