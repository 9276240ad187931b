//! The daemon's state as plain values for metrics. Knows nothing of maps, metrics or time.

use crate::control::model::Status;

/// All that goes up and down, at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gauges {
    /// Version of the daemon's program.
    pub program_version: String,
    /// Seconds since the daemon started.
    pub uptime_s: u64,
    /// Version of the policy in force; 0 if there is none.
    pub policy_version: u64,
    /// Policy changes since the maps were made.
    pub policy_generation: u32,
    /// Unix time at which the policy took effect.
    pub policy_applied_unix_s: u64,
    /// Whether the last change of the policy was refused.
    pub policy_change_refused: bool,
    /// `off`, `shadow` or `pass`.
    pub bypass: String,
    /// Interface and how it is attached: `native`, `generic` or `none`.
    pub interfaces: Vec<(String, String)>,
    /// Rule and its mode: `enforce` or `shadow`.
    pub rules: Vec<(String, String)>,
    /// Keys that the table can hold at most.
    pub table_slots: u64,
    /// Keys in it whose windows are open.
    pub table_live: u64,
    /// Its memory in bytes, addresses included.
    pub table_bytes: u64,
    /// Seconds since the kernel program last saw the daemon alive.
    pub heartbeat_age_s: f64,
}

impl From<Status> for Gauges {
    fn from(status: Status) -> Self {
        Self {
            program_version: status.program_version,
            uptime_s: status.uptime_s,
            policy_version: status.policy.version,
            policy_generation: status.policy.generation,
            policy_applied_unix_s: status.policy.applied_unix_s,
            policy_change_refused: status.policy.last_refusal.is_some(),
            bypass: status.bypass,
            interfaces: status.interfaces.into_iter().map(|i| (i.name, i.attached)).collect(),
            rules: status.policy.rules.into_iter().map(|rule| (rule.name, rule.mode)).collect(),
            table_slots: status.table.slots,
            table_live: status.table.live,
            table_bytes: status.table.bytes,
            heartbeat_age_s: status.heartbeat_age_s,
        }
    }
}
