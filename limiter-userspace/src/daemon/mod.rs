//! The daemon: what runs behind `limiter run`.

pub mod config;

pub use config::Config;

/// Why the daemon could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// Not built yet.
    #[error("the daemon is not part of this build yet")]
    Missing,
}

/// Runs until it is told to stop.
///
/// # Errors
/// If it can't start, or can't go on.
pub fn run(config: Config) -> Result<(), DaemonError> {
    drop(config);
    Err(DaemonError::Missing)
}
