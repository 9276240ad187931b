//! The real daemon and the real program between real network namespaces: what was promised to whoever
//! sits behind the limiter, counted by the receiver. Each test takes down what it made, also when it fails.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod bypass;
mod crash;
mod detach;
mod edge;
mod exporter;
mod flood;
mod http;
mod interfaces;
mod jumbo;
mod million;
mod policy;
mod refusals;
mod spreads;
mod transfers;
mod verbs;

use limiter_tests::process::built;
use limiter_tests::require::{Missing, bpf, root, tool};

/// What every test here needs.
fn ready() -> Result<(), Missing> {
    root()?;
    bpf()?;
    tool("ip")?;
    built()
}
