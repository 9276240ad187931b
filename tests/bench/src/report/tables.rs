//! The report for people: what was measured, and what must be true of it.

use serde_json::Value;

use super::floors;

/// Floors, aims and what was measured, as far as it was. Without a judgement if `judged` is false.
pub(crate) fn floors(report: &Value, judged: bool) -> String {
    let mut text = String::new();
    for floor in &floors::ALL {
        let Some(measured) = floor.measured(report) else { continue };
        if text.is_empty() {
            text = format!("{:<70} {:>9} {:>9} {:>9}\n", "", "floor", "aim", "measured");
        }
        let mark = match (floor.floor.holds(measured), floor.aim.holds(measured)) {
            _ if !judged => "",
            (false, _) => "BROKEN",
            (true, false) => "ok",
            (true, true) => "ok, aim reached",
        };
        let line = format!(
            "{:<70} {:>9} {:>9} {:>9}  {mark}",
            floor.what,
            floor.floor.to_string(),
            floor.aim.to_string(),
            number(measured),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Guards by number of sources.
pub(crate) fn end_to_end(report: &Value) -> String {
    let runs = report["extra"]["end_to_end"].as_array().map_or(&[][..], Vec::as_slice);
    let lines = runs.iter().map(|run| {
        format!(
            "{:>9} sources  {:<15} {:>6.2} Mpps  {:>6.2} … {:<6.2} {:>7.0} ns above bare  \
             {:>6.2} % passed  {:>6.2} % arrived\n",
            run["sources"].to_string(),
            run["guard"].as_str().unwrap_or_default(),
            run["mpps"].as_f64().unwrap_or(f64::NAN),
            run["spread_mpps"][0].as_f64().unwrap_or(f64::NAN),
            run["spread_mpps"][1].as_f64().unwrap_or(f64::NAN),
            run["ns_above_bare"].as_f64().unwrap_or(f64::NAN),
            run["passed_percent"].as_f64().unwrap_or(f64::NAN),
            run["delivered_percent"].as_f64().unwrap_or(f64::NAN),
        )
    });
    lines.collect()
}

fn number(measured: f64) -> String {
    if measured >= 1_000.0 { format!("{measured:.0}") } else { format!("{measured:.2}") }
}
