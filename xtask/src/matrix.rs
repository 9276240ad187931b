//! `cargo xtask matrix`: the kernel tests on other kernels, each in a virtual machine: which kernels,
//! what each must do, and what it did. Where kernels come from and how they boot is below.

mod archive;
mod cpio;
mod guest;
mod machine;
mod outcome;

use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{fs, thread};

use anyhow::{Result, bail};

use self::outcome::{End, Outcome, Row, json, judge, report, tally, word};
use crate::build;
use crate::process::{say, target};
use crate::setup::{self, Need};
use crate::tally::Tally;

/// Run the kernel tests on other kernels, in virtual machines
///
/// Kernels come from Debian's archive and stay in target/matrix; one older than a day is looked up
/// again. Times under emulation mean nothing.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// 5.10, 6.1, 6.12 or newest; all of them if none is named
    #[arg(value_parser = KERNELS.map(|kernel| kernel.name))]
    kernels: Vec<String>,
    /// Only tests whose names contain one of these words
    #[arg(long, value_name = "WORD")]
    tests: Vec<String>,
    /// What became of each, as one line of JSON
    #[arg(long)]
    json: bool,
}

struct Kernel {
    name: &'static str,
    /// Debian's archive and its suite.
    source: (&'static str, &'static str),
    wanted: Wanted,
    /// What comes from a suite that moves can break without a change of ours: that only warns.
    moves: bool,
}

#[derive(Clone, Copy)]
enum Wanted {
    Passes,
    /// The program is refused, and the kernel says this.
    Refusal(&'static str),
}

impl Wanted {
    const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Refusal(_) => "refusal",
        }
    }
}

const KERNELS: [Kernel; 4] = [
    Kernel {
        name: "5.10",
        source: ("debian-security", "bullseye-security"),
        // It knows neither packets in several buffers (5.18) nor atomic compare-and-swap (5.12). The
        // first is found before its verifier has a word to say.
        wanted: Wanted::Refusal("Invalid argument (os error 22)"),
        moves: false,
    },
    Kernel {
        name: "6.1",
        source: ("debian-security", "bookworm-security"),
        wanted: Wanted::Passes,
        moves: false,
    },
    Kernel {
        name: "6.12",
        source: ("debian-security", "trixie-security"),
        wanted: Wanted::Passes,
        moves: false,
    },
    Kernel { name: "newest", source: ("debian", "sid"), wanted: Wanted::Passes, moves: true },
];

/// The kernels that every test run boots: those that are supported and don't move.
const FOR_TEST: [&str; 2] = ["6.1", "6.12"];

/// Machines at once. Each has two processors, but spends part of its time on one.
const AT_ONCE: usize = 2;

pub(crate) fn run(args: Args) -> Result<()> {
    setup::ensure(Need::Matrix)?;
    build::kernel_program()?;
    let asked = |kernel: &&Kernel| {
        args.kernels.is_empty() || args.kernels.iter().any(|name| name == kernel.name)
    };
    let rows = boot_all(KERNELS.iter().filter(asked), true, &args.tests.join(" "))?;
    let tally = tally(&rows);
    if args.json {
        println!("{}", json(&rows));
    } else {
        println!("{tally}");
    }
    if tally.failed > 0 {
        bail!("the kernel program does not do what it should on every kernel; see above");
    }
    Ok(())
}

/// The part of `cargo xtask test`. Where no other kernel can be had, it is skipped unless `strict`.
pub(crate) fn for_test(strict: bool) -> Result<Tally> {
    if let Err(error) = setup::ensure(Need::Matrix) {
        if strict {
            return Err(error);
        }
        say(format!("other kernels are skipped: {error:#}"));
        return Ok(Tally { skipped: 2, ..Tally::default() });
    }
    let kernels = KERNELS.iter().filter(|kernel| FOR_TEST.contains(&kernel.name));
    Ok(tally(&boot_all(kernels, strict, "")?))
}

/// Instructions that the oldest supported kernel's verifier looks at, of the program as it ships and of
/// the one that logs: the more of the two. Two kernel tests tell.
pub(crate) fn verified_on_oldest() -> Result<u32> {
    const TELLING: &str = "the_verifier_needs the_kernel_takes";
    setup::ensure(Need::Matrix)?;
    let tests = guest::build_tests()?;
    let Some(oldest) = KERNELS.iter().find(|kernel| kernel.name == FOR_TEST[0]) else {
        bail!("the matrix has no Linux {}", FOR_TEST[0]);
    };
    let fetched = archive::fetch(oldest.source, &oldest.folder());
    let outcome = boot(oldest, fetched, &tests, TELLING);
    match outcome.instructions {
        Some(instructions) => Ok(instructions),
        None => bail!("Linux {} doesn't tell what its verifier did: {}", oldest.name, outcome.got),
    }
}

fn boot_all(
    kernels: impl Iterator<Item = &'static Kernel>,
    strict: bool,
    filters: &str,
) -> Result<Vec<Row>> {
    let tests = guest::build_tests()?;
    let kernels: Vec<&Kernel> = kernels.collect();
    let mut rows = Vec::new();
    for some in kernels.chunks(AT_ONCE) {
        for (kernel, outcome) in boot_some(some, &tests, filters) {
            let word = word(kernel, outcome.end, strict);
            report(kernel, &outcome, word);
            rows.push((kernel, outcome, word));
        }
    }
    Ok(rows)
}

/// Boots these at once.
fn boot_some(
    kernels: &[&'static Kernel],
    tests: &Path,
    filters: &str,
) -> impl Iterator<Item = (&'static Kernel, Outcome)> {
    // One apt at a time.
    let fetched: Vec<Result<()>> =
        kernels.iter().map(|kernel| archive::fetch(kernel.source, &kernel.folder())).collect();
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let boot = |(kernel, fetched)| scope.spawn(move || boot(kernel, fetched, tests, filters));
        let machines: Vec<_> = kernels.iter().copied().zip(fetched).map(boot).collect();
        let crashed = |_| Outcome::new(End::Otherwise, "xtask itself crashed");
        machines.into_iter().map(|machine| machine.join().unwrap_or_else(crashed)).collect()
    });
    kernels.iter().copied().zip(outcomes)
}

fn boot(kernel: &Kernel, fetched: Result<()>, tests: &Path, filters: &str) -> Outcome {
    if let Err(error) = fetched {
        return Outcome::new(End::NoKernel, format!("no kernel: {error:#}"));
    }
    let (folder, started) = (kernel.folder(), Instant::now());
    let mut outcome =
        match guest::initramfs(&folder, tests, filters).and_then(|()| machine::boot(&folder)) {
            Ok(run) => judge(kernel.wanted, &run),
            Err(error) => Outcome::new(End::Otherwise, format!("{error:#}")),
        };
    outcome.seconds = started.elapsed().as_secs_f32();
    outcome
}

impl Kernel {
    fn folder(&self) -> PathBuf {
        target("matrix").join(self.name)
    }

    /// The text that `uname -r` prints there, once it was fetched.
    fn release(&self) -> String {
        fs::read_to_string(self.folder().join(archive::RELEASE)).unwrap_or_default()
    }
}
