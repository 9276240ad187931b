//! `limiter detach IFACE`: takes the program off an interface. Works without the daemon.

use clap::Args;
use serde::Serialize;

use super::Global;
use super::error::CliError;
use super::output;
use crate::daemon::config::Interface;
use crate::datapath::attach::{self, Mode};

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
        let pins = global.pins();
        // Once the link is gone, nobody knows its mode.
        let mode = attach::look(&pins, &interface).ok().and_then(|guard| guard.mode);
        attach::release(&pins, &interface)?;
        let back = attach::command(&interface, mode.unwrap_or(Mode::Native));
        output::answer(global.json, &Answer { interface, back }, said)
    }
}

#[derive(Serialize)]
struct Answer {
    interface: String,
    /// What puts it back as it was.
    back: String,
}

fn said(Answer { interface, back }: &Answer) -> String {
    format!("{interface}: detached, nothing is limited there until `{back}`\n")
}
