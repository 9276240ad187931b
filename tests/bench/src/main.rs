//! `cargo xtask bench`: measures limiter, and what it is compared with, on this machine. It uses the
//! product as it is and is itself in no product.

mod end_to_end;
mod kernel;
mod measure;
mod product;
mod rounds;
mod scenario;
mod sys;

use anyhow::{Context, Result, bail};
use clap::Parser;

use scenario::{Scenario, Setup};

/// Measure limiter and what it is compared with
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", max_term_width = 100)]
struct Args {
    /// Only these scenarios
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds; each measures every scenario once
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Packets of a slice by test-run
    #[arg(long, default_value_t = 2_000_000)]
    packets: u32,
}

fn main() -> Result<()> {
    let args = Args::parse();
    product::sweep();
    if args.only == ["end_to_end"] {
        for it in end_to_end::measure(1, args.rounds, args.packets)? {
            println!(
                "{:>8} {:<10} {:.2} Mpps ({:.2} … {:.2}) {:.0} ns, passed {:.2} %, delivered {:.1} %",
                it.sources,
                it.kind.name(),
                it.mpps.median(),
                it.mpps.least(),
                it.mpps.most(),
                it.nanos.median(),
                it.passed * 100.0,
                it.delivered * 100.0
            );
        }
        return Ok(());
    }
    let mut scenarios = set_up(&args)?;
    let figures = rounds::measure(&mut scenarios, args.rounds)?;
    for (name, scenario) in &scenarios {
        let figure = &figures[name];
        let fill = scenario.fill().map(|fill| format!("{:.1} % full", fill * 100.0));
        println!(
            "{name:<30} {:>7.1} ns   {:>7.1} … {:>7.1}   {}",
            figure.median(),
            figure.least(),
            figure.most(),
            fill.unwrap_or_default()
        );
    }
    Ok(())
}

fn set_up(args: &Args) -> Result<Vec<(&'static str, Scenario)>> {
    let known = scenario::ALL.map(|(name, _)| name);
    if let Some(unknown) = args.only.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("no scenario is named `{unknown}`; there are {}", known.join(", "));
    }
    let setup = Setup::new(args.packets)?;
    let chosen = scenario::ALL
        .into_iter()
        .filter(|(name, _)| args.only.is_empty() || args.only.iter().any(|it| it == name));
    let made = chosen.map(|(name, make)| {
        let scenario = make(&setup).with_context(|| format!("setting up {name}"))?;
        Ok((name, scenario))
    });
    made.collect()
}
