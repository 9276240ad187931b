//! What a metric is, and how it is written. Knows no metric by name.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::Observation;

/// One metric of the table.
pub(super) struct Metric {
    /// Without `limiter_` before it, and without unit and `_total` behind it.
    name: &'static str,
    unit: Option<Unit>,
    help: &'static str,
    series: Series,
}

pub(super) enum Series {
    Counter(fn(&Observation) -> Vec<Sample<u64>>),
    Gauge(fn(&Observation) -> Vec<Sample<f64>>),
}

pub(super) struct Sample<T> {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: T,
}

pub(super) fn counter(
    name: &'static str,
    help: &'static str,
    series: fn(&Observation) -> Vec<Sample<u64>>,
) -> Metric {
    Metric { name, unit: None, help, series: Series::Counter(series) }
}

pub(super) fn gauge(
    name: &'static str,
    help: &'static str,
    series: fn(&Observation) -> Vec<Sample<f64>>,
) -> Metric {
    Metric { name, unit: None, help, series: Series::Gauge(series) }
}

impl Metric {
    /// Counts bytes: `_bytes` goes behind the name.
    pub(super) fn bytes(mut self) -> Self {
        self.unit = Some(Unit::Bytes);
        self
    }

    /// Counts seconds: `_seconds` goes behind the name.
    pub(super) fn seconds(mut self) -> Self {
        self.unit = Some(Unit::Seconds);
        self
    }

    /// Writes the metric and all its samples.
    pub(super) fn encode(
        &self,
        seen: &Observation,
        encoder: &mut DescriptorEncoder,
    ) -> fmt::Result {
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
