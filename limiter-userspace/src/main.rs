//! The `limiter` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    limiter_userspace::cli::main()
}
