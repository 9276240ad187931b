//! Where the daemon runs: `limiter.toml`, the command line over it, the defaults under it. What is
//! limited is the policy's, not here.

mod value;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

pub use value::{
    Attach, Buckets, Interface, LogFormat, LogLevel, Metrics, Sources, StaleAfter, TableSize, Wrong,
};

/// Where `limiter` looks for the daemon if nothing else is said.
pub const DEFAULT_SOCKET: &str = "/run/limiter/limiter.sock";
/// Where maps, program and links are pinned if nothing else is said.
pub const DEFAULT_PIN_DIR: &str = "/sys/fs/bpf/limiter";
/// Where the daemon keeps what survives a restart if nothing else is said.
pub const DEFAULT_STATE_DIR: &str = "/var/lib/limiter";
/// Where the exporter listens if nothing else is said.
pub const DEFAULT_METRICS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9184);

/// The daemon's configuration, complete and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Interfaces to guard: at least one, none twice.
    pub interfaces: Vec<String>,
    /// How the program may be attached.
    pub attach: Attach,
    /// The policy file.
    pub policy: PathBuf,
    /// Where the exporter listens, unless it is off.
    pub metrics: Option<SocketAddr>,
    /// The control socket.
    pub socket: PathBuf,
    /// Group whose members may use the socket, besides root: a name or a number.
    pub socket_group: Option<String>,
    /// Directory in bpffs for maps, program and links.
    pub pin_dir: PathBuf,
    /// Directory for what survives a restart.
    pub state_dir: PathBuf,
    /// How large the table is, if it is made anew.
    pub table: TableSize,
    /// How log lines look.
    pub log_format: LogFormat,
    /// Which log lines there are.
    pub log_level: LogLevel,
    /// Heartbeats older than this mean that the daemon is gone: 1 s … 1 h. Read and checked only: nothing
    /// looks at it yet.
    pub stale_after: Duration,
}

/// What one place says, `limiter.toml` or the command line: all of it optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "each is documented at Config")]
pub struct Settings {
    pub interfaces: Option<Vec<Interface>>,
    pub attach: Option<Attach>,
    pub policy: Option<PathBuf>,
    pub metrics: Option<Metrics>,
    pub socket: Option<PathBuf>,
    pub socket_group: Option<String>,
    pub pin_dir: Option<PathBuf>,
    pub state_dir: Option<PathBuf>,
    pub table_buckets: Option<Buckets>,
    pub table_sources: Option<Sources>,
    pub log_format: Option<LogFormat>,
    pub log_level: Option<LogLevel>,
    pub stale_after: Option<StaleAfter>,
}

/// What is wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can't be read.
    #[error("{}: cannot read the configuration: {source}; check the path given to --config", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file says something that can't be.
    #[error("{} line {line}: {why}; correct this line", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// Nothing to guard.
    #[error(
        "no interface to guard; name one with --iface IFACE, or in the configuration as interfaces = [\"eth0\"] (`ip link` lists them)"
    )]
    NoInterface,
    /// The same interface twice.
    #[error("interface {0:?} is named twice; name it once")]
    Twice(String),
    /// The table's size, said in both ways.
    #[error(
        "both table_sources and table_buckets say how large the table is; keep table_sources, and the buckets follow from it"
    )]
    TwoSizes,
    /// Nothing to enforce.
    #[error(
        "no policy to enforce; name its file with --policy FILE, or in the configuration as policy = \"/etc/limiter/policy.toml\""
    )]
    NoPolicy,
}

impl Settings {
    /// Reads a file.
    ///
    /// # Errors
    /// If it can't be read, or has a key or value that can't be.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            ConfigError::Line {
                path: path.to_owned(),
                line: before.matches('\n').count() + 1,
                why: error.message().to_owned(),
            }
        })
    }

    /// These settings, and where they say nothing, those.
    #[must_use]
    pub fn over(self, lower: Self) -> Self {
        // One size, said in one of two ways.
        let says_size = self.table_buckets.is_some() || self.table_sources.is_some();
        let size = if says_size { &self } else { &lower };
        let (table_buckets, table_sources) = (size.table_buckets, size.table_sources);
        Self {
            interfaces: self.interfaces.or(lower.interfaces),
            attach: self.attach.or(lower.attach),
            policy: self.policy.or(lower.policy),
            metrics: self.metrics.or(lower.metrics),
            socket: self.socket.or(lower.socket),
            socket_group: self.socket_group.or(lower.socket_group),
            pin_dir: self.pin_dir.or(lower.pin_dir),
            state_dir: self.state_dir.or(lower.state_dir),
            table_buckets,
            table_sources,
            log_format: self.log_format.or(lower.log_format),
            log_level: self.log_level.or(lower.log_level),
            stale_after: self.stale_after.or(lower.stale_after),
        }
    }

    /// The whole configuration, defaults filled in.
    ///
    /// # Errors
    /// If what has no default is missing, or an interface is named twice.
    pub fn complete(self) -> Result<Config, ConfigError> {
        Ok(Config {
            interfaces: distinct(self.interfaces.unwrap_or_default())?,
            attach: self.attach.unwrap_or_default(),
            policy: self.policy.ok_or(ConfigError::NoPolicy)?,
            metrics: self.metrics.unwrap_or(Metrics(Some(DEFAULT_METRICS))).0,
            socket: self.socket.unwrap_or_else(|| DEFAULT_SOCKET.into()),
            socket_group: self.socket_group,
            pin_dir: self.pin_dir.unwrap_or_else(|| DEFAULT_PIN_DIR.into()),
            state_dir: self.state_dir.unwrap_or_else(|| DEFAULT_STATE_DIR.into()),
            table: table_size(self.table_buckets, self.table_sources)?,
            log_format: self.log_format.unwrap_or_default(),
            log_level: self.log_level.unwrap_or_default(),
            stale_after: self.stale_after.unwrap_or_default().0,
        })
    }
}

fn table_size(
    buckets: Option<Buckets>,
    sources: Option<Sources>,
) -> Result<TableSize, ConfigError> {
    match (buckets, sources) {
        (Some(_), Some(_)) => Err(ConfigError::TwoSizes),
        (Some(Buckets(buckets)), None) => Ok(TableSize::Buckets(buckets)),
        (None, Some(Sources(sources))) => Ok(TableSize::Sources(sources)),
        (None, None) => Ok(TableSize::default()),
    }
}

fn distinct(interfaces: Vec<Interface>) -> Result<Vec<String>, ConfigError> {
    let mut names: Vec<String> = Vec::with_capacity(interfaces.len());
    for Interface(name) in interfaces {
        if names.contains(&name) {
            return Err(ConfigError::Twice(name));
        }
        names.push(name);
    }
    if names.is_empty() { Err(ConfigError::NoInterface) } else { Ok(names) }
}

#[cfg(test)]
mod tests;
