//! The order of a start. What can be refused without touching anything comes first; whatever fails, no
//! interface is attached that wasn't, and none is detached that was.

use std::fs;
use std::path::Path;

use super::apply::{Enforced, InstallError, origin, record_path, unix_seconds};
use super::config::{Config, LogLevel};
use super::error::DaemonError;
use super::events::{Clock, Daemon};
use super::guard::Guards;
use super::host::{self, Lock};
use super::notice::Noticed;
use super::overlay::Overlay;
use super::running::{Next, Record, next};
use super::servers::Servers;
use super::store;
use super::watch::Watch;
use crate::bounded;
use crate::control;
use crate::datapath::{Datapath, Options, Origin, Pins, attach};
use crate::policy::Policy;
use crate::policy::capacity::keys_per_source;
use crate::snapshot::{ModeOverrides, Registry, Snapshot, UnixNanos};
use crate::telemetry::exporter;

/// The policy file, read and found good.
struct Offered {
    text: String,
    policy: Policy,
}

/// What the state directory remembers.
struct Remembered {
    record: Option<Record>,
    overlay: Overlay,
}

/// Starts everything, in order.
pub(super) async fn start(config: Config) -> Result<Daemon, DaemonError> {
    let watch = Watch::new(config.policy.clone());
    let offered = read_policy(&config)?;
    host::require_capabilities()?;
    for interface in &config.interfaces {
        attach::require_interface(interface)?;
    }
    let remembered = recall(&config)?;
    let pins = Pins::new(&config.pin_dir);
    pins.prepare()?;
    let lock = host::lock(pins.root())?;
    match start_locked(config, watch, offered, remembered, &pins, lock).await {
        Ok(daemon) => Ok(daemon),
        Err(error) => {
            pins.tidy();
            Err(error)
        }
    }
}

/// The rest, as the only daemon for these pins.
async fn start_locked(
    config: Config,
    watch: Watch,
    offered: Offered,
    remembered: Remembered,
    pins: &Pins,
    lock: Lock,
) -> Result<Daemon, DaemonError> {
    let metrics = match config.metrics {
        Some(address) => Some(exporter::bind(address).await?),
        None => None,
    };
    let socket = control::socket::bind(&config.socket, config.socket_group.as_deref())?;
    match enforce(&config, offered, remembered, pins) {
        Ok((datapath, enforced, guards)) => {
            // Answers from now on; requests wait until the loop turns.
            let servers = Servers::begin(metrics, socket).map_err(DaemonError::Runtime)?;
            let (pins, clock) = (pins.clone(), Clock::new());
            Ok(Daemon {
                servers,
                guards,
                watch,
                enforced,
                datapath,
                pins,
                config,
                clock,
                noticed: Noticed::new(),
                _lock: lock,
            })
        }
        Err(error) => {
            // A socket that nobody listens on would only mislead.
            let _ = fs::remove_file(&config.socket);
            Err(error)
        }
    }
}

/// Maps, policy, interfaces. On failure maps that this start has made go again.
fn enforce(
    config: &Config,
    offered: Offered,
    remembered: Remembered,
    pins: &Pins,
) -> Result<(Datapath, Enforced, Guards), DaemonError> {
    let trace = matches!(config.log_level, LogLevel::Debug | LogLevel::Trace);
    let keys = keys_per_source(&offered.policy);
    let buckets = config.table.buckets(keys).map_err(DaemonError::Table)?;
    let options = Options { buckets, trace, ..Options::default() };
    let (mut datapath, found) = Datapath::open(pins, options)?;
    match guard(config, &mut datapath, offered, remembered, pins) {
        Ok((enforced, guards)) => {
            tell(&datapath, found, buckets);
            Ok((datapath, enforced, guards))
        }
        Err(error) if found == Origin::Made => Err(take_back(pins, error)),
        Err(error) => Err(error),
    }
}

/// Removes the maps that this start has made. Why it failed is what its operator must hear, so another
/// failure here is only logged.
fn take_back(pins: &Pins, error: DaemonError) -> DaemonError {
    if let Err(error) = pins.discard() {
        tracing::error!(%error, "cannot take back the maps that this start has made");
    }
    error
}

/// Policy and interfaces, in the order in which a failure changes nothing that is in force.
fn guard(
    config: &Config,
    datapath: &mut Datapath,
    offered: Offered,
    Remembered { record, overlay }: Remembered,
    pins: &Pins,
) -> Result<(Enforced, Guards), DaemonError> {
    let pinned = datapath.policy()?.map(|entry| entry.version);
    let (policy, record) = choose(&config.policy, offered, record, pinned.unwrap_or(0))?;
    let install = || {
        Enforced::begin(datapath, policy, record, overlay, &config.state_dir)
            .map_err(|error| not_installed(config, error))
    };
    let attach = || Guards::begin(pins.clone(), config.interfaces.clone(), config.attach);
    let (enforced, mut guards) = if pinned.is_none() {
        // No interface is guarded yet; from the first packet on, there is a policy.
        let enforced = install()?;
        (enforced, attach()?)
    } else {
        // Interfaces may be guarded already, and get the new policy the moment it is installed: only once
        // nothing else can fail. Until then new ones are guarded by the old one.
        let guards = attach()?;
        (install().inspect_err(|_| guards.undo())?, guards)
    };
    guards.settle();
    enforced.settle();
    Ok((enforced, guards))
}

fn not_installed(config: &Config, error: InstallError) -> DaemonError {
    match error {
        InstallError::Compile(cause) => DaemonError::Compile { path: config.policy.clone(), cause },
        InstallError::Map(error) => error.into(),
    }
}

/// The policy to start with: what came over the socket holds until the file says something new.
/// `pinned` is the version in the maps, 0 if none.
fn choose(
    path: &Path,
    offered: Offered,
    record: Option<Record>,
    pinned: u64,
) -> Result<(Policy, Record), DaemonError> {
    let known = record.and_then(|record| {
        let policy = Policy::parse(&record.text).ok()?.policy;
        Some((policy, record))
    });
    // The disk was full or lost what it had: what is remembered isn't what the maps hold, and comes back
    // as something new. Versions only rise.
    let outdated = known.as_ref().is_none_or(|(_, record)| record.version < pinned);
    let version_of =
        |record: &Record| if outdated { pinned.saturating_add(1) } else { record.version };
    if let Some((policy, record)) = &known
        && record.file == offered.text
        && record.text != offered.text
    {
        let version = version_of(record);
        tracing::warn!(
            version,
            "the policy applied by hand holds on; to return to the file: `limiter policy apply {}`",
            path.display()
        );
        return Ok((policy.clone(), Record { version, ..record.clone() }));
    }
    let (running, record) = known.unzip();
    let floor = record.as_ref().map_or(0, |record| record.version).max(pinned);
    let decided = match offered.policy.version() {
        // The same version as in the maps is taken to be the same policy.
        Some(version) if outdated && version == pinned => Next::Install(version),
        _ => next(running.as_ref(), floor, &offered.policy)
            .map_err(|cause| DaemonError::Older { path: path.to_owned(), cause })?,
    };
    let (version, applied_unix_s) = match (decided, record) {
        (Next::Same, Some(record)) => (version_of(&record), record.applied_unix_s),
        (Next::Same, None) => (floor, unix_seconds()),
        (Next::Install(version), _) => (version, unix_seconds()),
    };
    let origin = origin(Some(path));
    let file = offered.text.clone();
    Ok((offered.policy, Record { version, origin, applied_unix_s, text: offered.text, file }))
}

/// Reads and checks the policy file, with nothing touched yet.
fn read_policy(config: &Config) -> Result<Offered, DaemonError> {
    let path = &config.policy;
    let text = bounded::file(path)
        .map_err(|cause| DaemonError::PolicyFile { path: path.clone(), cause })?;
    let checked = Policy::parse(&text)
        .map_err(|problems| DaemonError::Policy { path: path.clone(), problems })?;
    for warning in &checked.warnings {
        tracing::warn!("{}: {warning}", path.display());
    }
    // With an empty registry: only the policy itself can be at fault here.
    let (registry, none) = (Registry::default(), ModeOverrides::default());
    Snapshot::compile(&checked.policy, &registry, &none, 1, UnixNanos(0))
        .map_err(|cause| DaemonError::Compile { path: path.clone(), cause })?;
    Ok(Offered { text, policy: checked.policy })
}

fn recall(config: &Config) -> Result<Remembered, DaemonError> {
    store::make(&config.state_dir)?;
    let record = store::read(&record_path(&config.state_dir))?;
    Ok(Remembered { record, overlay: Overlay::read(&config.state_dir)? })
}

fn tell(datapath: &Datapath, found: Origin, buckets: u32) {
    let slots = datapath.table().slots();
    match found {
        Origin::Made => tracing::info!(slots, "made new maps"),
        Origin::Found => tracing::info!(slots, "going on with the pinned maps"),
    }
    let configured = u64::from(buckets) * u64::from(limiter_common::layout::SLOTS);
    if slots != configured {
        tracing::warn!(
            slots,
            configured,
            "the pinned table keeps its size; detach all interfaces and remove the pinned maps to change it"
        );
    }
}

#[cfg(test)]
mod tests;
