//! `limiter policy show|apply`: the policy in force, and the next one.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::Global;
use super::error::CliError;
use super::output;
use super::text::{tame, tame_lines};
use crate::bounded;
use crate::control::model::{Applied, PolicyText};

/// Show the policy in force, or put another one into force
#[derive(Args, Debug)]
#[command(
    after_help = "Example: limiter policy show > policy.toml\n         limiter policy apply policy.toml"
)]
pub(super) struct Policy {
    #[command(subcommand)]
    verb: PolicyVerb,
}

#[derive(Debug, Subcommand)]
enum PolicyVerb {
    /// Print the policy in force, as it was given
    #[command(after_help = "Example: limiter policy show > policy.toml")]
    Show,
    /// Put a policy into force: all of it, or none if anything is wrong with it
    #[command(
        after_help = "Example: limiter policy apply policy.toml\n         limiter policy apply - < policy.toml"
    )]
    Apply {
        /// The policy, or - for standard input
        file: PathBuf,
    },
}

impl Policy {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        match self.verb {
            PolicyVerb::Show => {
                output::answer(global.json, &global.client().policy().await?, shown)
            }
            PolicyVerb::Apply { file } => {
                let applied = global.client().apply(read(&file)?).await?;
                output::answer(global.json, &applied, said)
            }
        }
    }
}

/// The file's text, with where it came from as a comment, so that it can be applied as it is.
fn shown(policy: &PolicyText) -> String {
    let PolicyText { version, origin, text } = policy;
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("# policy version {version}, from {}\n{text}{end}", tame(origin))
}

fn said(applied: &Applied) -> String {
    let mut text = String::new();
    for warning in &applied.warnings {
        text += &format!("warning: {}\n", tame_lines(warning));
    }
    text + &format!("policy version {} is in force\n", applied.version)
}

/// The text of a policy file, `-` being standard input.
pub(super) fn read(file: &Path) -> Result<String, CliError> {
    let read = if file == Path::new("-") {
        bounded::text(io::stdin())
    } else {
        File::open(file).and_then(bounded::text)
    };
    read.map_err(|source| CliError::Read { path: file.to_owned(), source })
}
