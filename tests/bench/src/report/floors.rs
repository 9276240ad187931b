//! What must be true of the figures, and what is aimed at. Reads the report's JSON alone, so that anyone
//! can reckon it again from what was published.

use serde_json::Value;

/// One requirement.
pub(crate) struct Floor {
    pub(crate) what: &'static str,
    pub(crate) floor: Bound,
    pub(crate) aim: Bound,
    reckon: fn(&Value) -> Option<f64>,
}

/// How large a figure may or must be.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};

impl Bound {
    pub(crate) fn holds(self, measured: f64) -> bool {
        match self {
            AtMost(most) => measured <= most,
            AtLeast(least) => measured >= least,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AtMost(most) => write!(f, "≤ {most}"),
            AtLeast(least) => write!(f, "≥ {least}"),
        }
    }
}

pub(crate) const ALL: [Floor; 14] = [
    Floor {
        what: "parse_drop ÷ ref_parse_drop",
        floor: AtMost(1.6),
        aim: AtMost(1.3),
        reckon: |it| ratio(it, "parse_drop", "ref_parse_drop"),
    },
    Floor {
        what: "one source refused ÷ parse_drop",
        floor: AtMost(1.25),
        aim: AtMost(1.05),
        reckon: |it| ratio(it, "one_source_refused", "parse_drop"),
    },
    Floor {
        what: "one source admitted ÷ parse_drop",
        floor: AtMost(1.4),
        aim: AtMost(1.15),
        reckon: |it| ratio(it, "one_source_admitted", "parse_drop"),
    },
    Floor {
        what: "two CPUs on one prefix ÷ on two prefixes",
        floor: AtMost(1.25),
        aim: AtMost(1.05),
        reckon: |it| ratio(it, "two_cpu_one_prefix", "two_cpu_two_prefixes"),
    },
    Floor {
        what: "LRU_PERCPU yardstick ÷ limiter, 1,048,576 random sources",
        floor: AtLeast(2.2),
        aim: AtLeast(3.0),
        reckon: |it| Some(yardstick(it, "lru_percpu_1m")? / nanos(it, "random_1m")?),
    },
    Floor {
        what: "spoofed over a full table ÷ random_1m",
        floor: AtMost(1.5),
        aim: AtMost(1.1),
        reckon: |it| ratio(it, "spoofed_full", "random_1m"),
    },
    Floor {
        what: "LRU_PERCPU yardstick (1,048,576 sources) ÷ spoofed",
        floor: AtLeast(1.5),
        aim: AtLeast(3.0),
        reckon: |it| Some(yardstick(it, "lru_percpu_1m")? / nanos(it, "spoofed_full")?),
    },
    Floor {
        what: "end to end, limiter ÷ bare, 1 source",
        floor: AtLeast(0.75),
        aim: AtLeast(0.9),
        reckon: |it| to_bare(it, "1"),
    },
    Floor {
        what: "end to end, limiter ÷ bare, 65,536 sources",
        floor: AtLeast(0.6),
        aim: AtLeast(0.8),
        reckon: |it| to_bare(it, "65536"),
    },
    Floor {
        what: "end to end, limiter ÷ bare, 1,048,576 sources",
        floor: AtLeast(0.55),
        aim: AtLeast(0.75),
        reckon: |it| to_bare(it, "1048576"),
    },
    Floor {
        what: "ns above bare, better of nft and hashlimit ÷ limiter, 1 source",
        floor: AtLeast(4.0),
        aim: AtLeast(8.0),
        reckon: |it| above_bare(it, "1"),
    },
    Floor {
        what: "ns above bare, better of nft and hashlimit ÷ limiter, 65,536 sources",
        floor: AtLeast(4.0),
        aim: AtLeast(8.0),
        reckon: |it| above_bare(it, "65536"),
    },
    Floor {
        what: "ns above bare, better of nft and hashlimit ÷ limiter, 1,048,576 sources",
        floor: AtLeast(4.0),
        aim: AtLeast(8.0),
        reckon: |it| above_bare(it, "1048576"),
    },
    Floor {
        what: "verifier instructions on the oldest kernel",
        floor: AtMost(250_000.0),
        aim: AtMost(100_000.0),
        reckon: |it| it["verifier"]["insns_oldest"].as_f64(),
    },
];

impl Floor {
    /// `None` if something it needs wasn't measured.
    pub(crate) fn measured(&self, report: &Value) -> Option<f64> {
        (self.reckon)(report)
    }
}

/// What isn't reached, of what was measured.
pub(crate) fn broken(report: &Value) -> Vec<&'static str> {
    let fails = |it: &&Floor| it.measured(report).is_some_and(|value| !it.floor.holds(value));
    ALL.iter().filter(fails).map(|it| it.what).collect()
}

fn nanos(report: &Value, name: &str) -> Option<f64> {
    report["test_run_ns"][name].as_f64()
}

fn yardstick(report: &Value, name: &str) -> Option<f64> {
    report["yardstick_ns"][name].as_f64()
}

fn ratio(report: &Value, of: &str, to: &str) -> Option<f64> {
    Some(nanos(report, of)? / nanos(report, to)?)
}

fn rate(report: &Value, sources: &str, guard: &str) -> Option<f64> {
    report["end_to_end_mpps"][sources][guard].as_f64()
}

fn to_bare(report: &Value, sources: &str) -> Option<f64> {
    Some(rate(report, sources, "limiter")? / rate(report, sources, "bare")?)
}

fn above_bare(report: &Value, sources: &str) -> Option<f64> {
    let time = |guard| Some(1_000.0 / rate(report, sources, guard)?);
    let bare = time("bare")?;
    let best = time("nft")?.min(time("hashlimit")?);
    // A limiter as fast as a bare drop is beyond any ratio.
    Some((best - bare) / (time("limiter")? - bare).max(0.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_broken_floor_is_named() {
        let report = json!({ "test_run_ns": { "parse_drop": 50.0, "ref_parse_drop": 30.0 } });
        assert_eq!(broken(&report), ["parse_drop ÷ ref_parse_drop"]);
    }

    #[test]
    fn what_was_not_measured_breaks_nothing() {
        assert!(broken(&json!({ "test_run_ns": { "parse_drop": null } })).is_empty());
    }

    #[test]
    fn nanoseconds_above_bare_come_from_rates() {
        let rates = json!({ "bare": 10.0, "limiter": 5.0, "nft": 2.0, "hashlimit": 1.0 });
        let report = json!({ "end_to_end_mpps": { "1": rates } });
        assert_eq!(above_bare(&report, "1"), Some(4.0));
    }
}
