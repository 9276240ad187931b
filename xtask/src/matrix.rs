//! `cargo xtask matrix`: the kernel tests on other kernels, each in a virtual machine: which kernels,
//! what each must do, and what it did. Where kernels come from and how they boot is below.

mod archive;
mod cpio;
mod guest;
mod machine;

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};

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

/// The kernels that every test run boots: the oldest supported one and the newest.
const FOR_TEST: [&str; 2] = ["6.1", "newest"];

/// What became of one kernel.
enum Outcome {
    /// As wanted, in these words.
    AsWanted(String),
    /// Otherwise, in these words.
    Otherwise(String),
    /// There was no kernel to boot.
    NoKernel(anyhow::Error),
}

pub(crate) fn run(args: Args) -> Result<()> {
    setup::ensure(Need::Matrix)?;
    build::kernel_program()?;
    let asked = |kernel: &&Kernel| {
        args.kernels.is_empty() || args.kernels.iter().any(|name| name == kernel.name)
    };
    let tally = boot_all(KERNELS.iter().filter(asked), true)?;
    println!("{tally}");
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
    boot_all(kernels, strict)
}

/// Instructions that the oldest supported kernel's verifier looks at, of the program as it ships and of
/// the one that logs: the more of the two. Two kernel tests tell.
pub(crate) fn verified_on_oldest() -> Result<u32> {
    const TELLING: &str = "the_verifier_needs the_kernel_takes";
    setup::ensure(Need::Matrix)?;
    let tests = guest::build_tests()?;
    let oldest = KERNELS.iter().find(|kernel| kernel.name == FOR_TEST[0]);
    match oldest.map(|kernel| boot(kernel, &tests, TELLING)) {
        Some(Outcome::AsWanted(_)) => {}
        Some(Outcome::Otherwise(got)) => bail!("on Linux {}: {got}", FOR_TEST[0]),
        Some(Outcome::NoKernel(error)) => return Err(error),
        None => bail!("the matrix has no Linux {}", FOR_TEST[0]),
    }
    let console = target("matrix").join(FOR_TEST[0]).join(machine::CONSOLE);
    let Some(instructions) = verified(&fs::read_to_string(&console).unwrap_or_default()) else {
        bail!("the kernel tests no longer tell what the verifier did: see {}", console.display());
    };
    say(format!("Linux {} verifies {instructions} instructions", FOR_TEST[0]));
    Ok(instructions)
}

/// The largest of the figures that kernel tests print as "verified: N instructions".
fn verified(console: &str) -> Option<u32> {
    let told = console.lines().filter_map(|line| line.trim().strip_prefix("verified: "));
    let figures = told.filter_map(|told| {
        let digits =
            told.trim_start_matches("Some(").split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    });
    figures.max()
}

fn boot_all<'a>(kernels: impl Iterator<Item = &'a Kernel>, strict: bool) -> Result<Tally> {
    let tests = guest::build_tests()?;
    let mut tally = Tally::default();
    for kernel in kernels {
        let started = Instant::now();
        let outcome = boot(kernel, &tests, "");
        let failed = match &outcome {
            Outcome::AsWanted(_) => false,
            Outcome::Otherwise(_) => !kernel.moves,
            Outcome::NoKernel(_) => strict && !kernel.moves,
        };
        report(kernel, &outcome, failed, started);
        match outcome {
            Outcome::AsWanted(_) => tally.passed += 1,
            _ if failed => tally.failed += 1,
            _ => tally.skipped += 1,
        }
    }
    Ok(tally)
}

/// Runs the tests whose names contain one of these words; all, if there is none.
fn boot(kernel: &Kernel, tests: &Path, filters: &str) -> Outcome {
    let folder = target("matrix").join(kernel.name);
    if let Err(error) = archive::fetch(kernel.source, &folder) {
        return Outcome::NoKernel(error);
    }
    match guest::initramfs(&folder, tests, filters).and_then(|()| machine::boot(&folder)) {
        Ok(run) => judge(kernel.wanted, &run),
        Err(error) => Outcome::Otherwise(format!("{error:#}")),
    }
}

fn judge(wanted: Wanted, run: &machine::Run) -> Outcome {
    let Some(status) = run.status else {
        return Outcome::Otherwise("no verdict: it crashed, hung or ran out of time".into());
    };
    let tests = run.console.lines().rev().find_map(Tally::of_runner).unwrap_or_default();
    match wanted {
        Wanted::Passes if status == 0 && tests.passed > 0 && tests.failed == 0 => {
            Outcome::AsWanted(format!("{tests}"))
        }
        Wanted::Refusal(words) if status != 0 && run.console.contains(words) => {
            Outcome::AsWanted(format!("refused: {words}"))
        }
        _ => Outcome::Otherwise(format!("exit status {status}, {tests}")),
    }
}

fn report(kernel: &Kernel, outcome: &Outcome, failed: bool, started: Instant) {
    let folder = target("matrix").join(kernel.name);
    let release = fs::read_to_string(folder.join(archive::RELEASE)).unwrap_or_default();
    let (word, got) = match outcome {
        Outcome::AsWanted(got) => ("ok", got.clone()),
        Outcome::Otherwise(got) => (if failed { "FAILED" } else { "warned" }, got.clone()),
        Outcome::NoKernel(error) => {
            (if failed { "FAILED" } else { "skipped" }, format!("no kernel: {error:#}"))
        }
    };
    if matches!(outcome, Outcome::Otherwise(_)) {
        show_console(&folder);
    }
    let wanted = match kernel.wanted {
        Wanted::Passes => "passes",
        Wanted::Refusal(_) => "refusal",
    };
    let seconds = started.elapsed().as_secs_f32();
    println!(
        "{word:<7} {:<7} {release:<30} wanted: {wanted:<8} got: {got}; {seconds:.1} s",
        kernel.name
    );
}

/// The end of what the guest printed, and where the whole of it is.
fn show_console(folder: &Path) {
    let path = folder.join(machine::CONSOLE);
    let Ok(bytes) = fs::read(&path) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(30)..] {
        println!("    {line}");
    }
    println!("    (all of it: {})", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(status: Option<u8>, console: &str) -> machine::Run {
        machine::Run { status, console: console.into() }
    }

    fn is_as_wanted(wanted: Wanted, status: Option<u8>, console: &str) -> bool {
        matches!(judge(wanted, &run(status, console)), Outcome::AsWanted(_))
    }

    #[test]
    fn a_pass_needs_a_verdict_and_tests_that_ran() {
        let good = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert!(is_as_wanted(Wanted::Passes, Some(0), good));
        assert!(!is_as_wanted(Wanted::Passes, None, good));
        assert!(!is_as_wanted(Wanted::Passes, Some(101), good));
        assert!(!is_as_wanted(Wanted::Passes, Some(0), none));
    }

    #[test]
    fn the_largest_verified_program_counts() {
        let console = "verified: 7 instructions\r\nverified: Some(9) instructions\nverified: none";
        assert_eq!(verified(console), Some(9));
        assert_eq!(verified("nothing"), None);
    }

    #[test]
    fn a_refusal_must_be_for_the_known_reason() {
        let wanted = Wanted::Refusal("reserved fields");
        assert!(is_as_wanted(wanted, Some(101), "BPF_STX uses reserved fields"));
        assert!(!is_as_wanted(wanted, Some(101), "out of memory"));
        assert!(!is_as_wanted(wanted, Some(0), "BPF_STX uses reserved fields"));
    }
}
