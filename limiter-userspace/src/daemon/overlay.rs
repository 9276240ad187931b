//! What operators set at run time over the policy: so far, modes of rules. Own file, merged into every
//! snapshot, outlives restarts and policies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::DaemonError;
use super::store;
use crate::control::command::ModeChange;
use crate::control::model::ModeOverride;
use crate::policy::{Mode, Policy};
use crate::snapshot::ModeOverrides;

/// Characters of an owner or a reason: `status` shows them in one line.
const LONGEST: usize = 500;

/// The file's content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Overlay {
    /// By rule name.
    pub(super) modes: BTreeMap<String, ModeOverride>,
}

impl Overlay {
    pub(super) fn path(state_dir: &Path) -> PathBuf {
        state_dir.join("overlay.json")
    }

    pub(super) fn read(state_dir: &Path) -> Result<Self, DaemonError> {
        let path = Self::path(state_dir);
        let overlay: Self = store::read(&path)?.unwrap_or_default();
        match overlay.modes.iter().find(|(_, set)| parse(&set.mode).is_none()) {
            None => Ok(overlay),
            Some((rule, set)) => Err(DaemonError::State {
                path,
                cause: format!("rule {rule} has the mode {:?}, which isn't one", set.mode),
            }),
        }
    }

    /// For the snapshot's compiler.
    pub(super) fn overrides(&self) -> ModeOverrides {
        let modes = self.modes.iter();
        ModeOverrides(
            modes.filter_map(|(rule, set)| Some((rule.clone(), parse(&set.mode)?))).collect(),
        )
    }

    /// What is set for rules that the policy hasn't got: a warning each.
    pub(super) fn strays(&self, policy: &Policy) -> impl Iterator<Item = String> {
        let strays = self.modes.iter().filter(|(rule, _)| !has(policy, rule));
        strays.map(|(rule, set)| {
            format!(
                "no rule {rule:?} in the policy, but {:?} has set its mode to {}: it will hold if the rule comes back; \
                 `limiter mode {rule} file` forgets it",
                set.owner, set.mode
            )
        })
    }

    /// The overlay after a change, or why not.
    pub(super) fn with(
        &self,
        change: &ModeChange,
        policy: &Policy,
        now_s: u64,
    ) -> Result<Self, String> {
        // What was set for a rule that has gone since can be forgotten, no more.
        let forgets = change.mode == "file" && self.modes.contains_key(&change.rule);
        if !forgets && !has(policy, &change.rule) {
            return Err(unknown(&change.rule, policy));
        }
        let mut next = self.clone();
        if change.mode == "file" {
            next.modes.remove(&change.rule);
            return Ok(next);
        }
        if parse(&change.mode).is_none() {
            return Err(format!("no mode {:?}; choose enforce, shadow or file", change.mode));
        }
        for (what, text) in [("owner", &change.owner), ("reason", &change.reason)] {
            let length = text.chars().count();
            if length > LONGEST {
                return Err(format!(
                    "{what}: {length} characters are too many; write at most {LONGEST}"
                ));
            }
        }
        let set = ModeOverride {
            mode: change.mode.clone(),
            owner: change.owner.clone(),
            reason: change.reason.clone(),
            since_unix_s: now_s,
        };
        next.modes.insert(change.rule.clone(), set);
        Ok(next)
    }
}

fn has(policy: &Policy, rule: &str) -> bool {
    policy.rules().iter().any(|known| known.name().as_str() == rule)
}

fn unknown(rule: &str, policy: &Policy) -> String {
    if policy.rules().is_empty() {
        return format!("no rule {rule:?}: the policy in force has no rules");
    }
    let names: Vec<&str> = policy.rules().iter().map(|rule| rule.name().as_str()).collect();
    format!("no rule {rule:?} in the policy in force; its rules: {}", names.join(", "))
}

fn parse(mode: &str) -> Option<Mode> {
    match mode {
        "enforce" => Some(Mode::Enforce),
        "shadow" => Some(Mode::Shadow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    const POLICY: &str = "schema = 1\n[[rule]]\nname = \"a\"\nmatch = [{ protocol = \"udp\" }]\n\
        limit = { source = 5 }\nwindow = \"1s\"\n";

    fn change(rule: &str, mode: &str) -> ModeChange {
        let (owner, reason) = ("ops".to_owned(), "test".to_owned());
        ModeChange { rule: rule.to_owned(), mode: mode.to_owned(), owner, reason }
    }

    #[test]
    fn a_reason_without_end_is_refused() {
        let policy = Policy::parse(POLICY).unwrap().policy;
        let mut change = change("a", "shadow");
        change.reason = "r".repeat(LONGEST);
        assert!(Overlay::default().with(&change, &policy, 77).is_ok());
        change.reason.push('r');
        let refused = Overlay::default().with(&change, &policy, 77).unwrap_err();
        assert_eq!(refused, "reason: 501 characters are too many; write at most 500");
    }

    #[test]
    fn a_mode_is_set_kept_and_taken_back() {
        let policy = Policy::parse(POLICY).unwrap().policy;
        let set = Overlay::default().with(&change("a", "shadow"), &policy, 77).unwrap();
        assert_eq!(set.modes["a"].since_unix_s, 77);
        assert_eq!(set.overrides().0["a"], Mode::Shadow);
        assert_eq!(set.with(&change("a", "file"), &policy, 78).unwrap(), Overlay::default());
    }

    #[test]
    fn unknown_rules_and_modes_are_refused_with_what_there_is() {
        let policy = Policy::parse(POLICY).unwrap().policy;
        let refused = Overlay::default().with(&change("b", "shadow"), &policy, 0).unwrap_err();
        assert!(refused.contains("its rules: a"), "{refused}");
        let refused = Overlay::default().with(&change("a", "off"), &policy, 0).unwrap_err();
        assert!(refused.contains("enforce, shadow or file"), "{refused}");
    }

    #[test]
    fn what_was_set_for_a_rule_that_is_gone_is_told_and_can_only_be_forgotten() {
        let policy = Policy::parse(POLICY).unwrap().policy;
        let empty = Policy::parse("schema = 1\n").unwrap().policy;
        let set = Overlay::default().with(&change("a", "shadow"), &policy, 77).unwrap();
        assert_eq!(set.strays(&policy).count(), 0);
        let told: Vec<String> = set.strays(&empty).collect();
        assert!(
            told[0].starts_with("no rule \"a\" in the policy, but \"ops\" has set"),
            "{told:?}"
        );
        let refused = set.with(&change("a", "enforce"), &empty, 78).unwrap_err();
        assert_eq!(refused, "no rule \"a\": the policy in force has no rules");
        assert_eq!(set.with(&change("a", "file"), &empty, 78).unwrap(), Overlay::default());
    }

    #[test]
    fn it_survives_in_its_file_and_garbage_there_is_no_overlay() {
        let scratch = Scratch::new("overlay");
        let policy = Policy::parse(POLICY).unwrap().policy;
        let set = Overlay::default().with(&change("a", "shadow"), &policy, 77).unwrap();
        store::write(&Overlay::path(scratch.path()), &set).unwrap();
        assert_eq!(Overlay::read(scratch.path()).unwrap(), set);
        let bad =
            r#"{"modes": {"a": {"mode": "of", "owner": "", "reason": "", "since_unix_s": 0}}}"#;
        std::fs::write(Overlay::path(scratch.path()), bad).unwrap();
        assert!(Overlay::read(scratch.path()).unwrap_err().to_string().contains("\"of\""));
    }
}
