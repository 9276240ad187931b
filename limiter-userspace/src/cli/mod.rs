//! The command line: one file per verb, each documented here and there only once, by its `--help`.
//! Verbs ask the daemon or the pinned maps; they decide nothing.

mod attach;
mod bypass;
mod check;
mod detach;
mod error;
mod explain;
mod mode;
mod output;
mod policy;
mod run;
mod screen;
mod status;
mod text;
mod top;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::control::client::Client;
use crate::daemon::config::{DEFAULT_PIN_DIR, DEFAULT_SOCKET};
use crate::datapath::Pins;
use error::CliError;

/// Limits packets per source, per prefix and in total, in the kernel, before the network stack sees them.
#[derive(Debug, Parser)]
#[command(
    name = "limiter",
    version,
    max_term_width = 100,
    after_help = "Exit codes: 0 fine, 1 refused or failed, 2 wrong usage.\n\
        Example: limiter run --iface eth0 --policy policy.toml",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

/// What every verb takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Common options")]
struct Global {
    /// Print JSON instead of text (for `run`: log it)
    #[arg(long, global = true)]
    json: bool,
    /// The daemon's control socket [default: /run/limiter/limiter.sock]
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "LIMITER_SOCKET",
        hide_env_values = true
    )]
    socket: Option<PathBuf>,
    /// Directory in bpffs of maps, program and links [default: /sys/fs/bpf/limiter]
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "LIMITER_PIN_DIR",
        hide_env_values = true
    )]
    pin_dir: Option<PathBuf>,
}

impl Global {
    fn client(&self) -> Client {
        Client::new(self.socket.as_deref().unwrap_or(DEFAULT_SOCKET.as_ref()))
    }

    fn pins(&self) -> Pins {
        Pins::new(self.pin_dir.as_deref().unwrap_or(DEFAULT_PIN_DIR.as_ref()))
    }
}

#[derive(Debug, Subcommand)]
enum Verb {
    Run(run::Run),
    Check(check::Check),
    Status(status::StatusVerb),
    Explain(explain::Explain),
    Top(top::TopVerb),
    Policy(policy::Policy),
    Mode(mode::Mode),
    Bypass(bypass::BypassVerb),
    Attach(attach::Attach),
    Detach(detach::Detach),
}

/// Does what the arguments say, and says how that went.
#[must_use]
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        // A fault of ours, said in one line all the same; RUST_BACKTRACE changes nothing.
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        output::complain(&format!("internal error at {place}: please report it"));
    }));
    let Cli { global, verb } = Cli::parse();
    match dispatch(verb, &global) {
        Ok(()) | Err(CliError::Closed) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn dispatch(verb: Verb, global: &Global) -> Result<(), CliError> {
    match verb {
        Verb::Run(verb) => verb.run(global),
        Verb::Check(verb) => verb.run(global),
        Verb::Status(verb) => wait(verb.run(global)),
        Verb::Explain(verb) => wait(verb.run(global)),
        Verb::Top(verb) => wait(verb.run(global)),
        Verb::Policy(verb) => wait(verb.run(global)),
        Verb::Mode(verb) => wait(verb.run(global)),
        Verb::Bypass(verb) => verb.run(global),
        Verb::Attach(verb) => verb.run(global),
        Verb::Detach(verb) => verb.run(global),
    }
}

/// Runs a verb that asks the daemon, on this thread alone.
fn wait(verb: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    runtime.block_on(verb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_shows_an_example() {
        for verb in Cli::command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "{}", verb.get_name());
        }
    }
}
