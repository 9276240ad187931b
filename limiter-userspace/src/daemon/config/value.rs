//! The values of the configuration, each valid by construction, read the same way from the file and
//! from the command line.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use limiter_common::layout::DEFAULT_BUCKETS;
use serde::Deserialize;

use crate::policy::capacity::buckets_for;

/// How the program may be attached. Never generic by itself: generic XDP runs after the socket
/// buffer is made, and costs several times as much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attach {
    /// By the driver, or not at all.
    #[default]
    Native,
    /// In the network stack, whatever the driver could do.
    Generic,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One object a line.
    Json,
}

/// Which log lines there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the usual words")]
pub enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// The word for it in filters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// A name that an interface can have: 1 … 15 bytes, no slash, no white space.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Interface(pub String);

/// Where the exporter listens; `None` is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Metrics(pub Option<SocketAddr>);

/// Buckets of the table: a power of two from [`Buckets::MIN`] to [`Buckets::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Buckets(pub u32);

/// Sources that the table is to hold at a quarter full: 1 … [`Sources::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
pub struct Sources(pub u32);

/// How large a new table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableSize {
    /// This large.
    Buckets(u32),
    /// Large enough for this many sources, whichever rules limit them.
    Sources(u32),
}

/// Age of a heartbeat at which the daemon counts as gone: 1 s … 1 h.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct StaleAfter(pub Duration);

/// What is wrong with a value, what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(String);

impl FromStr for Interface {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        let legal = |c: char| c != '/' && !c.is_whitespace() && !c.is_control();
        if (1..=15).contains(&text.len()) && text.chars().all(legal) && text != "." && text != ".."
        {
            return Ok(Self(text.to_owned()));
        }
        Err(Wrong(format!(
            "no interface can be called {text:?}: names have 1 to 15 bytes, no slash and no space (`ip link` lists them)"
        )))
    }
}

impl FromStr for Metrics {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        if text == "off" {
            return Ok(Self(None));
        }
        match text.parse() {
            Ok(address) => Ok(Self(Some(address))),
            Err(std::net::AddrParseError { .. }) => Err(Wrong(format!(
                "{text:?} is no address to listen on; write ADDRESS:PORT, as 127.0.0.1:9184 or [::1]:9184, or off"
            ))),
        }
    }
}

impl Buckets {
    /// 128 keys.
    pub const MIN: u32 = 1 << 4;
    /// 134,217,728 keys in 3 GiB.
    pub const MAX: u32 = 1 << 24;
}

impl Default for Buckets {
    fn default() -> Self {
        Self(DEFAULT_BUCKETS)
    }
}

impl TryFrom<u32> for Buckets {
    type Error = Wrong;

    fn try_from(number: u32) -> Result<Self, Wrong> {
        if number.is_power_of_two() && (Self::MIN..=Self::MAX).contains(&number) {
            return Ok(Self(number));
        }
        Err(Wrong(format!(
            "{number} buckets are not possible: a power of two from {} to {}, such as {DEFAULT_BUCKETS}",
            Self::MIN,
            Self::MAX
        )))
    }
}

impl FromStr for Buckets {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text.parse::<u32>() {
            Ok(number) => number.try_into(),
            Err(error) => Err(Wrong(format!("{text:?} is no number of buckets: {error}"))),
        }
    }
}

impl Sources {
    /// What the largest table holds of the keys of one rule.
    pub const MAX: u32 = Buckets::MAX * 2;
}

impl TryFrom<u64> for Sources {
    type Error = Wrong;

    fn try_from(number: u64) -> Result<Self, Wrong> {
        match u32::try_from(number) {
            Ok(sources @ 1..=Self::MAX) => Ok(Self(sources)),
            _ => Err(Wrong(format!(
                "no table is for {number} sources: a number from 1 to {}, such as 1000000",
                Self::MAX
            ))),
        }
    }
}

impl FromStr for Sources {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        match text.parse::<u64>() {
            Ok(number) => number.try_into(),
            Err(error) => Err(Wrong(format!("{text:?} is no number of sources: {error}"))),
        }
    }
}

impl Default for TableSize {
    fn default() -> Self {
        Self::Buckets(DEFAULT_BUCKETS)
    }
}

impl TableSize {
    /// The buckets for a policy under which a source takes so many keys.
    ///
    /// # Errors
    /// If that is more than a table can have.
    pub fn buckets(self, keys_per_source: u64) -> Result<u32, Wrong> {
        let sources = match self {
            Self::Buckets(buckets) => return Ok(buckets),
            Self::Sources(sources) => sources,
        };
        match buckets_for(sources.into(), keys_per_source) {
            Some(buckets) if buckets <= Buckets::MAX => Ok(buckets.max(Buckets::MIN)),
            _ => Err(Wrong(format!(
                "{keys_per_source} rules limit sources, and no table is for {sources} sources with so many keys each: {} at most",
                u64::from(Sources::MAX) / keys_per_source.max(1)
            ))),
        }
    }
}

impl Default for StaleAfter {
    fn default() -> Self {
        Self(Duration::from_secs(5))
    }
}

impl FromStr for StaleAfter {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Wrong> {
        const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        let milliseconds = UNITS.iter().find_map(|(unit, factor)| {
            text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(*factor)
        });
        match milliseconds {
            Some(ms @ 1000..=3_600_000) => Ok(Self(Duration::from_millis(ms))),
            _ => Err(Wrong(format!("{text:?} is no time from 1s to 1h; write it as 5s or 1500ms"))),
        }
    }
}

impl TryFrom<String> for Interface {
    type Error = Wrong;

    fn try_from(text: String) -> Result<Self, Wrong> {
        text.parse()
    }
}

impl TryFrom<String> for Metrics {
    type Error = Wrong;

    fn try_from(text: String) -> Result<Self, Wrong> {
        text.parse()
    }
}

impl TryFrom<String> for StaleAfter {
    type Error = Wrong;

    fn try_from(text: String) -> Result<Self, Wrong> {
        text.parse()
    }
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("off"),
        }
    }
}
