//! `limiter bypass`: the way out for everything at once. Works without the daemon.

use clap::{Args, ValueEnum};

use super::Global;
use super::error::CliError;

/// Stop refusing, on every interface at once, daemon or no daemon; show what holds without MODE
#[derive(Args, Debug)]
#[command(after_help = "Example: limiter bypass shadow\n         limiter bypass off")]
pub(super) struct BypassVerb {
    /// What to do with packets
    mode: Option<BypassArg>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BypassArg {
    /// The policy holds
    Off,
    /// Judge and count, refuse nothing
    Shadow,
    /// Look at nothing
    Pass,
}

impl BypassVerb {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let _ = (self.mode, global.pin_dir());
        Err(CliError::Missing("bypass"))
    }
}
