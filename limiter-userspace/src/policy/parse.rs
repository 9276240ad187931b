//! From the text of a policy file to a [`Policy`]: the top of the file. All problems come at once.

use limiter_common::layout::{MAX_RULES, OnFault};
use limiter_common::packet::Fault;
use toml::de::{DeTable, Error};

use super::document::{Fields, Keys, Lines, Place};
use super::model::{Policy, Rule};
use super::problem::{Findings, Problem, Problems};
use super::rule::{Names, choice, rule};
use super::words::grouped;

/// Bytes in a policy file, at most.
pub const MAX_BYTES: usize = 1 << 20;

const KEYS: Keys = Keys {
    known: &["schema", "version", "rule", "parse"],
    not_built: &["tier", "override", "exempt", "block"],
};
const FAULT_KEYS: Keys =
    Keys { known: &["cut-off", "malformed", "vlan-depth", "header-depth"], not_built: &[] };

/// A good policy, and what its author would want to know all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The policy.
    pub policy: Policy,
    /// In the order of their lines.
    pub warnings: Vec<Problem>,
}

impl Policy {
    /// Reads a policy file.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it; in a text that isn't TOML, its syntax alone.
    pub fn parse(text: &str) -> Result<Checked, Problems> {
        let lines = Lines::of(text);
        let place = Place::file(&lines);
        if text.len() > MAX_BYTES {
            let reason = format!("{} bytes are too long for a policy", grouped(text.len() as u64));
            return Err(place.problem(reason, "write at most 1 MiB").into());
        }
        let document = DeTable::parse(text).map_err(|error| syntax(&place, &error))?;
        let fields = Fields::new(place, document.get_ref());
        let mut findings = Findings::default();
        schema(&fields, &mut findings)?;
        fields.check_keys(&KEYS, &mut findings);
        let version = findings.keep(version(&fields));
        let on_fault = on_fault(&fields, &mut findings);
        let rules = rules(&fields, &mut findings);
        let warnings = findings.finish()?;
        let policy = Policy { version: version.flatten(), rules, on_fault };
        Ok(Checked { policy, warnings })
    }
}

fn syntax(place: &Place<'_>, error: &Error) -> Problem {
    let at = place.clone().at(error.span().map_or(0, |span| span.start));
    at.problem(format!("not TOML: {}", error.message()), "see https://toml.io for the syntax")
}

/// Another schema gives every key another meaning, so nothing else is said about such a file. One without
/// any is read as ours: whoever forgot it wants to hear of the rest too.
fn schema(fields: &Fields<'_>, findings: &mut Findings) -> Result<(), Problem> {
    let fix = "write schema = 1 at the top of the file";
    let Some(node) = findings.keep(fields.need("schema", fix)) else {
        return Ok(());
    };
    match node.integer() {
        Some(1) => Ok(()),
        Some(_) => {
            let reason = format!("{} is not a schema that this version knows", node.shown());
            Err(node.place.problem(reason, "write schema = 1, or use a newer limiter"))
        }
        None => {
            findings.add(|| node.wrong("a number", fix));
            Ok(())
        }
    }
}

fn version(fields: &Fields<'_>) -> Result<Option<u64>, Problem> {
    let Some(node) = fields.get("version") else {
        return Ok(None);
    };
    let version = node.integer().and_then(|number| u64::try_from(number).ok());
    match version {
        Some(version) if version > 0 => Ok(Some(version)),
        _ => Err(node.wrong("a version", "write a whole number from 1, or leave it out")),
    }
}

/// What isn't said, or can't be read, is [`OnFault::Limit`].
fn on_fault(fields: &Fields<'_>, findings: &mut Findings) -> [OnFault; Fault::ALL.len()] {
    const CHOICES: [(&str, OnFault); 3] =
        [("limit", OnFault::Limit), ("pass", OnFault::Pass), ("drop", OnFault::Drop)];
    let node = fields.get("parse").map(|node| node.fields("write a line [parse], then its keys"));
    let Some(fields) = node.and_then(|fields| findings.keep(fields)) else {
        return [OnFault::Limit; Fault::ALL.len()];
    };
    fields.check_keys(&FAULT_KEYS, findings);
    Fault::ALL.map(|fault| {
        let answer = choice(&fields, fault.name(), &CHOICES, &[]);
        findings.keep(answer).unwrap_or(OnFault::Limit)
    })
}

fn rules(fields: &Fields<'_>, findings: &mut Findings) -> Vec<Rule> {
    let Some(node) = fields.get("rule") else {
        let place = fields.place.key("rule");
        findings.warn(place.problem("there is none: everything passes", "add a [[rule]]"));
        return Vec::new();
    };
    let Some(items) =
        findings.keep(node.items(MAX_RULES as usize, "begin each rule with a line [[rule]]"))
    else {
        return Vec::new();
    };
    let mut names = Names::new();
    let numbered = items.iter().zip(1..);
    numbered.filter_map(|(item, number)| rule(item, number, &mut names, findings)).collect()
}
