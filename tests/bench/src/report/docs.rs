//! Writes a report into the documentation: the chart, and the tables between two marks in
//! docs/PERFORMANCE.md. What stands outside the marks is people's.

use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{chart, floors};

const PAGE: &str = "docs/PERFORMANCE.md";
const CHART: &str = "docs/performance.svg";
const PICTURE: &str = "![Nanoseconds per packet, the worst case first](performance.svg)";
const BEGIN: &str = "<!-- figures: written by `cargo xtask bench --docs` -->\n";
const END: &str = "<!-- end of figures -->";

/// Into the folder `docs` of the working directory.
pub(crate) fn write(report: &Value) -> Result<()> {
    let page = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let page = replaced(&page, &figures(report))
        .with_context(|| format!("{PAGE} has lost the marks around its figures"))?;
    fs::write(PAGE, page).with_context(|| format!("cannot write {PAGE}"))?;
    fs::write(CHART, chart::draw(report)).with_context(|| format!("cannot write {CHART}"))
}

fn replaced(page: &str, figures: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{figures}\n{END}{after}"))
}

fn figures(report: &Value) -> String {
    let parts = [
        PICTURE.to_owned(),
        machine(report),
        judged(report),
        by_test_run(report),
        over_veth(report),
        rest(report),
    ];
    parts.join("\n\n")
}

fn machine(report: &Value) -> String {
    let machine = &report["extra"]["machine"];
    let word = |key: &str| machine[key].as_str().unwrap_or("unknown");
    let text = format!(
        "{}, {} CPUs; Linux {}; commit {}.",
        word("processor"),
        machine["cpus"],
        word("kernel"),
        word("commit")
    );
    if report["extra"]["quick"] == true {
        format!("**A smoke test: no figures.** {text}")
    } else {
        text
    }
}

fn judged(report: &Value) -> String {
    let mut text = "| what must be true | floor | aim | measured |\n|---|---|---|---|".to_owned();
    for floor in &floors::ALL {
        let measured = match floor.measured(report) {
            None => "–".to_owned(),
            Some(value) if floor.floor.holds(value) => number(value),
            Some(value) => format!("**{} – not reached**", number(value)),
        };
        let _ = write!(text, "\n| {} | {} | {} | {measured} |", floor.what, floor.floor, floor.aim);
    }
    text
}

/// The worst case first, each with its spread.
fn by_test_run(report: &Value) -> String {
    let mut rows: Vec<(&str, f64)> = ["test_run_ns", "yardstick_ns"]
        .iter()
        .map(|part| &report[*part])
        .chain([&report["extra"]["ns"]])
        .filter_map(Value::as_object)
        .flatten()
        .filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?)))
        .collect();
    rows.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut text = "| ns per packet | median | least … most |\n|---|---|---|".to_owned();
    for (name, median) in rows {
        let spread = &report["extra"]["spread_ns"][name];
        let _ = write!(text, "\n| `{name}` | {median:.1} | {} … {} |", spread[0], spread[1]);
    }
    text
}

fn over_veth(report: &Value) -> String {
    let mut text = "| sources | behind | Mpps | least … most | ns above bare | passed |\n\
                    |---|---|---|---|---|---|"
        .to_owned();
    for run in report["extra"]["end_to_end"].as_array().into_iter().flatten() {
        let guard = run["guard"].as_str().unwrap_or_default();
        let _ = write!(
            text,
            "\n| {} | {guard} | {} | {} … {} | {} | {} % |",
            grouped(&run["sources"]),
            run["mpps"],
            run["spread_mpps"][0],
            run["spread_mpps"][1],
            run["ns_above_bare"],
            run["passed_percent"],
        );
    }
    let whole = &report["extra"]["whole_window"];
    if whole.is_object() {
        let (rate, passed) = (&whole["mpps"], &whole["passed_percent"]);
        let _ = write!(
            text,
            "\n\nOver a whole window with 1,048,576 sources, its beginning included, limiter takes {rate} Mpps \
             and lets {passed} % pass."
        );
    }
    text
}

fn rest(report: &Value) -> String {
    let verifier = &report["verifier"];
    format!(
        "Verifier: {} instructions on the oldest kernel, {} here; {} of 512 bytes of stack. Table for \
         1,048,576 sources: {} bytes.",
        grouped(&verifier["insns_oldest"]),
        grouped(&verifier["insns_here"]),
        grouped(&verifier["stack_bytes"]),
        grouped(&report["table_bytes"])
    )
}

/// A whole number with commas; a dash for none.
fn grouped(value: &Value) -> String {
    let Some(number) = value.as_u64() else {
        return "–".to_owned();
    };
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn number(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        assert_eq!(grouped(&7.into()), "7");
        assert_eq!(grouped(&1_048_576.into()), "1,048,576");
        assert_eq!(grouped(&Value::Null), "–");
    }

    #[test]
    fn only_what_lies_between_the_marks_changes() {
        let page = format!("a\n{BEGIN}old\n{END}\nb\n");
        assert_eq!(replaced(&page, "new"), Some(format!("a\n{BEGIN}\nnew\n{END}\nb\n")));
        assert_eq!(replaced("a\n", "new"), None);
    }
}
