//! Why a verb failed: one message each, with the value, the reason and the next step.

use std::io;
use std::path::PathBuf;

use crate::control::client::ClientError;
use crate::daemon::DaemonError;
use crate::daemon::config::ConfigError;
use crate::datapath::{AttachError, DetachError, MapError};

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Nobody answers, but limits don't need a daemon.
    #[error("{none}\n{pinned}")]
    NoDaemon { none: ClientError, pinned: String },
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error("{}: cannot read the policy: {source}; check the path", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot start: {0}; the system is short of memory or file descriptors, try again")]
    Runtime(io::Error),
    #[error("cannot write the answer: {0}; check where standard output goes")]
    Output(io::Error),
    #[error("cannot write the answer as JSON: {0}; please report it")]
    Json(#[from] serde_json::Error),
    /// Whoever read our output has read enough: no fault of anyone.
    #[error("standard output is closed")]
    Closed,
    #[error("{}: refused: {why}", file.display())]
    Policy { file: PathBuf, why: String },
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Detach(#[from] DetachError),
    #[error(transparent)]
    Map(#[from] MapError),
}
