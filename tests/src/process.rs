//! The real `limiter` binary as a test subject: its own pins, socket and state, started inside a
//! namespace, killed or stopped by its process id. Nothing here knows what the daemon does.

mod binary;
mod daemon;
mod home;
mod notify;
mod verb;

pub use binary::{binary, built};
pub use daemon::{Daemon, Invocation};
pub use home::Home;
pub(crate) use home::sweep_homes;
pub use verb::{Said, at_home, run};

/// Why a daemon under test didn't do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing to start.
    #[error(
        "no `limiter` binary (looked at {looked}): run `cargo xtask build`, or name one in LIMITER_BIN"
    )]
    NotBuilt {
        /// Where it might have been.
        looked: String,
    },
    /// It ended before it was ready.
    #[error("the daemon ended ({status}) before it was ready; it said:\n{log}")]
    Ended {
        /// How.
        status: std::process::ExitStatus,
        /// All that it wrote.
        log: String,
    },
    /// It didn't do it in time.
    #[error("the daemon isn't {state} after {seconds} s; it said:\n{log}")]
    Late {
        /// `ready`, `stopped` or `at its end`.
        state: &'static str,
        /// How long it was given.
        seconds: u64,
        /// All that it wrote.
        log: String,
    },
    /// A system call failed.
    #[error("can't {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The namespace it was to run in.
    #[error(transparent)]
    Network(#[from] crate::net::Error),
}

impl Error {
    fn system(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::System { what: what.into(), source: source.into() }
    }
}

/// A `Result` of this module.
pub type Result<T> = std::result::Result<T, Error>;
