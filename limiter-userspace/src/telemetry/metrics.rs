//! The one table of metrics: name, help, and how its series come out of plain values. A new metric is
//! a new row. No label ever holds an address, so that the policy bounds the number of series.

use std::fmt;

use limiter_common::counters::{Count, RuleCount};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::counts::Counts;
use super::gauges::Gauges;

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

/// One metric of the table.
struct Metric {
    /// Without `limiter_` before it, and without unit and `_total` behind it.
    name: &'static str,
    unit: Option<Unit>,
    help: &'static str,
    series: Series,
}

enum Series {
    Counter(fn(&Observation) -> Vec<Sample<u64>>),
    Gauge(fn(&Observation) -> Vec<Sample<f64>>),
}

struct Sample<T> {
    labels: Vec<(&'static str, String)>,
    value: T,
}

fn counter(
    name: &'static str,
    help: &'static str,
    series: fn(&Observation) -> Vec<Sample<u64>>,
) -> Metric {
    Metric {
        name,
        unit: None,
        help,
        series: Series::Counter(series),
    }
}

fn gauge(
    name: &'static str,
    help: &'static str,
    series: fn(&Observation) -> Vec<Sample<f64>>,
) -> Metric {
    Metric {
        name,
        unit: None,
        help,
        series: Series::Gauge(series),
    }
}

impl Metric {
    fn bytes(mut self) -> Self {
        self.unit = Some(Unit::Bytes);
        self
    }

    fn seconds(mut self) -> Self {
        self.unit = Some(Unit::Seconds);
        self
    }
}

fn table() -> Vec<Metric> {
    vec![
        // The kernel's counters: they grow as long as the maps live, daemon or no daemon.
        counter(
            "frames",
            "Frames by how they left the program; each has one exit",
            |o| exits(&o.counts, |count| count.packets),
        ),
        counter(
            "frame",
            "Bytes of frames by how they left the program, Ethernet header included",
            |o| exits(&o.counts, |count| count.bytes),
        )
        .bytes(),
        counter(
            "unreadable_frames",
            "Frames whose headers can't be read, by fault",
            |o| faults(&o.counts),
        ),
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
        counter(
            "rule_displaced",
            "Keys that lost their count at a level for a new key",
            |o| rules(&o.counts, displaced, |count| count.packets),
        ),
        // The policy.
        gauge(
            "policy_version",
            "Version of the policy in force; 0 for none",
            |o| one(wide(o.gauges.policy_version)),
        ),
        gauge(
            "policy_generation",
            "Policy changes since the maps were made",
            |o| one(o.gauges.policy_generation.into()),
        ),
        gauge(
            "policy_applied_timestamp",
            "Unix time at which the policy took effect",
            |o| one(wide(o.gauges.policy_applied_unix_s)),
        )
        .seconds(),
        gauge(
            "policy_change_refused",
            "1 if the last change of the policy was refused",
            |o| one(o.gauges.policy_change_refused.into()),
        ),
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
            |o| {
                each(
                    &o.gauges.interfaces,
                    "interface",
                    "mode",
                    &["native", "generic"],
                )
            },
        ),
        gauge("table_slots", "Keys that the table can hold at most", |o| {
            one(wide(o.gauges.table_slots))
        }),
        gauge(
            "table_live_slots",
            "Keys in the table whose windows are open",
            |o| one(wide(o.gauges.table_live)),
        ),
        gauge("table", "Memory of the table, addresses included", |o| {
            one(wide(o.gauges.table_bytes))
        })
        .bytes(),
        // The daemon.
        gauge(
            "heartbeat_age",
            "Time since the kernel program last saw the daemon alive",
            |o| one(o.gauges.heartbeat_age_s),
        )
        .seconds(),
        gauge("uptime", "Time since the daemon started", |o| {
            one(wide(o.gauges.uptime_s))
        })
        .seconds(),
        gauge(
            "build_info",
            "1, labelled with the program's version",
            |o| {
                vec![Sample {
                    labels: vec![("version", o.gauges.program_version.clone())],
                    value: 1.0,
                }]
            },
        ),
    ]
}

/// A gauge is a float in the format itself; none of ours comes near 2^53.
#[expect(clippy::cast_precision_loss, reason = "see above")]
const fn wide(value: u64) -> f64 {
    value as f64
}

fn one(value: f64) -> Vec<Sample<f64>> {
    vec![Sample {
        labels: Vec::new(),
        value,
    }]
}

/// One sample per possible state, 1 for the present one.
fn states(
    all: &[&str],
    now: &str,
    label: &'static str,
    others: &[(&'static str, String)],
) -> Vec<Sample<f64>> {
    all.iter()
        .map(|state| {
            let mut labels = others.to_vec();
            labels.push((label, (*state).to_owned()));
            Sample {
                labels,
                value: f64::from(u8::from(*state == now)),
            }
        })
        .collect()
}

/// The states of several things.
fn each(
    things: &[(String, String)],
    label: &'static str,
    state: &'static str,
    all: &[&str],
) -> Vec<Sample<f64>> {
    things
        .iter()
        .flat_map(|(name, now)| states(all, now, state, &[(label, name.clone())]))
        .collect()
}

fn exits(counts: &Counts, value: fn(&Count) -> u64) -> Vec<Sample<u64>> {
    let sample = |exit: &str, count| Sample {
        labels: vec![("exit", exit.to_owned())],
        value: value(count),
    };
    counts
        .exits
        .iter()
        .map(|(exit, count)| sample(exit.name(), count))
        .collect()
}

fn faults(counts: &Counts) -> Vec<Sample<u64>> {
    let sample = |fault: &str, value| Sample {
        labels: vec![("fault", fault.to_owned())],
        value,
    };
    counts
        .faults
        .iter()
        .map(|(fault, count)| sample(fault.name(), count.packets))
        .collect()
}

/// The labels of a rule's count, beside the rule's name; `None` if it belongs to another metric.
type Labels = fn(RuleCount) -> Option<Vec<(&'static str, String)>>;

fn rules(counts: &Counts, labels: Labels, value: fn(&Count) -> u64) -> Vec<Sample<u64>> {
    let mut samples = Vec::new();
    for rule in &counts.rules {
        for (kind, count) in &rule.counts {
            let Some(more) = labels(*kind) else { continue };
            let mut labels = vec![("rule", rule.name.clone())];
            labels.extend(more);
            samples.push(Sample {
                labels,
                value: value(count),
            });
        }
    }
    samples
}

fn verdict(kind: RuleCount) -> Option<Vec<(&'static str, String)>> {
    // An empty label is an absent one; written out, so that the series of a family look alike.
    let (verdict, level) = match kind {
        RuleCount::Passed => ("passed", ""),
        RuleCount::Refused(level) => ("refused", level.name()),
        RuleCount::WouldRefuse(level) => ("would-refuse", level.name()),
        RuleCount::Contended => ("contended", ""),
        RuleCount::Crowded(_) | RuleCount::Displaced(_) => return None,
    };
    Some(vec![
        ("verdict", verdict.to_owned()),
        ("level", level.to_owned()),
    ])
}

fn crowded(kind: RuleCount) -> Option<Vec<(&'static str, String)>> {
    let RuleCount::Crowded(level) = kind else {
        return None;
    };
    Some(vec![("level", level.name().to_owned())])
}

fn displaced(kind: RuleCount) -> Option<Vec<(&'static str, String)>> {
    let RuleCount::Displaced(level) = kind else {
        return None;
    };
    Some(vec![("level", level.name().to_owned())])
}

impl Metric {
    fn encode(&self, seen: &Observation, encoder: &mut DescriptorEncoder) -> fmt::Result {
        match self.series {
            Series::Counter(series) => {
                let samples = series(seen).into_iter();
                let samples = samples.map(|s| (s.labels, ConstCounter::new(s.value)));
                self.family(encoder, MetricType::Counter, samples)
            }
            Series::Gauge(series) => {
                let samples = series(seen).into_iter();
                let samples = samples.map(|s| (s.labels, ConstGauge::new(s.value)));
                self.family(encoder, MetricType::Gauge, samples)
            }
        }
    }

    fn family(
        &self,
        encoder: &mut DescriptorEncoder,
        kind: MetricType,
        samples: impl Iterator<Item = (Vec<(&'static str, String)>, impl EncodeMetric)>,
    ) -> fmt::Result {
        let mut family =
            encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), kind)?;
        for (labels, value) in samples {
            value.encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Collector for Observation {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        table()
            .iter()
            .try_for_each(|metric| metric.encode(self, &mut encoder))
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
