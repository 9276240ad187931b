//! `cargo xtask test`: runs every tier of tests, cheapest first, goes on after a failure, and ends with
//! one line of totals. Tests are written elsewhere; this only starts them and adds up.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::process::{cargo, cargo_apart, find, is_root, line, say, target, tee};
use crate::setup::{self, Need};
use crate::tally::Tally;
use crate::{build, matrix};

/// Build everything and run all tests: host, kernel, network namespaces, loom, two other kernels
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A test that can't run fails, instead of saying why and passing
    #[arg(long)]
    strict: bool,
    /// Run only tests whose name contains one of these; leaves loom and other kernels out
    filters: Vec<String>,
}

/// Where the tests of the kernel program, network namespaces and the daemon live.
const KERNEL_TESTS: &str = "limiter-tests";
/// All but the crates of kernel programs, which only compile for BPF.
const WORKSPACE: [&str; 5] =
    ["--workspace", "--exclude", "limiter-ebpf", "--exclude", "limiter-bench-ebpf"];

/// One part of the run and how it ended.
struct Part {
    name: &'static str,
    tally: Tally,
    seconds: f32,
}

pub(crate) fn run(args: Args) -> Result<()> {
    setup::ensure(Need::Test)?;
    if !is_root() {
        say("not root: tests that load the program into the kernel can't run");
    }
    build::kernel_program()?;
    let daemon = build::daemon()?;
    let mut parts = vec![
        part("host", || tests(Which::Host, &args, &daemon))?,
        part("kernel", || tests(Which::Kernel, &args, &daemon))?,
    ];
    if args.filters.is_empty() {
        parts.push(part("loom", loom)?);
        parts.push(part("kernels", || matrix::for_test(args.strict))?);
    }
    summarize(&parts)
}

fn part(name: &'static str, run: impl FnOnce() -> Result<Tally>) -> Result<Part> {
    say(format!("── {name} tests ──"));
    let started = Instant::now();
    let tally = run()?;
    Ok(Part { name, tally, seconds: started.elapsed().as_secs_f32() })
}

fn summarize(parts: &[Part]) -> Result<()> {
    let mut total = Tally::default();
    println!();
    for Part { name, tally, seconds } in parts {
        println!("{name:<8} {seconds:>6.1} s   {tally}");
        total += *tally;
    }
    println!("{total}");
    match (total.failed, total.passed) {
        (0, 0) => bail!("no test ran"),
        (0, _) => Ok(()),
        _ => bail!("tests failed; the lines above name them"),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Without root and in parallel.
    Host,
    /// As root, one at a time: they share the kernel's namespaces, pins and CPUs.
    Kernel,
}

fn tests(which: Which, args: &Args, daemon: &Path) -> Result<Tally> {
    let skips = target("skipped-tests");
    let _ = fs::remove_file(&skips);
    let mut tally = Tally::default();
    for mut command in runners(which, &args.filters) {
        // Tests that need a daemon start the one just built, not some older debug build.
        command.env("LIMITER_BIN", daemon).env("LIMITER_SKIPS", &skips);
        if args.strict {
            command.env("LIMITER_STRICT", "1");
        }
        tally += count(&mut command)?;
    }
    tally.move_to_skipped(show_skips(&skips));
    Ok(tally)
}

fn runners(which: Which, filters: &[String]) -> Vec<Command> {
    match (find("cargo-nextest").is_some(), which) {
        (false, _) => vec![cargo_test(which, filters)],
        (true, Which::Host) => vec![nextest(which, filters), examples(filters)],
        (true, Which::Kernel) => vec![nextest(which, filters)],
    }
}

/// Both parts name the whole workspace and filter, so that they share one build.
fn nextest(which: Which, filters: &[String]) -> Command {
    let mut nextest = cargo("nextest");
    nextest.arg("run").args(WORKSPACE).args(["--no-fail-fast", "--no-tests", "pass"]);
    nextest.args(["--status-level", "fail", "--final-status-level", "slow"]);
    let not = if which == Which::Host { "not " } else { "" };
    nextest.arg("-E").arg(format!("{not}package({KERNEL_TESTS})")).args(filters);
    nextest
}

/// The examples in the documentation, which nextest leaves out.
fn examples(filters: &[String]) -> Command {
    let mut test = cargo("test");
    test.args(["--quiet", "--doc"]).args(WORKSPACE).arg("--").args(filters);
    test
}

fn cargo_test(which: Which, filters: &[String]) -> Command {
    let mut test = cargo("test");
    test.args(["--quiet", "--no-fail-fast"]);
    match which {
        Which::Host => test.args(WORKSPACE).args(["--exclude", KERNEL_TESTS, "--"]),
        Which::Kernel => test.args(["--package", KERNEL_TESTS, "--", "--test-threads=1"]),
    };
    test.args(filters);
    test
}

/// Every interleaving of the slot protocol with few preemptions.
fn loom() -> Result<Tally> {
    let mut loom = cargo_apart("test", "loom", "--cfg loom");
    loom.args(["--package", "limiter-common", "--test", "loom", "--release"]);
    count(&mut loom)
}

/// Runs a test runner and adds up its closing lines. One that fails without a failed test, because
/// something doesn't compile, say, counts as one failure.
fn count(command: &mut Command) -> Result<Tally> {
    let mut tally = Tally::default();
    let status = tee(command, |line| tally += Tally::of_runner(line).unwrap_or_default())?;
    if !status.success() && tally.failed == 0 {
        say(format!("`{}` ended with {status} before its tests did", line(command)));
        tally.failed = 1;
    }
    Ok(tally)
}

/// Prints why tests did not run, and how many those are. To their runner they passed.
fn show_skips(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|skip| say(format!("skipped: {skip}"))).count() as u64
}
