//! `limiter attach IFACE`: puts the pinned program back on an interface. Works without the daemon.

use clap::Args;

use super::Global;
use super::error::CliError;
use crate::daemon::config::Interface;

/// Attach the program to an interface that `detach` took it from, daemon or no daemon
#[derive(Args, Debug)]
#[command(after_help = "Example: limiter attach eth0")]
pub(super) struct Attach {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: Interface,
    /// Allow generic mode, which is slow, where the driver has no XDP
    #[arg(long)]
    generic: bool,
}

impl Attach {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let _ = (self.interface, self.generic, global.pin_dir());
        Err(CliError::Missing("attach"))
    }
}
