//! A parsed TOML document with the place of everything in it, so that each leaf can say what is wrong
//! and where. Knows TOML, not policies.

use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::problem::{Findings, Problem};
use super::words::{bare, grouped, nearest, quoted};

/// Where lines begin.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        Self(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(i, _)| i).collect())
    }

    /// The line, from 1, that holds the byte at this offset.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|newline| *newline < offset) + 1
    }
}

/// Where something stands: line, rule, key.
#[derive(Clone)]
pub(super) struct Place<'d> {
    lines: &'d Lines,
    offset: usize,
    rule: Option<Rc<str>>,
    key: String,
}

impl<'d> Place<'d> {
    /// The file itself.
    pub(super) fn file(lines: &'d Lines) -> Self {
        Self { lines, offset: 0, rule: None, key: String::new() }
    }

    /// The same place, as the top of this rule.
    pub(super) fn in_rule(&self, rule: &str) -> Self {
        Self { rule: Some(rule.into()), key: String::new(), ..self.clone() }
    }

    /// A key below this place; missing keys stand where their table begins.
    pub(super) fn key(&self, key: &str) -> Self {
        let dot = if self.key.is_empty() { "" } else { "." };
        Self { key: format!("{}{dot}{}", self.key, bare(key)), ..self.clone() }
    }

    pub(super) fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    pub(super) fn line(&self) -> usize {
        self.lines.line(self.offset)
    }

    pub(super) fn problem(&self, reason: impl Into<String>, fix: impl Into<String>) -> Problem {
        Problem {
            rule: self.rule.as_deref().map(str::to_owned),
            key: self.key.clone(),
            line: self.line(),
            reason: reason.into(),
            fix: fix.into(),
        }
    }

    /// For what DESIGN reserves, so that nobody takes it for a typing mistake.
    pub(super) fn not_built(&self, what: &str, fix: impl Into<String>) -> Problem {
        self.problem(format!("{what} is not built in this version"), fix)
    }
}

/// A value and its place.
pub(super) struct Node<'d> {
    pub(super) place: Place<'d>,
    pub(super) value: &'d DeValue<'d>,
}

impl<'d> Node<'d> {
    /// A string, or the problem with an example of what to write.
    pub(super) fn text(&self, example: &str) -> Result<&'d str, Problem> {
        self.value.as_str().ok_or_else(|| self.wrong("a string", example))
    }

    /// A table, or the problem with an example of what to write.
    pub(super) fn fields(&self, example: &str) -> Result<Fields<'d>, Problem> {
        let table = self.value.as_table().ok_or_else(|| self.wrong("a table", example))?;
        Ok(Fields { place: self.place.clone(), table })
    }

    /// The elements of an array of 1 … `most` elements.
    pub(super) fn items(&self, most: usize, example: &str) -> Result<Vec<Node<'d>>, Problem> {
        let array = self.value.as_array().ok_or_else(|| self.wrong("an array", example))?;
        if array.is_empty() {
            return Err(self.place.problem("is empty", example));
        }
        if array.len() > most {
            let reason = format!("{} entries are too many", grouped(array.len() as u64));
            return Err(self.place.problem(reason, format!("write at most {most}")));
        }
        let node = |item: &'d Spanned<DeValue<'d>>| Node {
            place: self.place.clone().at(item.span().start),
            value: item.get_ref(),
        };
        Ok(array.iter().map(node).collect())
    }

    /// An integer that fits 128 bits; longer ones are as good as the largest.
    pub(super) fn integer(&self) -> Option<i128> {
        let integer = self.value.as_integer()?;
        let (digits, radix) = (integer.as_str(), integer.radix());
        let beyond = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
        Some(i128::from_str_radix(digits, radix).unwrap_or(beyond))
    }

    /// The value as an error message shows it.
    pub(super) fn shown(&self) -> String {
        match self.value {
            DeValue::String(text) => quoted(text),
            DeValue::Integer(integer) => bare(integer.as_str()),
            DeValue::Float(float) => bare(float.as_str()),
            DeValue::Boolean(boolean) => boolean.to_string(),
            DeValue::Datetime(datetime) => datetime.to_string(),
            DeValue::Array(_) => "[…]".into(),
            DeValue::Table(_) => "{…}".into(),
        }
    }

    /// The problem that this value has the wrong type.
    pub(super) fn wrong(&self, wanted: &str, fix: &str) -> Problem {
        self.place.problem(format!("{} is not {wanted}", self.shown()), fix)
    }
}

/// The keys that a table may have.
pub(super) struct Keys {
    pub(super) known: &'static [&'static str],
    /// Part of the format, refused for now.
    pub(super) not_built: &'static [&'static str],
}

/// A table and its place.
pub(super) struct Fields<'d> {
    pub(super) place: Place<'d>,
    table: &'d DeTable<'d>,
}

impl<'d> Fields<'d> {
    pub(super) fn new(place: Place<'d>, table: &'d DeTable<'d>) -> Self {
        Self { place, table }
    }

    /// The same table, as the top of this rule.
    pub(super) fn in_rule(self, rule: &str) -> Self {
        Self { place: self.place.in_rule(rule), ..self }
    }

    pub(super) fn get(&self, key: &str) -> Option<Node<'d>> {
        let value = self.table.get(key)?;
        let place = self.place.key(key).at(value.span().start);
        Some(Node { place, value: value.get_ref() })
    }

    /// A key that must be there. If it was mistyped, that is the problem; it isn't told twice.
    pub(super) fn need(&self, key: &str, fix: &str) -> Result<Node<'d>, Problem> {
        let missing = || {
            let mistyped =
                self.table.keys().find(|other| nearest(other.get_ref(), [key]).is_some());
            match mistyped {
                Some(other) => self.unknown(other, did_you_mean(other.get_ref(), &[key])),
                None => self.place.key(key).problem("is missing", fix),
            }
        };
        self.get(key).ok_or_else(missing)
    }

    /// Reports every key that isn't known.
    pub(super) fn check_keys(&self, keys: &Keys, findings: &mut Findings) {
        for key in self.table.keys() {
            let written = key.get_ref().as_ref();
            if keys.known.contains(&written) {
                continue;
            }
            findings.add(|| match keys.not_built.contains(&written) {
                true => self.place_of(key).not_built("this", "remove it"),
                false => self.unknown(key, did_you_mean(written, keys.known)),
            });
        }
    }

    fn unknown(&self, key: &Spanned<DeString<'d>>, fix: String) -> Problem {
        self.place_of(key).problem("unknown key", fix)
    }

    fn place_of(&self, key: &Spanned<DeString<'d>>) -> Place<'d> {
        self.place.key(key.get_ref()).at(key.span().start)
    }
}

/// The fix for a word that isn't one of `known`.
pub(super) fn did_you_mean(written: &str, known: &[&str]) -> String {
    match nearest(written, known.iter().copied()) {
        Some(word) => format!("did you mean \"{word}\"?"),
        None => format!("write one of: {}", known.join(", ")),
    }
}
