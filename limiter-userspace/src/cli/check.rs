//! `limiter check FILE`: what a policy means, before it is in force. Needs no daemon.

use std::path::PathBuf;

use clap::Args;
use limiter_common::layout::DEFAULT_BUCKETS;
use serde::Serialize;

use super::Global;
use super::error::CliError;
use super::output;
use super::policy::read;
use super::text::tame_lines;
use crate::daemon::config::Buckets;
use crate::policy::report::Report;
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
        let buckets = self.table_buckets.unwrap_or(Buckets(DEFAULT_BUCKETS));
        let (answer, refusal) = judge(&text, buckets);
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
fn judge(text: &str, Buckets(buckets): Buckets) -> (Answer, Option<String>) {
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
    if let Err(error) = fits(&policy) {
        answer.too_large = Some(error.clone());
        return (answer, Some(error));
    }
    answer.ok = true;
    answer.report = Some(Report::new(&policy, buckets));
    (answer, None)
}

/// Whether the kernel's tables have room for the policy, as new ones would.
fn fits(policy: &Policy) -> Result<(), String> {
    let (registry, overrides) = (Registry::default(), ModeOverrides::default());
    let version = policy.version().unwrap_or(1);
    Snapshot::compile(policy, &registry, &overrides, version, UnixNanos(0))
        .map(drop)
        .map_err(|error| error.to_string())
}

fn page(file: &str, answer: &Answer) -> String {
    let report = answer.report.as_ref().map(ToString::to_string).unwrap_or_default();
    let warnings = answer.warnings.iter().map(|warning| format!("warning: {warning}\n"));
    tame_lines(&format!("{report}\n{}{file}: no mistakes", warnings.collect::<String>())) + "\n"
}
