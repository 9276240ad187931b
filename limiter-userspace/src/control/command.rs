//! Everything that can be asked of a running daemon: one enum, one answer each.

use std::net::IpAddr;

use tokio::sync::oneshot;

use super::model::{Applied, Explanation, PolicyText, Status, Top};
use crate::telemetry::counts::Counts;

/// An answer, or what, why and the next step in words.
pub type Answer<T> = oneshot::Sender<Result<T, String>>;

/// A request to the daemon's loop.
#[derive(Debug)]
pub enum Command {
    /// The state of everything.
    Status(Answer<Status>),
    /// All pools of an address.
    Explain(IpAddr, Answer<Explanation>),
    /// The busiest keys, at most this many.
    Top(TopBy, usize, Answer<Top>),
    /// The policy's text.
    PolicyShow(Answer<PolicyText>),
    /// A new policy as TOML.
    PolicyApply(String, Answer<Applied>),
    /// A rule's mode, until it is set again.
    Mode(ModeChange, Answer<Applied>),
    /// The counters, for the exporter.
    Counts(Answer<Counts>),
}

/// What `limiter top` sorts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum TopBy {
    /// Single sources.
    Source,
    /// IPv4 /24s and IPv6 /48s.
    Prefix,
}

impl TopBy {
    /// The word for it in requests and answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Prefix => "prefix",
        }
    }
}

/// `limiter mode RULE MODE`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ModeChange {
    /// The rule's name.
    pub rule: String,
    /// `enforce`, `shadow`, or `file` for what the policy file says.
    pub mode: String,
    /// Who asks.
    pub owner: String,
    /// Why.
    pub reason: String,
}
