//! `cargo xtask ci`: what must hold before a change is taken, in order, up to the first failure. It runs
//! the same commands that people run; it has no checks of its own.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::build::kernel_cargo;
use crate::process::{capture, cargo, check, line, root, run as run_program, say, tee};
use crate::setup::{self, DEBIAN_CLIPPY, Need, Toolchain, toolchain};
use crate::tally::Tally;

/// Everything that a change must pass: style, lints, licences, docs, all tests, the demo
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> Result<()> {
    let started = Instant::now();
    step("setup", || setup::ensure(Need::Ci))?;
    step("fmt", || run_program(cargo("fmt").args(["--all", "--check"])))?;
    step("clippy", || {
        run_program(deny_warnings(cargo("clippy").args(HOST_CRATES).arg("--all-targets")))
    })?;
    step("clippy, kernel crates", || {
        let crates = ["limiter-ebpf", "limiter-bench-ebpf"];
        crates.iter().try_for_each(|it| run_program(deny_warnings(&mut kernel_clippy(it)?)))
    })?;
    step("deny", || {
        run_program(cargo("deny").args([
            "check",
            "--hide-inclusion-graph",
            "bans",
            "licenses",
            "sources",
        ]))
    })?;
    step("docs", docs)?;
    let mut total = None;
    step("tests", || tests(&mut total))?;
    step("demo", demo)?;
    step("bench, as a smoke test", bench)?;
    say(format!("all steps passed in {:.0} s", started.elapsed().as_secs_f32()));
    // Last, because what reads CI's output reads its end.
    println!("{}", total.unwrap_or_default());
    Ok(())
}

/// All but the crates of kernel programs, which only compile for BPF.
const HOST_CRATES: [&str; 5] =
    ["--workspace", "--exclude", "limiter-ebpf", "--exclude", "limiter-bench-ebpf"];

fn step(name: &str, run: impl FnOnce() -> Result<()>) -> Result<()> {
    say(format!("── {name} ──"));
    let started = Instant::now();
    let done = run();
    let seconds = started.elapsed().as_secs_f32();
    let word = if done.is_ok() { "ok" } else { "FAILED" };
    say(format!("{name}: {word}, {seconds:.1} s"));
    done.with_context(|| format!("CI stops at the step `{name}`"))
}

fn deny_warnings(clippy: &mut Command) -> &mut Command {
    clippy.args(["--", "--deny", "warnings"])
}

fn kernel_clippy(package: &str) -> Result<Command> {
    let mut clippy = kernel_cargo("clippy", package)?;
    if toolchain() == Toolchain::Debian {
        // Clippy and compiler must be of one build: rustup's can't check for Debian's.
        let mut debian = Command::new(DEBIAN_CLIPPY);
        debian.args(clippy.get_args()).current_dir(root());
        for (key, value) in clippy.get_envs() {
            match value {
                Some(value) => debian.env(key, value),
                None => debian.env_remove(key),
            };
        }
        clippy = debian;
    }
    clippy.args(["--features", "kernel", "--profile", "kernel"]);
    Ok(clippy)
}

fn docs() -> Result<()> {
    let mut doc = cargo("doc");
    doc.args(HOST_CRATES).args(["--no-deps", "--document-private-items"]);
    run_program(doc.env("RUSTDOCFLAGS", "--deny warnings"))
}

/// The README's test command, where nothing may be skipped.
fn tests(total: &mut Option<Tally>) -> Result<()> {
    let mut test = cargo("xtask");
    test.args(["test", "--strict"]);
    let status = tee(&mut test, |line| *total = Tally::of_total(line).or(*total))?;
    check(&test, status)
}

/// The demo's own verdict on real traffic.
fn demo() -> Result<()> {
    let mut demo = cargo("xtask");
    demo.args(["demo", "--seconds", "25", "--json"]);
    let printed = capture(demo.stderr(Stdio::inherit()))?;
    let last = printed.lines().last().unwrap_or_default();
    println!("{last}");
    let verdict: serde_json::Value =
        serde_json::from_str(last).context("the demo's last line is not JSON")?;
    if verdict["ok"] != true {
        bail!("`{}` ran, and its verdict is not ok", line(&demo));
    }
    Ok(())
}

/// That everything can still be measured; figures of a busy machine say nothing.
fn bench() -> Result<()> {
    let mut bench = cargo("xtask");
    bench.args(["bench", "--quick", "--json"]);
    let printed = capture(bench.stderr(Stdio::inherit()))?;
    let report: serde_json::Value =
        serde_json::from_str(printed.trim()).context("what the bench printed is not JSON")?;
    let missing: Vec<_> = ["test_run_ns", "yardstick_ns", "end_to_end_mpps"]
        .into_iter()
        .filter(|part| report[*part].as_object().is_none_or(|it| it.values().any(has_gap)))
        .collect();
    if !missing.is_empty() {
        bail!("the bench measured only some of {}", missing.join(" and "));
    }
    Ok(())
}

/// Whether a figure is missing, or one of those by guard.
fn has_gap(figure: &serde_json::Value) -> bool {
    match figure.as_object() {
        Some(by_guard) => by_guard.values().any(|it| !it.is_number()),
        None => !figure.is_number(),
    }
}
