//! What `limiter check` says about a good policy: what each rule means in figures, and how far the
//! table reaches. Pure: every figure is computed from the policy and the table's size.

mod table;

use std::fmt;

use limiter_common::key::Level;
use limiter_common::layout::RuleEntry;
use serde::Serialize;

use super::display::{AppliesTo, Length};
use super::model::{Limit, Mode, Policy, Rule, Unit};
use super::words::grouped;

pub use table::{TableReport, TableSize};

/// The whole report. Field names are an interface: they only ever grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The version that the file states.
    pub version: Option<u64>,
    /// In the policy's order.
    pub rules: Vec<RuleReport>,
    /// What all rules share.
    pub table: TableReport,
}

/// How a figure was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// From the policy and the table's size alone.
    Computed,
    /// On a machine.
    Measured,
}

/// A number and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The number, in the unit that its field names.
    pub value: u64,
    /// How it was found.
    pub basis: Basis,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// Its name.
    pub rule: String,
    /// The mode that the file says.
    pub mode: Mode,
    /// Its matches, in words.
    pub applies_to: String,
    /// `packets` or `bytes`.
    pub unit: String,
    /// As the file would say it: `10s`.
    pub window: String,
    /// Levels that are evaluated, coarse first.
    pub levels: Vec<LevelReport>,
    /// How many sources at their limits exhaust their prefix, if both are limited.
    pub full_sources_per_prefix: Option<Figure>,
    /// What the length of a frame is rounded up to, in bytes; only for rules over bytes.
    pub counted_in_bytes: Option<Figure>,
}

/// One level of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LevelReport {
    /// `total`, `prefix` or `source`.
    pub level: &'static str,
    /// Packets or bytes per window; `None` for unlimited.
    pub limit: Option<u64>,
    /// Packets or bytes that may pass within moments, around a window's edge; `None` for unlimited.
    pub worst_burst: Option<Figure>,
}

const fn computed(value: u64) -> Figure {
    Figure { value, basis: Basis::Computed }
}

impl Report {
    /// The report for a table of this size; `rules` are the policy's, as compiled.
    #[must_use]
    pub fn new(policy: &Policy, rules: &[RuleEntry], size: TableSize) -> Self {
        Self {
            version: policy.version(),
            rules: policy.rules().iter().map(RuleReport::new).collect(),
            table: TableReport::new(rules, size),
        }
    }
}

impl RuleReport {
    fn new(rule: &Rule) -> Self {
        Self {
            rule: rule.name().to_string(),
            mode: rule.mode(),
            applies_to: AppliesTo(rule).to_string(),
            unit: rule.unit().to_string(),
            window: Length(rule.window()).to_string(),
            levels: rule.limits().map(LevelReport::new).collect(),
            full_sources_per_prefix: full_sources(rule),
            counted_in_bytes: (rule.unit() == Unit::Bytes)
                .then(|| computed(1 << rule.quantum().shift())),
        }
    }
}

/// The first source that finds the prefix empty isn't counted; a prefix below one source's limit is
/// exhausted by one.
fn full_sources(rule: &Rule) -> Option<Figure> {
    let finite = |level| rule.limit(level).and_then(Limit::finite).filter(|limit| *limit > 0);
    let (prefix, source) = (finite(Level::Prefix)?, finite(Level::Source)?);
    Some(computed(prefix.div_ceil(source)))
}

impl LevelReport {
    fn new((level, limit): (Level, Limit)) -> Self {
        let limit = limit.finite();
        // The end of one window and the beginning of the next, each with its whole limit.
        let worst_burst = limit.map(|limit| computed(limit.saturating_mul(2)));
        Self { level: level.name(), limit, worst_burst }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Computed => "computed",
            Self::Measured => "measured",
        })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&grouped(self.value))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            writeln!(f, "{rule}")?;
        }
        self.table.fmt(f)
    }
}

/// One line: what, and what about it.
fn line(f: &mut fmt::Formatter<'_>, what: &str, text: impl fmt::Display) -> fmt::Result {
    writeln!(f, "  {what:<16} {text}")
}

impl fmt::Display for RuleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rule \"{}\" ({})", self.rule, self.mode)?;
        line(f, "applies to", &self.applies_to)?;
        self.limits(f)?;
        if let Some(full) = self.full_sources_per_prefix {
            let (what, basis) = (if full.value == 1 { "source" } else { "sources" }, full.basis);
            line(f, "prefix is full", format_args!("after {full} {what} at the limit [{basis}]"))?;
        }
        if let Some(step) = self.counted_in_bytes {
            let rounding = match step.value {
                1 => " in bytes".to_owned(),
                _ => format!(" rounded up to a multiple of {step} bytes"),
            };
            let basis = step.basis;
            line(f, "a frame counts", format_args!("as its length{rounding} [{basis}]"))?;
        }
        Ok(())
    }
}

impl RuleReport {
    fn limits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, window, levels, .. } = self;
        let limits = per_level(levels, |level| {
            Some(level.limit.map_or_else(|| "unlimited".to_owned(), grouped))
        });
        line(f, "limit", format_args!("{limits} {unit} in each window of {window}"))?;
        let Some(burst) = levels.iter().find_map(|level| level.worst_burst) else {
            return Ok(());
        };
        let bursts = per_level(levels, |level| level.worst_burst.map(|it| it.to_string()));
        let why = "at once, around a window's edge (2 x limit)";
        line(f, "worst burst", format_args!("{bursts} {unit} {why} [{}]", burst.basis))
    }
}

fn per_level(levels: &[LevelReport], text: impl Fn(&LevelReport) -> Option<String>) -> String {
    // Sources first: that is what people think of.
    let finest_first = levels.iter().rev();
    let texts = finest_first.filter_map(|level| Some(format!("{} {}", level.level, text(level)?)));
    texts.collect::<Vec<_>>().join(", ")
}
