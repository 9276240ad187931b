//! Why the daemon can't start or go on: each error says what, why and the next step.

use std::io;
use std::path::PathBuf;

use crate::control::socket::ControlError;
use crate::datapath::{AttachError, MapError, OpenError};
use crate::policy::Problems;
use crate::snapshot::CompileError;
use crate::telemetry::exporter::ExporterError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The policy file can't be read.
    #[error("{}: cannot read the policy: {cause}; check the path given to --policy", path.display())]
    PolicyFile {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        cause: io::Error,
    },
    /// The policy has mistakes; all of them come at once.
    #[error("{}: the policy is refused:\n{problems}", path.display())]
    Policy {
        /// The file.
        path: PathBuf,
        /// One a line.
        problems: Problems,
    },
    /// The policy needs more than the kernel's tables hold.
    #[error("{}: the policy is refused: {cause}", path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// Which table.
        cause: CompileError,
    },
    /// No table is large enough for what is promised.
    #[error("{0}; lower table_sources, or say table_buckets")]
    Table(#[source] super::config::Wrong),
    /// The policy is older than the one in force.
    #[error("{}: the policy is refused: {cause}", path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// The versions.
        cause: super::running::Older,
    },
    /// Missing capabilities.
    #[error(
        "not allowed: {missing} missing; run as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"
    )]
    NotPermitted {
        /// Their names.
        missing: String,
    },
    /// Somebody else uses these pins.
    #[error(
        "another limiter{} already runs for {}; stop it first, or give this one its own --pin-dir and --socket",
        pid.map_or_else(String::new, |pid| format!(" (pid {pid})")), path.display()
    )]
    Running {
        /// The pin directory.
        path: PathBuf,
        /// The other's process id, if it can be seen.
        pid: Option<u32>,
    },
    /// A file of the state directory is unusable.
    #[error("{}: {cause}; make it usable, or choose another directory with --state-dir", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The control socket.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The metrics.
    #[error(transparent)]
    Exporter(#[from] ExporterError),
    /// Maps or program.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An interface.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// A map, later.
    #[error(transparent)]
    Map(#[from] MapError),
    /// Signals or the event loop.
    #[error("cannot start the event loop: {0}; the system is short of memory or file descriptors")]
    Runtime(io::Error),
}
