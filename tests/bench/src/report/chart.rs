//! The chart in docs/PERFORMANCE.md, drawn from a report's JSON: bars by nanoseconds per packet, limiter
//! beside what it is compared with, the worst case first.

use std::fmt::Write as _;

use serde_json::Value;

/// A figure of limiter's, and the same of the yardsticks: label, and path into the report.
struct Row {
    label: &'static str,
    bars: &'static [(Series, &'static str, &'static str)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Series {
    Limiter,
    PerCpu,
    Shared,
    Bound,
}

use Series::{Bound, Limiter, PerCpu, Shared};

const ROWS: [Row; 6] = [
    Row {
        label: "a new source with every packet, table full",
        bars: &[
            (Limiter, "test_run_ns", "spoofed_full"),
            (PerCpu, "extra/ns", "lru_percpu_spoofed"),
            (Shared, "extra/ns", "lru_spoofed"),
        ],
    },
    Row {
        label: "1,048,576 sources",
        bars: &[
            (Limiter, "test_run_ns", "random_1m"),
            (PerCpu, "yardstick_ns", "lru_percpu_1m"),
            (Shared, "yardstick_ns", "lru_1m"),
        ],
    },
    Row {
        label: "65,536 sources",
        bars: &[
            (Limiter, "test_run_ns", "random_64k"),
            (PerCpu, "yardstick_ns", "lru_percpu_64k"),
            (Shared, "yardstick_ns", "lru_64k"),
        ],
    },
    Row {
        label: "two CPUs, 256 sources of one prefix",
        bars: &[
            (Limiter, "test_run_ns", "two_cpu_one_prefix"),
            (PerCpu, "extra/ns", "lru_percpu_two_cpu_one_prefix"),
            (Shared, "yardstick_ns", "lru_two_cpu_one_prefix"),
        ],
    },
    Row {
        label: "one source, admitted and refused",
        bars: &[
            (Limiter, "test_run_ns", "one_source_admitted"),
            (Limiter, "test_run_ns", "one_source_refused"),
        ],
    },
    Row {
        label: "parsing alone: limiter's, and the least there is",
        bars: &[(Limiter, "test_run_ns", "parse_drop"), (Bound, "test_run_ns", "ref_parse_drop")],
    },
];

const WIDTH: f64 = 860.0;
const LEFT: f64 = 330.0;
const LONGEST: f64 = 420.0;
const BAR: f64 = 16.0;
const TOP: f64 = 64.0;

/// An SVG picture.
pub(crate) fn draw(report: &Value) -> String {
    let most = ROWS.iter().flat_map(|row| row.bars).filter_map(|bar| value(report, bar));
    let most = most.fold(1.0, f64::max);
    let (mut body, mut y) = (String::new(), TOP);
    for row in &ROWS {
        let middle = y + BAR * row.bars.len() as f64 / 2.0 + 4.0;
        let _ = writeln!(
            body,
            r#"  <text x="{:.0}" y="{middle:.1}" class="label">{}</text>"#,
            LEFT - 12.0,
            row.label
        );
        for bar in row.bars {
            if let Some(nanos) = value(report, bar) {
                body.push_str(&one(bar.0, nanos, nanos / most * LONGEST, y));
            }
            y += BAR;
        }
        y += 14.0;
    }
    let legend = legend();
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0} {y:.0}" width="{WIDTH:.0}" height="{y:.0}" role="img" aria-labelledby="title text">
  <title id="title">Nanoseconds per packet</title>
  <desc id="text">Bars by nanoseconds per packet, the worst case first; the table in PERFORMANCE.md has the same figures.</desc>
  <style>
    svg {{ --text: #1f2328; --soft: #59636e; --limiter: #1a7f37; --percpu: #bf8700; --shared: #8250df; --bound: #59636e;
          font: 13px "Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif }}
    @media (prefers-color-scheme: dark) {{
      svg {{ --text: #f0f6fc; --soft: #9198a1; --limiter: #3fb950; --percpu: #d29922; --shared: #ab7df8; --bound: #9198a1 }} }}
    text {{ fill: var(--text) }}
    .label {{ text-anchor: end }}
    .soft {{ fill: var(--soft); font-size: 12px }}
    .limiter {{ fill: var(--limiter) }} .percpu {{ fill: var(--percpu) }}
    .shared {{ fill: var(--shared) }} .bound {{ fill: var(--bound) }}
  </style>
  <text x="12" y="22" font-weight="600">Nanoseconds per packet: two rules of three levels each judge it</text>
{legend}{body}</svg>
"#
    )
}

impl Series {
    const ALL: [Self; 4] = [Limiter, PerCpu, Shared, Bound];

    const fn class(self) -> &'static str {
        match self {
            Limiter => "limiter",
            PerCpu => "percpu",
            Shared => "shared",
            Bound => "bound",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Limiter => "limiter",
            PerCpu => "LRU_PERCPU_HASH (limits × CPUs)",
            Shared => "LRU_HASH",
            Bound => "Ethernet, IPv4, clock, drop",
        }
    }
}

fn one(series: Series, nanos: f64, length: f64, y: f64) -> String {
    format!(
        "  <rect x=\"{LEFT:.0}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{:.0}\" class=\"{}\"/>\n  \
         <text x=\"{:.1}\" y=\"{:.1}\" class=\"soft\">{nanos:.0}</text>\n",
        y + 1.0,
        BAR - 2.0,
        series.class(),
        LEFT + length + 6.0,
        y + 12.5,
    )
}

fn legend() -> String {
    let mut x = 12.0;
    let entries = Series::ALL.map(|series| {
        let entry = format!(
            "  <rect x=\"{x:.0}\" y=\"36\" width=\"12\" height=\"12\" class=\"{}\"/>\n  \
             <text x=\"{:.0}\" y=\"46\" class=\"soft\">{}</text>\n",
            series.class(),
            x + 18.0,
            series.words(),
        );
        x += 36.0 + 7.2 * series.words().chars().count() as f64;
        entry
    });
    entries.concat()
}

fn value(report: &Value, (_, part, name): &(Series, &str, &str)) -> Option<f64> {
    part.split('/').fold(report, |value, key| &value[key])[*name].as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bars_are_in_proportion_and_missing_ones_left_out() {
        let report = json!({ "test_run_ns": { "spoofed_full": 200.0, "random_1m": 100.0 } });
        let picture = draw(&report);
        assert!(picture.contains(r#"width="420.0""#) && picture.contains(r#"width="210.0""#));
        assert_eq!(picture.matches("<rect").count(), 2 + Series::ALL.len());
    }
}
