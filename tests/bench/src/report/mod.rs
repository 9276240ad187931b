//! All that a run has found, as one JSON value: what is printed, judged, drawn and written into the
//! documentation is read from there, so that all of it says the same.

mod chart;
pub(crate) mod docs;
pub(crate) mod floors;
pub(crate) mod tables;

use serde_json::{Map, Value, json};

use crate::end_to_end::{Kind, Reached, Whole};
use crate::machine::Machine;
use crate::rounds::Figures;

/// Names and places that readers of the JSON rely on; whatever else is measured goes under `extra`.
const TEST_RUN: [&str; 11] = [
    "bare",
    "ref_parse_drop",
    "parse_drop",
    "one_source_refused",
    "one_source_admitted",
    "random_64k",
    "random_1m",
    "spoofed_full",
    "ipv6_refused",
    "two_cpu_one_prefix",
    "two_cpu_two_prefixes",
];
const YARDSTICKS: [&str; 5] =
    ["lru_percpu_64k", "lru_percpu_1m", "lru_64k", "lru_1m", "lru_two_cpu_one_prefix"];

/// What the kernel's verifier makes of the program.
#[derive(Clone, Copy, Default)]
pub(crate) struct Verifier {
    pub(crate) oldest: Option<u32>,
    pub(crate) here: Option<u32>,
    pub(crate) stack_bytes: Option<u32>,
}

/// What a run has found.
pub(crate) struct Found<'a> {
    pub(crate) figures: &'a Figures,
    pub(crate) end_to_end: &'a [Reached],
    pub(crate) whole: Option<&'a Whole>,
    pub(crate) verifier: Verifier,
    pub(crate) table_bytes: Option<u64>,
    pub(crate) machine: &'a Machine,
    pub(crate) quick: bool,
}

impl Found<'_> {
    /// What wasn't measured is `null`.
    pub(crate) fn to_json(&self) -> Value {
        let Verifier { oldest, here, stack_bytes } = self.verifier;
        let nanos = |name: &str| self.figures.get(name).map(|it| rounded(it.median(), 1));
        let chosen = |names: &[&str]| -> Map<String, Value> {
            names.iter().map(|name| ((*name).into(), json!(nanos(name)))).collect()
        };
        json!({
            "test_run_ns": chosen(&TEST_RUN),
            "yardstick_ns": chosen(&YARDSTICKS),
            "end_to_end_mpps": self.rates(),
            "verifier": { "insns_oldest": oldest, "insns_here": here, "stack_bytes": stack_bytes },
            "table_bytes": self.table_bytes,
            "extra": self.extra(),
        })
    }

    fn rates(&self) -> Map<String, Value> {
        let by_guard = |sources: u64| -> Map<String, Value> {
            let rate = |kind| self.reached(sources, kind).map(|it| rounded(it.mpps.median(), 3));
            Kind::COMPARED.into_iter().map(|it| (it.name().into(), json!(rate(it)))).collect()
        };
        [1, 65_536, 1_048_576]
            .into_iter()
            .map(|sources| (sources.to_string(), json!(by_guard(sources))))
            .collect()
    }

    fn reached(&self, sources: u64, kind: Kind) -> Option<&Reached> {
        self.end_to_end.iter().find(|it| it.sources == sources && it.kind == kind)
    }

    fn extra(&self) -> Value {
        let others = self
            .figures
            .iter()
            .filter(|(name, _)| !TEST_RUN.contains(name) && !YARDSTICKS.contains(name));
        let others: Map<String, Value> = others
            .map(|(name, figure)| ((*name).into(), json!(rounded(figure.median(), 1))))
            .collect();
        let spread: Map<String, Value> = self
            .figures
            .iter()
            .map(|(name, it)| {
                ((*name).into(), json!([rounded(it.least(), 1), rounded(it.most(), 1)]))
            })
            .collect();
        json!({
            "ns": others,
            "spread_ns": spread,
            "end_to_end": self.end_to_end.iter().map(|it| self.in_full(it)).collect::<Vec<_>>(),
            "whole_window": self.whole.map(|it| json!({
                "mpps": rounded(it.mpps, 3),
                "passed_percent": rounded(it.passed * 100.0, 2),
            })),
            "machine": {
                "processor": self.machine.processor,
                "cpus": self.machine.cpus,
                "kernel": self.machine.kernel,
                "commit": self.machine.commit,
            },
            "quick": self.quick,
        })
    }

    fn in_full(&self, reached: &Reached) -> Value {
        let bare = self.reached(reached.sources, Kind::Bare);
        let above = bare.map(|bare| rounded(reached.nanos.median() - bare.nanos.median(), 1));
        json!({
            "sources": reached.sources,
            "guard": reached.kind.name(),
            "mpps": rounded(reached.mpps.median(), 3),
            "ns": rounded(reached.nanos.median(), 1),
            "ns_above_bare": above,
            "spread_mpps": [rounded(reached.mpps.least(), 3), rounded(reached.mpps.most(), 3)],
            "passed_percent": rounded(reached.passed * 100.0, 2),
            "delivered_percent": rounded(reached.delivered * 100.0, 2),
        })
    }
}

/// To this many places.
fn rounded(number: f64, places: i32) -> f64 {
    let scale = 10_f64.powi(places);
    (number * scale).round() / scale
}
