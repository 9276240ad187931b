//! Log lines on standard error: for people, or one JSON object each.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;

use super::config::{LogFormat, LogLevel};

/// Log from now on. A second call in one process changes nothing.
pub(super) fn begin(format: LogFormat, level: LogLevel) {
    // Other crates' lines (HTTP, the loader) tell operators nothing below a warning.
    // "limiter" begins the names of both, this crate's and the kernel program's.
    let filter = EnvFilter::new(format!("warn,limiter={}", level.name()));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_ansi(stderr().is_terminal())
        .with_writer(stderr);
    // An error means that somebody (a test) set up logging before.
    let _ = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
}
