//! What can be seen from outside: counts as plain values, the metrics made of them, the exporter.

pub mod counts;
mod crowd;
pub mod exporter;
pub mod gauges;
pub mod metrics;
