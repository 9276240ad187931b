//! Reads one `[[rule]]`: each key once, each problem set aside, and a rule only if there was none.

use std::collections::HashMap;

use limiter_common::clock::WindowLength;
use limiter_common::layout::MAX_NAME;

use super::amount::window;
use super::document::{Fields, Keys, Node, did_you_mean};
use super::limits::limits;
use super::matches::matches;
use super::model::{Mode, Rule, RuleName, Unit};
use super::problem::{Findings, Problem};
use super::words::{bare, one_of};

const KEYS: Keys = Keys {
    known: &["name", "match", "limit", "window", "unit", "mode", "action", "scope", "algorithm"],
    not_built: &["mark", "on_authority_loss"],
};

const UNITS: [(&str, Unit); 2] = [("packets", Unit::Packets), ("bytes", Unit::Bytes)];
const MODES: [(&str, Mode); 2] = [("enforce", Mode::Enforce), ("shadow", Mode::Shadow)];

/// Names so far, with their lines.
pub(super) type Names = HashMap<String, usize>;

/// The rule, if nothing is wrong with it. `number` counts from 1.
pub(super) fn rule(
    node: &Node<'_>,
    number: usize,
    names: &mut Names,
    findings: &mut Findings,
) -> Option<Rule> {
    let table = node.value.as_table();
    let written =
        table.and_then(|table| table.get("name")).and_then(|name| name.get_ref().as_str());
    let label = match written {
        Some(name) if !name.is_empty() => bare(name),
        _ => format!("#{number}"),
    };
    let fields = findings.keep(node.fields("begin each rule with a line [[rule]]"))?;
    let fields = fields.in_rule(&label);
    fields.check_keys(&KEYS, findings);
    one_choice(&fields, findings);
    let name = findings.keep(name(&fields, names));
    let unit = findings.keep(choice(&fields, "unit", &UNITS, &[]));
    let mode = findings.keep(choice(&fields, "mode", &MODES, &[]));
    let window = findings.keep(window_length(&fields));
    let matches = matches(&fields, findings);
    let limits = limits(&fields, unit, findings);
    Some(Rule {
        name: name?,
        matches: matches?,
        limits: limits?,
        window: window?,
        unit: unit?,
        mode: mode?,
    })
}

fn name(fields: &Fields<'_>, names: &mut Names) -> Result<RuleName, Problem> {
    let fix = "write 1 to 48 of a-z, 0-9 and -, as \"new-connections\"";
    let node = fields.need("name", fix)?;
    let name = node.text(fix)?;
    let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(allowed) {
        return Err(node.wrong("a name", fix));
    }
    let line = node.place.line();
    if let Some(first) = names.insert(name.to_owned(), line) {
        let reason = format!("the rule in line {first} has this name too");
        return Err(node.place.problem(reason, "give each rule a name of its own"));
    }
    Ok(RuleName(name.to_owned()))
}

fn window_length(fields: &Fields<'_>) -> Result<WindowLength, Problem> {
    let example = "write a length with its unit, as window = \"10s\"";
    let node = fields.need("window", example)?;
    let text = node.text(example)?;
    window(text).map_err(|(reason, fix)| node.place.problem(reason, fix))
}

/// Keys that the format has for more than is built: the one value there is must not be mistyped.
fn one_choice(fields: &Fields<'_>, findings: &mut Findings) {
    for (key, built, not_built) in [
        ("action", "drop", &["reject", "mark"] as &[&str]),
        ("scope", "host", &["fleet"]),
        ("algorithm", "fixed-window", &["sliding-window", "token-bucket"]),
    ] {
        findings.keep(choice(fields, key, &[(built, ())], not_built));
    }
}

/// One word of several; the first is the default.
pub(super) fn choice<T: Copy>(
    fields: &Fields<'_>,
    key: &str,
    choices: &[(&str, T)],
    not_built: &[&str],
) -> Result<T, Problem> {
    let Some(node) = fields.get(key) else {
        return Ok(choices[0].1);
    };
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    let fix = format!("write {}", one_of(words.iter().copied()));
    let written = node.text(&fix)?;
    if let Some((_, value)) = choices.iter().find(|(word, _)| *word == written) {
        return Ok(*value);
    }
    if not_built.contains(&written) {
        return Err(node.place.not_built(&node.shown(), fix));
    }
    match did_you_mean(written, &words) {
        meant if meant.starts_with("did") => Err(node.wrong("known here", &meant)),
        _ => Err(node.wrong("known here", &fix)),
    }
}
