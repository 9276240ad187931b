//! `cargo xtask bench`: builds the product, the bench's own kernel programs and the bench, and runs it.
//! What is measured, and how, is written in `tests/bench`.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{built_program, cargo, is_root, root, run as run_program, target};
use crate::setup::{self, Need};
use crate::{build, matrix};

/// Measure limiter and what it is compared with: `cargo xtask bench --help`
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Handed to the bench
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The bench's own kernel programs, below `target`.
const OBJECT: &str = "bench.o";

/// With one of these the bench doesn't judge the oldest kernel, or measures nothing at all.
const WITHOUT_OLDEST: [&str; 6] = ["--quick", "--only", "--from", "--help", "-h", "--no-floors"];

pub(crate) fn run(args: Args) -> Result<()> {
    if !is_root() {
        bail!("the bench loads programs into the kernel: run it as root");
    }
    setup::ensure(Need::Bench)?;
    build::kernel_program()?;
    build::kernel_object("limiter-bench-ebpf", OBJECT)?;
    let mut cargo = cargo("build");
    cargo.args(["--release", "--quiet", "--package", "limiter-bench"]);
    let bench = built_program(&mut cargo).context("the bench does not compile")?;
    let mut bench = Command::new(bench);
    bench.env("LIMITER_BENCH_OBJECT", target(OBJECT)).current_dir(root());
    if !args.arguments.iter().any(|it| WITHOUT_OLDEST.iter().any(|no| it.starts_with(no))) {
        let oldest = matrix::verified_on_oldest()
            .context("without the oldest kernel: cargo xtask bench --no-floors")?;
        bench.env("LIMITER_BENCH_INSNS_OLDEST", oldest.to_string());
    }
    run_program(bench.args(args.arguments))
}
