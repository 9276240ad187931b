//! `limiter check FILE`: what a policy means, before it is in force. Needs no daemon.

use std::path::PathBuf;

use clap::Args;

use super::Global;
use super::error::CliError;
use super::policy::read;

/// Check a policy file: all its mistakes at once, or what it will cost and allow
#[derive(Args, Debug)]
#[command(
    after_help = "Example: limiter check policy.toml\n         limiter check policy.toml --json"
)]
pub(super) struct Check {
    /// The policy, or - for standard input
    file: PathBuf,
}

impl Check {
    pub(super) fn run(self, _global: &Global) -> Result<(), CliError> {
        read(&self.file)?;
        Err(CliError::Missing("check"))
    }
}
