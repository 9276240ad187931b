//! From a valid policy to exactly what goes into the kernel's maps. Pure: the same policy, registry,
//! overrides and time give the same bytes. Writes nothing, reads no clock.

mod classes;
mod registry;
mod row;
mod rows;

use std::collections::BTreeMap;
use std::fmt;

use limiter_common::bucket::{self, UNLIMITED};
use limiter_common::clock::WindowLength;
use limiter_common::layout::{
    Classifier, MAX_CLASSES, MAX_RULES, MAX_SETS, PolicyEntry, RuleEntry, RuleSet, Unit,
};
use limiter_common::quantum::Quantum;
use limiter_common::word::MAX_VALUE;

use crate::policy::{Limit, Mode, Policy, Rule};

use classes::Classes;
pub use registry::{Assigned, Registry};

/// Unix time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnixNanos(pub u64);

/// Modes set at run time, by rule name. Names that no rule has wait for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModeOverrides(pub BTreeMap<String, Mode>);

impl ModeOverrides {
    /// The mode in which this rule works.
    #[must_use]
    pub fn mode_of(&self, rule: &Rule) -> Mode {
        self.0.get(rule.name().as_str()).copied().unwrap_or(rule.mode())
    }
}

/// Why a valid policy can't be put into the kernel's tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// More than 255 groups of ports (and "no port").
    #[error(
        "the ports of the rules {rules} differ in more than {} ways; let them share lists of \
         ports, or join single ports to ranges",
        Classifier::PORTS - 1
    )]
    Ports {
        /// The rules that name most ports.
        rules: String,
    },
    /// More than 64 groups of protocols.
    #[error(
        "the rules {rules} tell more than {} protocols apart; put protocols that are limited \
         together into one rule, or write protocol = \"any\"",
        Classifier::PROTOCOLS
    )]
    Protocols {
        /// The rules that name most protocols.
        rules: String,
    },
    /// More than 256 sets of rules that a packet can match.
    #[error(
        "the rules {rules} overlap in more than {} ways; give overlapping rules the same \
         protocols and ports, or remove some",
        MAX_CLASSES - 1
    )]
    Classes {
        /// The rules that take part in most of the sets.
        rules: String,
    },
    /// 2^32 rule ids were given out, or the pinned registry is damaged.
    #[error(
        "no rule id or counter row is left in these maps; detach, remove the pinned maps, and start again"
    )]
    Ids,
}

/// A policy, compiled. Nothing of it changes any more.
#[derive(Clone)]
pub struct Snapshot {
    /// For map `POLICY`.
    pub policy: PolicyEntry,
    /// For map `CLASSIFIER`.
    pub classifier: Box<Classifier>,
    /// For map `SETS`: all [`MAX_SETS`].
    pub sets: Vec<RuleSet>,
    /// For map `RULES`: all [`MAX_RULES`]; those beyond the policy's are in no class.
    pub rules: Vec<RuleEntry>,
    /// For map `REGISTRY` and `next_rule_id` in map `META`.
    pub registry: Registry,
    /// Counter rows that go to another name than before: to be zeroed before the policy is switched on.
    pub reused_rows: Vec<u32>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Compiles a policy. `registry` is what the last snapshot left, `version` what people will see.
    ///
    /// # Errors
    ///
    /// A table of the kernel is too small for the policy: which, for which rules, and what to do.
    pub fn compile(
        policy: &Policy,
        registry: &Registry,
        overrides: &ModeOverrides,
        version: u64,
        now: UnixNanos,
    ) -> Result<Self, CompileError> {
        let Classes { classifier, sets } = Classes::of(policy.rules())?;
        let next = registry.next(policy.rules(), now)?;
        let mut rules: Vec<RuleEntry> =
            policy.rules().iter().zip(&next.assigned).map(|(rule, to)| entry(rule, *to)).collect();
        rules.resize(MAX_RULES as usize, blank());
        Ok(Self {
            policy: PolicyEntry::new(version, span(policy), |fault| policy.on_fault(fault)),
            classifier,
            sets: rule_sets(&sets, shadow_mask(policy, overrides), &rules[..policy.rules().len()]),
            rules,
            registry: next.registry,
            reused_rows: next.reused_rows,
        })
    }
}

/// The longest life of a word under this policy.
fn span(policy: &Policy) -> u32 {
    policy.rules().iter().map(|rule| bucket::life(rule.window())).max().unwrap_or(1)
}

fn shadow_mask(policy: &Policy, overrides: &ModeOverrides) -> u32 {
    let shadows = policy.rules().iter().map(|rule| overrides.mode_of(rule) == Mode::Shadow);
    shadows.zip(0..).fold(0, |mask, (shadow, bit)| mask | u32::from(shadow) << bit)
}

/// The classes, and each rule by itself.
fn rule_sets(classes: &[u32], shadow: u32, rules: &[RuleEntry]) -> Vec<RuleSet> {
    let mut sets: Vec<RuleSet> =
        classes.iter().map(|set| RuleSet::new(set & !shadow, set & shadow, rules)).collect();
    sets.resize(MAX_CLASSES as usize, RuleSet::EMPTY);
    sets.extend((0..rules.len()).map(|place| RuleSet::new(1 << place, 0, rules)));
    sets.resize(MAX_SETS as usize, RuleSet::EMPTY);
    sets
}

fn entry(rule: &Rule, to: Assigned) -> RuleEntry {
    let quantum = match to.unit {
        Unit::Packets => Quantum::ONE,
        Unit::Bytes(quantum) => quantum,
    };
    let blank = RuleEntry::new(to.id, to.row, rule.window(), to.unit, to.group());
    rule.limits()
        .fold(blank, |entry, (level, limit)| entry.with_limit(level, quanta(limit, quantum)))
}

/// A limit as the kernel counts it, rounded down.
fn quanta(limit: Limit, quantum: Quantum) -> u32 {
    match limit {
        // The registry chose a quantum in which every limit of the rule fits.
        Limit::Finite(amount) => quantum.floor(amount).unwrap_or(MAX_VALUE),
        Limit::Unlimited => UNLIMITED,
    }
}

/// Fills the places of rules that aren't there.
fn blank() -> RuleEntry {
    RuleEntry::new(0, 0, WindowLength::MIN, Unit::Packets, 0)
}

#[cfg(test)]
mod tests;
