//! What is wrong with a policy, as people read it: where, what, and what to write instead.

use std::fmt;

use serde::Serialize;

/// Kept at most; whatever is wrong beyond that is only counted.
const KEPT: usize = 50;

/// One mistake, or one thing that a careful person would want to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The rule's name as written, or `#2` for the second rule if it has none; `None` outside rules.
    pub rule: Option<String>,
    /// The key from the rule (or the file) down: `limit.source`.
    pub key: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, with the value.
    pub reason: String,
    /// What to write instead.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        match &self.rule {
            Some(number) if number.starts_with('#') => write!(f, "rule {number}: ")?,
            Some(name) => write!(f, "rule \"{name}\": ")?,
            None => {}
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.reason, self.fix)
    }
}

/// Everything that is wrong with a policy, in the order of its lines. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Problems {
    list: Vec<Problem>,
    /// How many more there are than `list` holds.
    more: usize,
}

impl Problems {
    /// The problems, at most 50.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// How many there are, those beyond the list included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.list.len() + self.more
    }

    /// `1 mistake`, `2 mistakes`.
    #[must_use]
    pub fn mistakes(&self) -> String {
        let mistakes = if self.count() == 1 { "mistake" } else { "mistakes" };
        format!("{} {mistakes}", self.count())
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self { list: vec![problem], more: 0 }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.list.iter().enumerate() {
            let newline = if place == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

/// Where problems and warnings are collected while the document is walked.
#[derive(Default)]
pub(super) struct Findings {
    problems: Vec<Problem>,
    more: usize,
    warnings: Vec<Problem>,
}

impl Findings {
    /// The value, or its problem set aside so that the walk can go on.
    pub(super) fn keep<T>(&mut self, result: Result<T, Problem>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(problem) => {
                self.add(|| problem);
                None
            }
        }
    }

    /// Adds a problem, once; it isn't even made if nobody will read it.
    pub(super) fn add(&mut self, problem: impl FnOnce() -> Problem) {
        if self.problems.len() == KEPT {
            self.more += 1;
            return;
        }
        let problem = problem();
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    pub(super) fn warn(&mut self, warning: Problem) {
        if self.warnings.len() < KEPT {
            self.warnings.push(warning);
        }
    }

    /// The warnings if there was no problem.
    pub(super) fn finish(mut self) -> Result<Vec<Problem>, Problems> {
        // Keys are walked in the order of their names, people read in the order of lines.
        self.problems.sort_by_key(|problem| problem.line);
        self.warnings.sort_by_key(|warning| warning.line);
        if self.problems.is_empty() {
            Ok(self.warnings)
        } else {
            Err(Problems { list: self.problems, more: self.more })
        }
    }
}
