//! The limiter daemon and its command line. See ARCHITECTURE.md for the map.

mod bounded;
pub mod cli;
pub mod control;
pub mod daemon;
pub mod datapath;
pub mod policy;
pub mod snapshot;
pub mod telemetry;

#[cfg(test)]
mod scratch;
