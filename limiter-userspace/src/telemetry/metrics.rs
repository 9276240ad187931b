//! The one table of metrics: name, help, and how its series come out of plain values. A new metric is
//! a new row. No label ever holds an address, so that the policy bounds the number of series.

mod metric;
mod series;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::counts::Counts;
use super::gauges::Gauges;
use metric::{Metric, counter, gauge};
use series::{crowded, displaced, each, exits, faults, info, one, rules, states, verdict, wide};

/// What [`text`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the metrics are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// The kernel's counters.
    pub counts: Counts,
    /// The daemon's state.
    pub gauges: Gauges,
}

/// Every metric there is; long because it is a table.
fn table() -> Vec<Metric> {
    vec![
        // The kernel's counters: they grow as long as the maps live, daemon or no daemon.
        counter("frames", "Frames by how they left the program; each has one exit", |o| {
            exits(&o.counts, |count| count.packets)
        }),
        counter(
            "frame",
            "Bytes of frames by how they left the program, Ethernet header included",
            |o| exits(&o.counts, |count| count.bytes),
        )
        .bytes(),
        counter("unreadable_frames", "Frames whose headers can't be read, by fault", |o| {
            faults(&o.counts)
        }),
        counter(
            "rule_packets",
            "Packets judged by a rule; the level is the one that had no room",
            |o| rules(&o.counts, verdict, |count| count.packets),
        ),
        counter("rule", "Bytes of packets judged by a rule", |o| {
            rules(&o.counts, verdict, |count| count.bytes)
        })
        .bytes(),
        counter(
            "rule_crowded",
            "Packets not judged at a level, its bucket full of keys at limits",
            |o| rules(&o.counts, crowded, |count| count.packets),
        ),
        counter("rule_displaced", "Keys that lost their count at a level for a new key", |o| {
            rules(&o.counts, displaced, |count| count.packets)
        }),
        // The policy.
        gauge("policy_version", "Version of the policy in force; 0 for none", |o| {
            one(wide(o.gauges.policy_version))
        }),
        gauge("policy_generation", "Policy changes since the maps were made", |o| {
            one(o.gauges.policy_generation.into())
        }),
        gauge("policy_applied_timestamp", "Unix time at which the policy took effect", |o| {
            one(wide(o.gauges.policy_applied_unix_s))
        })
        .seconds(),
        gauge("policy_change_refused", "1 if the last change of the policy was refused", |o| {
            one(o.gauges.policy_change_refused.into())
        }),
        gauge("rule_mode", "1 for the mode that each rule is in", |o| {
            each(&o.gauges.rules, "rule", "mode", &["enforce", "shadow"])
        }),
        gauge(
            "bypass",
            "1 for the bypass in force; anything but off means nothing is refused",
            |o| states(&["off", "shadow", "pass"], &o.gauges.bypass, "mode", &[]),
        ),
        // Where it runs.
        gauge(
            "interface_attached",
            "1 for the way in which the program is attached, all 0 if not",
            |o| each(&o.gauges.interfaces, "interface", "mode", &["native", "generic"]),
        ),
        gauge("table_slots", "Keys that the table can hold at most", |o| {
            one(wide(o.gauges.table_slots))
        }),
        gauge("table_live_slots", "Keys in the table whose windows are open", |o| {
            one(wide(o.gauges.table_live))
        }),
        gauge("table", "Memory of the table, addresses included", |o| {
            one(wide(o.gauges.table_bytes))
        })
        .bytes(),
        // The daemon.
        gauge("heartbeat_age", "Time since the kernel program last saw the daemon alive", |o| {
            one(o.gauges.heartbeat_age_s)
        })
        .seconds(),
        gauge("uptime", "Time since the daemon started", |o| one(wide(o.gauges.uptime_s)))
            .seconds(),
        gauge("build_info", "1, labelled with the program's version", |o| {
            info("version", &o.gauges.program_version)
        }),
    ]
}

impl Collector for Observation {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        table().iter().try_for_each(|metric| metric.encode(self, &mut encoder))
    }
}

/// All metrics in the OpenMetrics text format.
///
/// # Errors
/// None in practice: writing to a string does not fail.
pub fn text(seen: Observation) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("limiter");
    registry.register_collector(Box::new(seen));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
