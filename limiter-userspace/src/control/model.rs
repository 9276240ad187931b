//! What the daemon answers, as the command line prints it with `--json`. Field names are an interface:
//! they only ever grow.

use serde::{Deserialize, Serialize};

/// Answer to `limiter status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    /// Version of the daemon's program.
    pub program_version: String,
    /// Process id of the daemon.
    pub pid: u32,
    /// Seconds since the daemon started.
    pub uptime_s: u64,
    /// The policy in force.
    pub policy: PolicyStatus,
    /// `off`, `shadow` or `pass`.
    pub bypass: String,
    /// Interfaces the daemon was told to guard.
    pub interfaces: Vec<InterfaceStatus>,
    /// The table of keys.
    pub table: TableStatus,
    /// Frames that passed and that were refused since the maps were made.
    pub passed: u64,
    /// See `passed`.
    pub refused: u64,
    /// Seconds since the kernel program last saw the daemon alive.
    pub heartbeat_age_s: f64,
    /// `127.0.0.1:9184`, if the exporter runs.
    pub metrics: Option<String>,
    /// What is wrong with the pins, if anything.
    #[serde(default)]
    pub pins_problem: Option<String>,
}

/// The policy in force, and the last one that was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyStatus {
    /// Version; 0 if there is none.
    pub version: u64,
    /// Policy changes since the maps were made.
    #[serde(default)]
    pub generation: u32,
    /// Where it came from: a path, or `socket`.
    pub origin: String,
    /// Unix time of its taking effect.
    pub applied_unix_s: u64,
    /// Its rules in order.
    pub rules: Vec<RuleStatus>,
    /// Why the last change was refused, unless one was accepted since.
    pub last_refusal: Option<String>,
    /// What a careful person would want to know about it.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The policy file, if it is gone: a restart needs it.
    #[serde(default)]
    pub file_gone: Option<String>,
}

/// One rule of the policy in force.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its name.
    pub name: String,
    /// `enforce` or `shadow`: what holds now.
    pub mode: String,
    /// Set if `limiter mode` overrides the file: who, when, why.
    pub mode_override: Option<ModeOverride>,
    /// Packets it had room for.
    pub passed: u64,
    /// Packets it refused, or would have refused in shadow.
    pub refused: u64,
    /// See `refused`.
    pub would_refuse: u64,
}

/// A rule's mode, set at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeOverride {
    /// `enforce` or `shadow`.
    pub mode: String,
    /// Who set it.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// When, Unix seconds.
    pub since_unix_s: u64,
}

/// One guarded interface.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InterfaceStatus {
    /// `eth0`.
    pub name: String,
    /// Its index now; `None` if it is gone.
    pub index: Option<u32>,
    /// `native`, `generic`, or `none` while nothing of ours is attached.
    pub attached: String,
    /// Why not, if `none`.
    pub problem: Option<String>,
}

/// The table of keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TableStatus {
    /// Slots: keys it can hold at most.
    pub slots: u64,
    /// Bytes of memory, addresses included.
    pub bytes: u64,
    /// Slots in use by living windows.
    pub live: u64,
}

/// Answer to `limiter explain ADDRESS`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Explanation {
    /// The address as asked.
    pub address: String,
    /// Version of the policy in force.
    pub policy_version: u64,
    /// `off`, `shadow` or `pass`.
    pub bypass: String,
    /// Each rule, in order.
    pub rules: Vec<RuleExplanation>,
}

/// How one rule sees an address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RuleExplanation {
    /// The rule's name.
    pub rule: String,
    /// `enforce` or `shadow`.
    pub mode: String,
    /// What it applies to, in the policy's words.
    pub matches: String,
    /// `packets` or `bytes`.
    pub unit: String,
    /// Each level the rule limits, coarse first.
    pub levels: Vec<LevelExplanation>,
    /// `pass`, `refuse (source)` …: what the next packet (or smallest frame) of this rule would get.
    pub next: String,
}

/// One pool of an address.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LevelExplanation {
    /// `total`, `prefix` or `source`.
    pub level: String,
    /// `203.0.113.0/24`; `all` for the total.
    pub key: String,
    /// Units per window, `None` for unlimited.
    pub limit: Option<u64>,
    /// Units used in this window.
    pub used: u64,
    /// Window's length in milliseconds.
    pub window_ms: u64,
    /// Milliseconds until this window ends; 0 if the key has none open.
    pub ends_in_ms: u64,
}

/// Answer to `limiter top`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Top {
    /// `source` or `prefix`.
    pub by: String,
    /// Keys seen alive in the table.
    pub live: u64,
    /// The largest first, by share of their limit.
    pub rows: Vec<TopRow>,
}

/// One key of `limiter top`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TopRow {
    /// `192.0.2.7` or `2001:db8::/64`.
    pub key: String,
    /// The rule it is counted for.
    pub rule: String,
    /// Units used in this window.
    pub used: u64,
    /// Units per window, `None` for unlimited.
    pub limit: Option<u64>,
    /// `packets` or `bytes`.
    pub unit: String,
    /// Whether it was refused in this window.
    pub refused: bool,
    /// Whether it would have been refused in this window, if its rule weren't in shadow.
    #[serde(default)]
    pub would_refuse: bool,
    /// Milliseconds until its window ends.
    pub ends_in_ms: u64,
}

/// Answer to `limiter policy show`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyText {
    /// Version in force.
    pub version: u64,
    /// Where it came from.
    pub origin: String,
    /// The file, word for word.
    pub text: String,
}

/// Answer to `limiter policy apply` and `limiter mode`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Applied {
    /// The version now in force.
    pub version: u64,
    /// What a careful person would want to know.
    pub warnings: Vec<String>,
}

/// Any refusal, as JSON: `{"error": …}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refused {
    /// What, why, and the next step.
    pub error: String,
}
