//! The daemon behind `limiter run`: starts in an order that leaves nothing half done, then one loop with
//! one event at a time. What it decides is in the pure parts (`running`, `answer`); the loop only
//! carries values between them, the datapath and the clients.

mod answer;
mod apply;
pub mod config;
mod error;
mod events;
mod guard;
mod host;
mod log;
mod notice;
mod overlay;
mod running;
mod servers;
mod service;
mod start;
mod store;
mod watch;

pub use config::Config;
pub use error::DaemonError;

/// Runs until it is told to stop. Limits hold on after that.
///
/// # Errors
/// If it can't start: then nothing is attached that wasn't before. If the maps can't be used any more.
pub fn run(config: Config) -> Result<(), DaemonError> {
    log::begin(config.log_format, config.log_level);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(DaemonError::Runtime)?;
    runtime.block_on(async { start::start(config).await?.run().await })
}
