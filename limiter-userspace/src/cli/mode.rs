//! `limiter mode RULE shadow|enforce|file`: the first way back in an incident.

use clap::{Args, ValueEnum};

use super::Global;
use super::error::CliError;
use super::output;
use super::text::tame;
use crate::control::command::ModeChange;
use crate::control::model::Applied;

/// Let a rule only watch, or refuse; survives restarts until it is set back to the file's
#[derive(Args, Debug)]
#[command(
    after_help = "Example: limiter mode new-connections shadow --reason \"refuses a customer\"\n         limiter mode new-connections file"
)]
pub(super) struct Mode {
    /// The rule's name
    rule: String,
    /// What it shall do
    mode: ModeArg,
    /// Why, for whoever finds it
    #[arg(long, default_value = "unspecified", value_name = "TEXT")]
    reason: String,
    /// Who asks [default: whoever runs this]
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeArg {
    /// Judge and count, refuse nothing
    Shadow,
    /// Refuse
    Enforce,
    /// What the policy file says
    File,
}

impl ModeArg {
    const fn name(self) -> &'static str {
        match self {
            Self::Shadow => "shadow",
            Self::Enforce => "enforce",
            Self::File => "file",
        }
    }
}

impl Mode {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = self.owner.unwrap_or_else(whoever_runs_this);
        let mode = self.mode.name().to_owned();
        let change = ModeChange { rule: self.rule, mode, owner, reason: self.reason };
        let applied = global.client().mode(&change).await?;
        output::answer(global.json, &applied, |applied| said(&change, applied))
    }
}

fn said(change: &ModeChange, applied: &Applied) -> String {
    let mode = match change.mode.as_str() {
        "file" => "back to the mode in the policy file",
        mode => &format!("now in mode {mode}"),
    };
    let version = applied.version;
    let mut text = format!("rule {} is {mode} (policy version {version})\n", tame(&change.rule));
    for warning in &applied.warnings {
        text += &format!("warning: {}\n", tame(warning));
    }
    text
}

fn whoever_runs_this() -> String {
    let named = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    named("SUDO_USER").or_else(|| named("USER")).unwrap_or_else(|| "unknown".to_owned())
}
