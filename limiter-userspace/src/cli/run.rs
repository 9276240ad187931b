//! `limiter run`: the daemon. Turns flags into settings over those of the file; the rest is
//! `daemon`'s.

use std::path::PathBuf;

use clap::Args;

use super::Global;
use super::error::CliError;
use crate::daemon::config::{
    Attach, Buckets, Interface, LogFormat, LogLevel, Metrics, Settings, Sources,
};
use crate::daemon::{self, Config};

/// Attach to interfaces and enforce a policy, until told to stop; limits hold on after that
#[derive(Args, Debug)]
#[command(
    after_help = "Example: limiter run --iface eth0 --policy policy.toml\n         limiter run --config /etc/limiter/limiter.toml"
)]
pub(super) struct Run {
    /// Settings from a file; flags go over it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// An interface to guard; may be repeated
    #[arg(long = "iface", value_name = "IFACE")]
    interfaces: Vec<Interface>,
    /// The policy to enforce; a change of the file is taken up
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Attach in generic mode: slow, but on any interface [default: native, or not at all]
    #[arg(long)]
    generic: bool,
    /// Where to serve metrics, or off [default: 127.0.0.1:9184]
    #[arg(long, value_name = "ADDR|off")]
    metrics: Option<Metrics>,
    /// Directory for what survives a restart [default: /var/lib/limiter]
    #[arg(long, value_name = "PATH")]
    state_dir: Option<PathBuf>,
    /// Buckets of 8 keys in the table, a power of two [default: 131072]
    #[arg(long, value_name = "N")]
    table_buckets: Option<Buckets>,
    /// Sources that the table is for, instead of its buckets: a quarter full with so many
    #[arg(long, value_name = "N", conflicts_with = "table_buckets")]
    table_sources: Option<Sources>,
    /// How log lines look [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Which log lines there are [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
}

impl Run {
    pub(super) fn run(self, global: &Global) -> Result<(), CliError> {
        Ok(daemon::run(self.config(global)?)?)
    }

    fn config(self, global: &Global) -> Result<Config, CliError> {
        let file = match &self.config {
            Some(path) => Settings::read(path)?,
            None => Settings::default(),
        };
        Ok(self.flags(global).over(file).complete()?)
    }

    fn flags(self, global: &Global) -> Settings {
        Settings {
            interfaces: (!self.interfaces.is_empty()).then_some(self.interfaces),
            attach: self.generic.then_some(Attach::Generic),
            policy: self.policy,
            metrics: self.metrics,
            socket: global.socket.clone(),
            socket_group: None,
            pin_dir: global.pin_dir.clone(),
            state_dir: self.state_dir,
            table_buckets: self.table_buckets,
            table_sources: self.table_sources,
            log_format: self.log_format.or(global.json.then_some(LogFormat::Json)),
            log_level: self.log_level,
            stale_after: None,
        }
    }
}
