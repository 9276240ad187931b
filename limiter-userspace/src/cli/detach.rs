//! `limiter detach IFACE`: takes the program off an interface. Works without the daemon.

use clap::Args;
use serde::Serialize;

use super::Global;
use super::error::CliError;
use super::output;
use crate::daemon::config::Interface;
use crate::datapath::attach;

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
        let interface = self.interface.0;
        attach::release(&global.pins(), &interface)?;
        output::answer(global.json, &Answer { interface }, said)
    }
}

#[derive(Serialize)]
struct Answer {
    interface: String,
}

fn said(Answer { interface }: &Answer) -> String {
    format!("{interface}: detached, nothing is limited there until `limiter attach {interface}`\n")
}
