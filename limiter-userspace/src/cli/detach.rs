//! `limiter detach IFACE`: takes the program off an interface. Works without the daemon.

use clap::Args;

use super::Global;
use super::error::CliError;
use crate::daemon::config::Interface;

/// Take the program off an interface, daemon or no daemon; it stays off until `attach`
#[derive(Args, Debug)]
#[command(after_help = "Example: limiter detach eth0")]
pub(super) struct Detach {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: Interface,
}

impl Detach {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let _ = (self.interface, global.pin_dir());
        Err(CliError::Missing("detach"))
    }
}
