//! How a policy, or the mode of a rule, changes while the daemon runs: checked whole, compiled, remembered,
//! installed, in this order. Whatever fails leaves what was.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use limiter_common::layout::RuleEntry;

use super::error::DaemonError;
use super::overlay::Overlay;
use super::running::{Next, Record, next};
use super::store;
use crate::control::command::ModeChange;
use crate::control::model::Applied;
use crate::datapath::{Datapath, MapError};
use crate::policy::{Policy, Problem};
use crate::snapshot::{CompileError, Registry, Snapshot, UnixNanos};

/// The policy in force, in all its forms.
#[derive(Debug)]
pub(super) struct Enforced {
    pub(super) policy: Policy,
    /// Its rules as compiled, in order.
    pub(super) entries: Vec<RuleEntry>,
    pub(super) record: Record,
    pub(super) overlay: Overlay,
    /// Why the last change was refused, unless one was accepted since.
    pub(super) refusal: Option<String>,
    /// What a careful person would want to know about its text.
    warnings: Vec<String>,
    state_dir: PathBuf,
}

/// Why a policy that is valid isn't in force.
#[derive(Debug, thiserror::Error)]
pub(super) enum InstallError {
    #[error(transparent)]
    Compile(#[from] CompileError),
    #[error(transparent)]
    Map(#[from] MapError),
}

impl Enforced {
    /// Installs the policy that a start has decided on. To be remembered once the start has succeeded.
    pub(super) fn begin(
        datapath: &mut Datapath,
        policy: Policy,
        record: Record,
        overlay: Overlay,
        state_dir: &Path,
    ) -> Result<Self, InstallError> {
        let snapshot = compile(datapath, &policy, &overlay, record.version)?;
        datapath.install(&snapshot)?;
        let entries = entries(snapshot, &policy);
        let warnings =
            Policy::parse(&record.text).map_or_else(|_| Vec::new(), |it| words(&it.warnings));
        let state_dir = state_dir.to_owned();
        Ok(Self { policy, entries, record, overlay, refusal: None, warnings, state_dir })
    }

    /// Takes the policy in this text, or says why not. `file` if it is the policy file's.
    pub(super) fn apply(
        &mut self,
        datapath: &mut Datapath,
        text: &str,
        file: Option<&Path>,
    ) -> Result<Applied, String> {
        match self.try_apply(datapath, text, file) {
            Ok(version) => {
                let (origin, warnings) = (&self.record.origin, self.warnings());
                tracing::info!(version, origin, "policy in force");
                // One line each: a line of a log is what people search and count.
                for warning in &warnings {
                    tracing::warn!(version, origin, "warning: {warning}");
                }
                self.refusal = None;
                Ok(Applied { version, warnings })
            }
            Err(reasons) => {
                let (origin, running) = (origin(file), self.record.version);
                for reason in reasons.lines() {
                    tracing::warn!(origin, running, "policy refused: {reason}");
                }
                self.refusal = Some(format!("{origin}: {reasons}"));
                Err(format!("refused, policy {running} stays: {reasons}"))
            }
        }
    }

    /// What a careful person would want to know about what is in force.
    pub(super) fn warnings(&self) -> Vec<String> {
        let strays = self.overlay.strays(&self.policy);
        self.warnings.iter().cloned().chain(strays).collect()
    }

    fn try_apply(
        &mut self,
        datapath: &mut Datapath,
        text: &str,
        file: Option<&Path>,
    ) -> Result<u64, String> {
        let checked = Policy::parse(text)
            .map_err(|problems| format!("{}:\n{problems}", problems.mistakes()))?;
        let mut warnings = words(&checked.warnings);
        let mut record =
            Record { origin: origin(file), text: text.to_owned(), ..self.record.clone() };
        if file.is_some() {
            text.clone_into(&mut record.file);
        }
        let decided = next(Some(&self.policy), self.record.version, &checked.policy);
        let snapshot = match decided.map_err(|older| older.to_string())? {
            Next::Same => None,
            Next::Install(version) => {
                record.version = version;
                record.applied_unix_s = unix_seconds();
                let compiled = compile(datapath, &checked.policy, &self.overlay, version);
                Some(compiled.map_err(|error| error.to_string())?)
            }
        };
        // Before it is in force: whoever dies in between has said nothing yet, and the next start goes on
        // with the new policy. Remembered after, the old one would come back in its place.
        if let Err(error) = self.remember(&record) {
            warnings.push(format!("in force, but a restart will not know it: {error}"));
        }
        if let Some(snapshot) = snapshot {
            if let Err(error) = datapath.install(&snapshot) {
                let _ = self.remember(&self.record);
                return Err(error.to_string());
            }
            self.entries = entries(snapshot, &checked.policy);
            self.policy = checked.policy;
        }
        self.record = record;
        self.warnings = warnings;
        Ok(self.record.version)
    }

    /// Changes a rule's mode over what the file says.
    pub(super) fn set_mode(
        &mut self,
        datapath: &mut Datapath,
        change: &ModeChange,
    ) -> Result<Applied, String> {
        let next = self.overlay.with(change, &self.policy, unix_seconds())?;
        let snapshot = compile(datapath, &self.policy, &next, self.record.version);
        let snapshot = snapshot.map_err(|error| error.to_string())?;
        // On disk first: what is in force must be what a restart brings back.
        let path = Overlay::path(&self.state_dir);
        let written = store::write(&path, &next).map_err(|error| error.to_string());
        let done =
            written.and_then(|()| datapath.install(&snapshot).map_err(|error| error.to_string()));
        if let Err(error) = done {
            let _ = store::write(&path, &self.overlay);
            return Err(error);
        }
        self.entries = entries(snapshot, &self.policy);
        self.overlay = next;
        let ModeChange { rule, mode, owner, reason } = change;
        tracing::warn!(rule, mode, owner, reason, "mode of a rule set");
        let stray = self.policy.rules().iter().all(|known| known.name().as_str() != rule);
        let warning =
            format!("no rule {rule:?} in the policy in force; the mode set for it is forgotten");
        let warnings = stray.then_some(warning).into_iter().collect();
        Ok(Applied { version: self.record.version, warnings })
    }

    /// Remembers the policy that a start has put in force.
    pub(super) fn settle(&self) {
        for stray in self.overlay.strays(&self.policy) {
            tracing::warn!("{stray}");
        }
        if let Err(error) = self.remember(&self.record) {
            tracing::warn!(%error, "the policy is in force, but a restart will not know it");
        }
    }

    fn remember(&self, record: &Record) -> Result<(), DaemonError> {
        store::write(&record_path(&self.state_dir), record)
    }
}

/// Where the policy in force is remembered.
pub(super) fn record_path(state_dir: &Path) -> PathBuf {
    state_dir.join("policy.json")
}

/// Where a policy came from, for people.
pub(super) fn origin(file: Option<&Path>) -> String {
    file.map_or_else(|| "socket".to_owned(), |path| path.display().to_string())
}

pub(super) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn words(warnings: &[Problem]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

fn compile(
    datapath: &Datapath,
    policy: &Policy,
    overlay: &Overlay,
    version: u64,
) -> Result<Snapshot, InstallError> {
    let registry = Registry::from_entries(&datapath.registry()?, datapath.next_rule_id());
    let now = UnixNanos(datapath.unix_now());
    Ok(Snapshot::compile(policy, &registry, &overlay.overrides(), version, now)?)
}

/// The policy's rules as compiled, in order.
fn entries(snapshot: Snapshot, policy: &Policy) -> Vec<RuleEntry> {
    let mut entries = snapshot.rules;
    entries.truncate(policy.rules().len());
    entries
}
