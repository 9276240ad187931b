//! `limiter check FILE`: what a policy means, before it is in force. Needs no daemon.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::Global;
use super::error::CliError;
use super::output;
use super::policy::read;
use super::text::tame_lines;
use crate::daemon::config::{self, Buckets, Sources};
use crate::policy::capacity::keys_per_source;
use crate::policy::report::{Report, TableSize};
use crate::policy::{Checked, Policy, Problem};
use crate::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};

/// Check a policy file: all its mistakes at once, or what it will cost and allow
#[derive(Args, Debug)]
#[command(
    after_help = "Example: limiter check policy.toml\n         limiter check policy.toml --json"
)]
pub(super) struct Check {
    /// The policy, or - for standard input
    file: PathBuf,
    /// Buckets of the table that it will run with [default: 131072]
    #[arg(long, value_name = "N")]
    table_buckets: Option<Buckets>,
    /// Sources that the table is for [default: as many as fill it to a quarter]
    #[arg(long, value_name = "N")]
    table_sources: Option<Sources>,
}

/// What was found. Field names are an interface: they only ever grow.
#[derive(Serialize)]
struct Answer {
    /// Whether the policy can be put into force.
    ok: bool,
    /// Mistakes, in the order of lines, at most 50.
    problems: Vec<Problem>,
    /// Why a policy without mistakes still can't be put into the kernel's tables.
    too_large: Option<String>,
    /// What a careful person would want to know.
    warnings: Vec<Problem>,
    /// What it means, if it is good.
    report: Option<Report>,
}

impl Check {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let text = read(&self.file)?;
        let (answer, refusal) = judge(&text, self.table_buckets, self.table_sources);
        let file = self.file.display().to_string();
        match refusal {
            None => output::answer(global.json, &answer, |answer| page(&file, answer)),
            Some(why) => {
                if global.json {
                    output::answer(true, &answer, |_| String::new())?;
                }
                Err(CliError::Policy { file: self.file, why: tame_lines(&why) })
            }
        }
    }
}

/// What there is to say about a policy, and why it is refused, if it is.
fn judge(
    text: &str,
    buckets: Option<Buckets>,
    sources: Option<Sources>,
) -> (Answer, Option<String>) {
    let mut answer = Answer {
        ok: false,
        problems: Vec::new(),
        too_large: None,
        warnings: Vec::new(),
        report: None,
    };
    let Checked { policy, warnings } = match Policy::parse(text) {
        Ok(checked) => checked,
        Err(problems) => {
            answer.problems = problems.list().to_vec();
            return (answer, Some(format!("{}\n{problems}", problems.mistakes())));
        }
    };
    answer.warnings = warnings;
    match report(&policy, buckets, sources) {
        Ok(report) => {
            answer.ok = true;
            answer.report = Some(report);
            (answer, None)
        }
        Err(error) => {
            answer.too_large = Some(error.clone());
            (answer, Some(error))
        }
    }
}

/// What the policy means, if the kernel's tables have room for it, as new ones would.
fn report(
    policy: &Policy,
    buckets: Option<Buckets>,
    sources: Option<Sources>,
) -> Result<Report, String> {
    let (registry, overrides) = (Registry::default(), ModeOverrides::default());
    let version = policy.version().unwrap_or(1);
    let snapshot = Snapshot::compile(policy, &registry, &overrides, version, UnixNanos(0));
    let snapshot = snapshot.map_err(|error| error.to_string())?;
    let size = match (buckets, sources) {
        (Some(Buckets(buckets)), _) => config::TableSize::Buckets(buckets),
        (None, Some(Sources(sources))) => config::TableSize::Sources(sources),
        (None, None) => config::TableSize::default(),
    };
    let buckets = size.buckets(keys_per_source(policy)).map_err(|error| error.to_string())?;
    let sources = sources.map(|Sources(sources)| sources.into());
    let size = TableSize { buckets, cpus: possible_cpus(), sources };
    Ok(Report::new(policy, &snapshot.rules, size))
}

/// CPUs that this machine can have, present or not: the kernel's maps have room for all.
fn possible_cpus() -> u32 {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    last_of(&list).map_or(1, |last| last.saturating_add(1))
}

/// The last number of a list like `0-3,8-11`.
fn last_of(list: &str) -> Option<u32> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

fn page(file: &str, answer: &Answer) -> String {
    let report = answer.report.as_ref().map(ToString::to_string).unwrap_or_default();
    let warnings = answer.warnings.iter().map(|warning| format!("warning: {warning}\n"));
    tame_lines(&format!("{report}\n{}{file}: no mistakes", warnings.collect::<String>())) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cpu_is_the_lists_end() {
        assert_eq!(last_of("0-3,8-11\n"), Some(11));
        assert_eq!(last_of("0\n"), Some(0));
        assert_eq!(last_of(""), None);
    }
}
