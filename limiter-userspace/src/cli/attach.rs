//! `limiter attach IFACE`: puts the pinned program back on an interface. Works without the daemon.

use clap::Args;
use serde::Serialize;

use super::Global;
use super::error::CliError;
use super::output;
use crate::daemon::config::Interface;
use crate::datapath::attach::{self, Done, Mode};

/// Attach the program to an interface that `detach` took it from, daemon or no daemon
#[derive(Args, Debug)]
#[command(after_help = "Example: limiter attach eth0")]
pub(super) struct Attach {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: Interface,
    /// Attach in generic mode: slow, but on any interface [default: native, or not at all]
    #[arg(long)]
    generic: bool,
}

impl Attach {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let pins = global.pins();
        let mode = if self.generic { Mode::Generic } else { Mode::Native };
        let interface = self.interface.0;
        let done = attach::restore(&pins, &interface, mode)?;
        // As the kernel has it: a link that was there keeps the mode it was made with.
        let attached = attach::look(&pins, &interface)?.mode.map_or("none", Mode::name);
        let new = done == Done::Attached;
        output::answer(global.json, &Answer { interface, new, attached }, said)
    }
}

#[derive(Serialize)]
struct Answer {
    interface: String,
    /// False if it was attached already.
    new: bool,
    /// `native`, `generic`, or `none` if somebody took it off again at once.
    attached: &'static str,
}

fn said(Answer { interface, new, attached }: &Answer) -> String {
    let what =
        if *new { "attached" } else { "was attached already; its program is the present one" };
    format!("{interface}: {what} ({attached})\n")
}
