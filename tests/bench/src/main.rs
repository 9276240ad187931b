//! `cargo xtask bench`: measures limiter, and what it is compared with, on this machine. It uses the
//! product as it is and is itself in no product.

mod end_to_end;
mod kernel;
mod machine;
mod measure;
mod product;
mod report;
mod rounds;
mod scenario;
mod setup;
mod stack;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use clap::Parser;
use serde_json::Value;

use end_to_end::{Contest, Extent, Reached, Whole};
use machine::Machine;
use report::{Found, Verifier, docs, floors, tables};
use rounds::Figures;
use scenario::Scenario;
use setup::Setup;

/// Measure limiter and what it is compared with
///
/// Takes about ten minutes, both CPUs, and 7 GiB of memory. Other work on the machine spoils the figures.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", max_term_width = 100)]
struct Args {
    /// Print the report as one line of JSON; tables go to stderr
    #[arg(long)]
    json: bool,
    /// A smoke test: few packets, small tables, floors not judged; the figures mean nothing
    #[arg(long)]
    quick: bool,
    /// Only these, by name; `end-to-end` is the part over veth
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Rounds; each measures everything once
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Packets of a slice
    #[arg(
        long,
        default_value_t = 2_000_000,
        value_parser = clap::value_parser!(u32).range(1_000..=setup::MOST_PACKETS),
    )]
    packets: u32,
    /// Succeed even if a floor is broken
    #[arg(long)]
    no_floors: bool,
    /// Write the figures and the chart into docs/
    #[arg(long)]
    docs: bool,
    /// Measure nothing: take this report, as --json printed it
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Of a smoke test: tables 2^this times smaller, and this many rounds and packets.
const QUICK_SHRINK: u32 = 5;
const QUICK_ROUNDS: u32 = 2;
const QUICK_PACKETS: u32 = 50_000;

/// What all of it takes, in MiB: each scenario has tables of its own, so that none disturbs another.
const MEMORY: u64 = 7 * 1024;

/// The part over veth, among the names of scenarios.
const END_TO_END: &str = "end-to-end";

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: Args) -> Result<ExitCode> {
    if args.quick {
        (args.rounds, args.packets) = (QUICK_ROUNDS, QUICK_PACKETS);
    }
    let report = match &args.from {
        Some(path) => {
            let text = fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            serde_json::from_str(&text)
                .with_context(|| format!("{} is no report", path.display()))?
        }
        None => measured(&args)?,
    };
    tell(&args, &report);
    if args.docs {
        docs::write(&report)?;
    }
    let broken = if args.quick || args.no_floors { Vec::new() } else { floors::broken(&report) };
    if broken.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("bench: broken floors: {}", broken.join("; "));
    Ok(ExitCode::FAILURE)
}

fn measured(args: &Args) -> Result<Value> {
    product::sweep();
    let chosen = choose(&args.only)?;
    let everything = args.only.is_empty() && !args.quick;
    if let Some(available) = machine::available_memory().filter(|it| everything && *it < MEMORY) {
        bail!("{MEMORY} MiB of memory are needed, {available} are there; measure in parts: --only");
    }
    let shrink = if args.quick { QUICK_SHRINK } else { 0 };
    let setup = Setup::new(args.packets, shrink)?;
    let machine = Machine::this();
    let (figures, table_bytes) = by_test_run(args, &setup, &chosen)?;
    let (end_to_end, whole) = over_veth(args, setup.cpu(), shrink)?;
    let found = Found {
        figures: &figures,
        end_to_end: &end_to_end,
        whole: whole.as_ref(),
        verifier: verifier()?,
        table_bytes,
        machine: &machine,
        quick: args.quick,
    };
    Ok(found.to_json())
}

type Chosen = Vec<(&'static str, setup::Make)>;

fn choose(only: &[String]) -> Result<Chosen> {
    let all = setup::ALL;
    let known: Vec<&str> = all.iter().map(|(name, _)| *name).chain([END_TO_END]).collect();
    if let Some(unknown) = only.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("nothing to measure is named `{unknown}`; there are {}", known.join(", "));
    }
    let is_chosen = |name: &str| only.is_empty() || only.iter().any(|it| it == name);
    Ok(all.into_iter().filter(|(name, _)| is_chosen(name)).collect())
}

/// Figures, and the bytes of the table that a million sources were measured with.
fn by_test_run(args: &Args, setup: &Setup, chosen: &Chosen) -> Result<(Figures, Option<u64>)> {
    let made = chosen.iter().map(|(name, make)| {
        let scenario = make(setup).with_context(|| format!("setting up {name}"))?;
        Ok((*name, scenario))
    });
    let mut scenarios: Vec<(&'static str, Scenario)> = made.collect::<Result<_>>()?;
    let figures = rounds::measure(&mut scenarios, args.rounds)?;
    for (name, scenario) in &scenarios {
        let Some(figure) = figures.get(name) else { continue };
        let (median, least, most) = (figure.median(), figure.least(), figure.most());
        let note = scenario.note();
        say(args, &format!("{name:<30} {median:>7.1} ns  {least:>7.1} … {most:<7.1}  {note}"));
    }
    let million = scenarios.iter().find(|(name, _)| *name == "random_1m");
    let table = million.and_then(|(_, scenario)| scenario.product.as_ref());
    Ok((figures, table.map(|product| product.datapath().table().bytes())))
}

fn over_veth(args: &Args, cpu: usize, shrink: u32) -> Result<(Vec<Reached>, Option<Whole>)> {
    if !args.only.is_empty() && !args.only.iter().any(|name| name == END_TO_END) {
        return Ok((Vec::new(), None));
    }
    let rounds = if args.quick { 1 } else { args.rounds };
    let contest = Contest::set_up(cpu, Extent { rounds, packets: args.packets, shrink })?;
    contest.measure(!args.quick)
}

/// The oldest kernel runs in a virtual machine; `cargo xtask bench` has asked it.
fn verifier() -> Result<Verifier> {
    let product = product::Product::load(1 << 10, product::Limits::ALL_PASS)?;
    let oldest = env::var("LIMITER_BENCH_INSNS_OLDEST").ok().and_then(|text| text.parse().ok());
    Ok(Verifier {
        oldest,
        here: product.datapath().verified_instructions(),
        stack_bytes: Some(stack::bytes(product.program())?),
    })
}

fn tell(args: &Args, report: &Value) {
    for table in [tables::end_to_end(report), tables::floors(report, !args.quick)] {
        if !table.is_empty() {
            say(args, &format!("\n{}", table.trim_end()));
        }
    }
    if args.quick {
        say(args, "A smoke test: these figures mean nothing, and no floor is judged.");
    }
    if args.json {
        println!("{report}");
    }
}

/// On stdout, unless that belongs to the JSON.
fn say(args: &Args, text: &str) {
    if args.json { eprintln!("{text}") } else { println!("{text}") }
}
