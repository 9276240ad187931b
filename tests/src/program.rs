//! The kernel program under test: loaded into this kernel with maps of its own and the test clock,
//! run packet by packet with `BPF_PROG_TEST_RUN`. Nothing is attached or pinned.

mod ready;
mod run;
mod spray;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use limiter_common::counters::RuleCount;
use limiter_userspace::datapath::{Datapath, Options, Pins};
use limiter_userspace::policy::Policy;
use limiter_userspace::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};
use limiter_userspace::telemetry::counts::Counts;

use ready::Ready;
pub use run::{Action, on_cpu};
pub use spray::Spray;

/// 2026-01-01T00:00:00Z in milliseconds: the edge of every window length in use here.
pub const START_MS: u64 = 1_767_225_600_000;

/// Packets by counter, only those above 0. The names: `admitted`, `refused` … (exits), `fault cut-off`,
/// `rule NAME passed`, `rule NAME refused source`, `rule NAME would refuse prefix` …
pub type Changes = BTreeMap<String, u64>;

/// The program, a policy and a clock. Whoever makes one stays on the first CPU from then on, but in
/// [`on_cpu`]: tickets belong to one CPU, so what a packet meets depends on where it runs.
pub struct Program {
    datapath: Datapath,
    version: u64,
    now_ms: u64,
    ready: OnceLock<Ready>,
}

impl Program {
    /// Loads the program without a policy; the clock shows [`START_MS`].
    ///
    /// # Panics
    /// If the kernel refuses it: the test has failed then.
    #[must_use]
    pub fn load() -> Self {
        Self::with_buckets(1 << 10)
    }

    /// The same with a table of this many buckets, a power of two.
    ///
    /// # Panics
    /// As [`Program::load`].
    #[must_use]
    pub fn with_buckets(buckets: u32) -> Self {
        let options = Options { buckets, test_clock: true, ..Options::default() };
        let datapath = Datapath::private(options).unwrap_or_else(|error| panic!("{error}"));
        run::stay_on_cpu(0);
        let mut program = Self { datapath, version: 0, now_ms: 0, ready: OnceLock::new() };
        program.at(0);
        program
    }

    /// Loads the program onto maps that are pinned there, and pins what isn't yet, as a daemon would.
    ///
    /// # Panics
    /// As [`Program::load`].
    #[must_use]
    pub fn pinned(pins: &Pins) -> Self {
        let options = Options { buckets: 1 << 10, test_clock: true, ..Options::default() };
        let opened = Datapath::open(pins, options).unwrap_or_else(|error| panic!("{error}"));
        run::stay_on_cpu(0);
        let mut program =
            Self { datapath: opened.0, version: 0, now_ms: 0, ready: OnceLock::new() };
        program.at(0);
        program
    }

    /// Loads the program and puts a policy in force.
    ///
    /// # Panics
    /// As [`Program::load`] and [`Program::apply`].
    #[must_use]
    pub fn with_policy(policy: &str) -> Self {
        let mut program = Self::load();
        program.apply(policy);
        program
    }

    /// Puts a policy in force, as a daemon would.
    ///
    /// # Panics
    /// If it has mistakes.
    pub fn apply(&mut self, policy: &str) {
        let checked = Policy::parse(policy).unwrap_or_else(|problems| panic!("{problems}"));
        let entries = self.datapath.registry().unwrap_or_else(|error| panic!("{error}"));
        let registry = Registry::from_entries(&entries, self.datapath.next_rule_id());
        self.version += 1;
        let now = UnixNanos(self.now_ms * 1_000_000);
        let snapshot = Snapshot::compile(
            &checked.policy,
            &registry,
            &ModeOverrides::default(),
            self.version,
            now,
        )
        .unwrap_or_else(|error| panic!("{error}"));
        self.datapath.install(&snapshot).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Sets the clock to this many milliseconds after [`START_MS`].
    ///
    /// # Panics
    /// If the map can't be written.
    pub fn at(&mut self, milliseconds: u64) {
        self.now_ms = START_MS + milliseconds;
        self.datapath
            .set_test_clock(self.now_ms * 1_000_000)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Runs the program on a frame, on the calling thread's CPU. No counter is looked at.
    ///
    /// # Panics
    /// If the kernel refuses the frame (below 14 bytes).
    #[must_use]
    pub fn run(&self, frame: &[u8]) -> Action {
        run::once(self.datapath.program(), frame)
    }

    /// Runs the program on a frame this many times and says how often it passed.
    ///
    /// # Panics
    /// As [`Program::run`].
    #[must_use]
    pub fn passes(&self, frame: &[u8], times: usize) -> usize {
        self.runner().passes(frame, times)
    }

    /// Runs the program on a frame this many times (above 0) in one call, which is ten times as fast as
    /// [`Program::passes`]; the answer to the last one.
    ///
    /// # Panics
    /// As [`Program::run`].
    pub fn flood(&self, frame: &[u8], times: u32) -> Action {
        let keep = || {
            Ready::keep(self.datapath.program()).unwrap_or_else(|error| panic!("attach: {error}"))
        };
        let _ = self.ready.get_or_init(keep);
        run::repeated(self.datapath.program(), frame, times)
    }

    /// Something that runs the program on frames of ever new sources.
    ///
    /// # Panics
    /// If the kernel refuses it.
    #[must_use]
    pub fn spray(&self) -> Spray {
        Spray::before(self.datapath.program()).unwrap_or_else(|error| panic!("spray: {error}"))
    }

    /// Runs the program on a frame and compares its answer, and **every** counter: those named change
    /// by as many packets as said (and by their bytes), all others not at all.
    ///
    /// # Panics
    /// If anything differs.
    #[track_caller]
    pub fn expect(&self, frame: &[u8], action: Action, changes: &[(&str, u64)]) {
        let before = self.counts();
        let got = self.run(frame);
        let (packets, bytes) = differences(&before, &self.counts());
        let expected: Changes = changes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!((got, &packets), (action, &expected));
        let length = u64::try_from(frame.len()).unwrap_or(u64::MAX);
        let expected: Changes = expected.into_iter().map(|(name, n)| (name, n * length)).collect();
        assert_eq!(bytes, expected, "bytes");
    }

    /// The program alone, to be run from several threads at once.
    #[must_use]
    pub fn runner(&self) -> Runner<'_> {
        Runner(self.datapath.program())
    }

    /// The same while the policy changes: it has the program open by itself.
    ///
    /// # Panics
    /// If the process has too many files open.
    #[must_use]
    pub fn runner_owned(&self) -> OwnedRunner {
        let program = self.datapath.program().try_clone_to_owned();
        OwnedRunner(program.unwrap_or_else(|error| panic!("{error}")))
    }

    /// All counters.
    ///
    /// # Panics
    /// If they can't be read.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.datapath.counts().unwrap_or_else(|error| panic!("{error}"))
    }

    /// The open maps, for what this kit has no word for.
    #[must_use]
    pub fn datapath(&self) -> &Datapath {
        &self.datapath
    }
}

/// A loaded program that any thread can run.
#[derive(Clone, Copy)]
pub struct Runner<'a>(BorrowedFd<'a>);

impl Runner<'_> {
    /// As [`Program::passes`].
    ///
    /// # Panics
    /// As [`Program::run`].
    #[must_use]
    pub fn passes(self, frame: &[u8], times: usize) -> usize {
        (0..times).filter(|_| run::once(self.0, frame) == Action::Pass).count()
    }
}

/// As [`Runner`], but apart from the [`Program`].
pub struct OwnedRunner(OwnedFd);

impl OwnedRunner {
    /// As [`Program::passes`].
    ///
    /// # Panics
    /// As [`Program::run`].
    #[must_use]
    pub fn passes(&self, frame: &[u8], times: usize) -> usize {
        Runner(self.0.as_fd()).passes(frame, times)
    }
}

/// What changed, in packets and in bytes.
#[must_use]
pub fn differences(before: &Counts, after: &Counts) -> (Changes, Changes) {
    let (old, mut packets, mut bytes) = (flat(before), Changes::new(), Changes::new());
    for (name, (new_packets, new_bytes)) in flat(after) {
        let (old_packets, old_bytes) = old.get(&name).copied().unwrap_or_default();
        if new_packets != old_packets {
            packets.insert(name.clone(), new_packets - old_packets);
        }
        if new_bytes != old_bytes {
            bytes.insert(name, new_bytes - old_bytes);
        }
    }
    (packets, bytes)
}

fn flat(counts: &Counts) -> BTreeMap<String, (u64, u64)> {
    let exits = counts.exits.iter().map(|(exit, count)| (exit.name().to_owned(), count));
    let faults =
        counts.faults.iter().map(|(fault, count)| (format!("fault {}", fault.name()), count));
    let rules = counts.rules.iter().flat_map(|rule| {
        let name = &rule.name;
        rule.counts
            .iter()
            .map(move |(what, count)| (format!("rule {name} {}", words(*what)), count))
    });
    exits
        .chain(faults)
        .chain(rules)
        .map(|(name, count)| (name, (count.packets, count.bytes)))
        .collect()
}

fn words(count: RuleCount) -> String {
    match count {
        RuleCount::Passed => "passed".to_owned(),
        RuleCount::Refused(level) => format!("refused {}", level.name()),
        RuleCount::WouldRefuse(level) => format!("would refuse {}", level.name()),
        RuleCount::Crowded(level) => format!("crowded {}", level.name()),
        RuleCount::Displaced(level) => format!("displaced {}", level.name()),
        RuleCount::Contended => "contended".to_owned(),
    }
}
