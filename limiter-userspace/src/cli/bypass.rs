//! `limiter bypass`: the way out for everything at once. Works without the daemon.

use clap::{Args, ValueEnum};
use limiter_common::layout::Bypass;
use serde::Serialize;

use super::Global;
use super::error::CliError;
use super::output;
use crate::datapath::bypass;

/// Stop refusing, on every interface at once, daemon or no daemon; without MODE: show what holds
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
    /// Look at nothing, only count frames
    Pass,
}

impl BypassVerb {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        let pins = global.pins();
        if let Some(mode) = self.mode {
            bypass::set(&pins, mode.into())?;
        }
        let bypass = bypass::get(&pins)?;
        let answer = Answer { bypass: bypass::name(bypass) };
        output::answer(global.json, &answer, |_| said(bypass))
    }
}

impl From<BypassArg> for Bypass {
    fn from(mode: BypassArg) -> Self {
        match mode {
            BypassArg::Off => Self::Off,
            BypassArg::Shadow => Self::Shadow,
            BypassArg::Pass => Self::Pass,
        }
    }
}

#[derive(Serialize)]
struct Answer {
    bypass: &'static str,
}

fn said(bypass: Bypass) -> String {
    let means = match bypass {
        Bypass::Off => "the policy holds",
        Bypass::Shadow => {
            "packets are judged and counted, NONE IS REFUSED; end it with `limiter bypass off`"
        }
        Bypass::Pass => {
            "packets are not looked at, NONE IS REFUSED; end it with `limiter bypass off`"
        }
    };
    format!("bypass {}: {means}\n", bypass::name(bypass))
}
