//! `cargo xtask COMMAND`: picks the command and reports how it ended. One file per command; what a
//! command does is written there and nowhere else.

mod bench;
mod build;
mod ci;
mod demo;
mod fuzz;
mod matrix;
mod process;
mod setup;
mod tally;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The workspace's own commands. `cargo xtask test` is all that most people need.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Setup(setup::Args),
    Build(build::Args),
    Test(test::Args),
    Matrix(matrix::Args),
    Fuzz(fuzz::Args),
    Ci(ci::Args),
    Demo(demo::Args),
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Setup(args) => setup::run(args),
        Command::Build(args) => build::run(args),
        Command::Test(args) => test::run(args),
        Command::Matrix(args) => matrix::run(args),
        Command::Fuzz(args) => fuzz::run(args),
        Command::Ci(args) => ci::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Bench(args) => bench::run(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
