//! How a policy, or the mode of a rule, changes while the daemon runs: checked whole, compiled, installed,
//! remembered, in this order. Whatever fails leaves what was.

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
use crate::policy::Policy;
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
    /// Installs the policy that a start has decided on.
    pub(super) fn begin(
        datapath: &mut Datapath,
        policy: Policy,
        record: Record,
        overlay: Overlay,
        state_dir: &Path,
    ) -> Result<Self, InstallError> {
        let entries = install(datapath, &policy, &overlay, record.version)?;
        let enforced = Self {
            policy,
            entries,
            record,
            overlay,
            refusal: None,
            state_dir: state_dir.to_owned(),
        };
        if let Err(error) = enforced.remember() {
            tracing::warn!(%error, "the policy is in force, but a restart will not know it");
        }
        Ok(enforced)
    }

    /// Takes the policy in this text, or says why not. `file` if it is the policy file's.
    pub(super) fn apply(
        &mut self,
        datapath: &mut Datapath,
        text: &str,
        file: Option<&Path>,
    ) -> Result<Applied, String> {
        let result = self.try_apply(datapath, text, file);
        match &result {
            Ok(applied) => {
                tracing::info!(
                    version = applied.version,
                    origin = self.record.origin,
                    "policy in force"
                );
                self.refusal = None;
            }
            Err(reasons) => {
                let origin = origin(file);
                tracing::warn!(origin, running = self.record.version, reasons, "policy refused");
                self.refusal = Some(format!("{origin}: {reasons}"));
            }
        }
        result
    }

    fn try_apply(
        &mut self,
        datapath: &mut Datapath,
        text: &str,
        file: Option<&Path>,
    ) -> Result<Applied, String> {
        let checked = Policy::parse(text).map_err(|problems| problems.to_string())?;
        let mut warnings: Vec<String> = checked.warnings.iter().map(ToString::to_string).collect();
        let decided = next(Some(&self.policy), self.record.version, &checked.policy);
        if let Next::Install(version) = decided.map_err(|older| older.to_string())? {
            let installed = install(datapath, &checked.policy, &self.overlay, version);
            self.entries = installed.map_err(|error| error.to_string())?;
            self.policy = checked.policy;
            self.record.version = version;
            self.record.applied_unix_s = unix_seconds();
        }
        self.record.origin = origin(file);
        text.clone_into(&mut self.record.text);
        if file.is_some() {
            text.clone_into(&mut self.record.file);
        }
        if let Err(error) = self.remember() {
            warnings.push(format!("in force, but a restart will not know it: {error}"));
        }
        Ok(Applied { version: self.record.version, warnings })
    }

    /// Changes a rule's mode over what the file says.
    pub(super) fn set_mode(
        &mut self,
        datapath: &mut Datapath,
        change: &ModeChange,
    ) -> Result<Applied, String> {
        let next = self.overlay.with(change, &self.policy, unix_seconds())?;
        // On disk first: what is in force must be what a restart brings back.
        let path = Overlay::path(&self.state_dir);
        store::write(&path, &next).map_err(|error| error.to_string())?;
        match install(datapath, &self.policy, &next, self.record.version) {
            Ok(entries) => self.entries = entries,
            Err(error) => {
                let _ = store::write(&path, &self.overlay);
                return Err(error.to_string());
            }
        }
        self.overlay = next;
        let ModeChange { rule, mode, owner, reason } = change;
        tracing::warn!(rule, mode, owner, reason, "mode of a rule set");
        Ok(Applied { version: self.record.version, warnings: Vec::new() })
    }

    fn remember(&self) -> Result<(), DaemonError> {
        store::write(&record_path(&self.state_dir), &self.record)
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

fn install(
    datapath: &mut Datapath,
    policy: &Policy,
    overlay: &Overlay,
    version: u64,
) -> Result<Vec<RuleEntry>, InstallError> {
    let registry = Registry::from_entries(&datapath.registry()?, datapath.next_rule_id());
    let now = UnixNanos(datapath.unix_now());
    let snapshot = Snapshot::compile(policy, &registry, &overlay.overrides(), version, now)?;
    datapath.install(&snapshot)?;
    let mut entries = snapshot.rules;
    entries.truncate(policy.rules().len());
    Ok(entries)
}
