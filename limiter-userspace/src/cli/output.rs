//! Where text leaves the program. Standard output may be a pipe that closes; nothing panics for it.

use std::io::{self, Write};

use serde::Serialize;

use super::error::CliError;

/// Prints an answer: as one line of JSON, or as `human` has it.
pub(super) fn answer<T: Serialize>(
    json: bool,
    value: &T,
    human: impl FnOnce(&T) -> String,
) -> Result<(), CliError> {
    if json { print(&(serde_json::to_string(value)? + "\n")) } else { print(&human(value)) }
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => CliError::Closed,
        _ => CliError::Output(error),
    })
}

/// Writes one message to standard error.
pub(super) fn complain(message: &str) {
    // With standard error gone there is nobody left to tell.
    let _nobody_left = writeln!(io::stderr(), "limiter: {message}");
}
