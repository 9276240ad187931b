//! The loop: one event at a time, each handled to its end. Nothing here waits for anybody but the kernel,
//! and that for some 20 ms at most.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use limiter_common::key::Source;
use limiter_common::packet::Address;

use super::answer;
use super::apply::Enforced;
use super::config::Config;
use super::error::DaemonError;
use super::guard::Guards;
use super::host::Lock;
use super::notice::{Noticed, pins_problem};
use super::servers::{Event, Servers};
use super::service;
use super::watch::Watch;
use crate::control::command::{Command, TopBy};
use crate::control::model::{Explanation, PolicyStatus, PolicyText, Status, TableStatus, Top};
use crate::datapath::{Datapath, MapError, Pins, bypass};

/// Between two searches for dead words: they seem alive again after seven hours.
const SWEEP: Duration = Duration::from_secs(3600);

/// The running daemon. Fields are dropped in this order: the lock is given up last.
pub(super) struct Daemon {
    pub(super) servers: Servers,
    pub(super) guards: Guards,
    pub(super) watch: Watch,
    pub(super) enforced: Enforced,
    pub(super) datapath: Datapath,
    pub(super) pins: Pins,
    pub(super) config: Config,
    pub(super) clock: Clock,
    pub(super) noticed: Noticed,
    pub(super) _lock: Lock,
}

/// What happened when.
pub(super) struct Clock {
    started: Instant,
    /// Last search for dead words.
    swept: Instant,
    /// Whether windows and wall clock agree.
    synchronised: bool,
}

impl Clock {
    /// Now, all well.
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { started: now, swept: now, synchronised: true }
    }
}

impl Daemon {
    /// Turns until told to stop.
    pub(super) async fn run(mut self) -> Result<(), DaemonError> {
        self.sweep();
        self.tick();
        service::ready();
        let (record, interfaces) = (&self.enforced.record, self.config.interfaces.join(" "));
        tracing::info!(interfaces, policy = record.version, origin = record.origin, "ready");
        loop {
            match self.servers.next().await {
                Event::Command(command) => self.answer(command),
                Event::Tick => self.tick(),
                Event::Reload => self.reload(),
                Event::Stop => break,
            }
        }
        service::stopping();
        match pins_problem(&self.pins) {
            None => tracing::info!("stopping; limits hold on without the daemon"),
            Some(problem) => tracing::warn!("stopping; {problem}"),
        }
        self.servers.end().await;
        Ok(())
    }

    /// Once a second.
    fn tick(&mut self) {
        service::alive();
        let step = self.datapath.follow_clock();
        if step.synchronised != self.clock.synchronised {
            tracing::warn!(
                synchronised = step.synchronised,
                "the wall clock and the windows' clock are {} a second apart",
                if step.synchronised { "no longer" } else { "more than" }
            );
        }
        self.clock.synchronised = step.synchronised;
        self.datapath.beat();
        if step.jumped || self.clock.swept.elapsed() >= SWEEP {
            self.sweep();
        }
        self.datapath.tell();
        self.guards.tick();
        if self.watch.look() {
            self.read_policy();
        }
        self.notice();
    }

    /// Logs what others did meanwhile.
    fn notice(&mut self) {
        if let Ok(bypass) = self.datapath.bypass() {
            self.noticed.bypass(bypass);
        }
        self.noticed.file(self.watch.path(), self.watch.gone());
        self.noticed.pins(pins_problem(&self.pins).as_deref());
    }

    fn sweep(&mut self) {
        self.clock.swept = Instant::now();
        let policy = self.datapath.policy();
        let cleared = policy.and_then(|policy| match policy {
            Some(policy) => self.datapath.clear_dead(policy.span),
            None => Ok(0),
        });
        match cleared {
            Ok(cleared) => tracing::debug!(cleared, "cleared words that no window needs"),
            Err(error) => tracing::error!(%error, "cannot clear dead words"),
        }
    }

    fn reload(&mut self) {
        service::reloading();
        self.read_policy();
        service::ready();
    }

    fn read_policy(&mut self) {
        let path = self.watch.path().to_owned();
        match self.watch.read() {
            // The refusal is logged, and kept for `status`.
            Ok(text) => drop(self.enforced.apply(&mut self.datapath, &text, Some(&path))),
            Err(cause) => {
                tracing::warn!(%cause, path = %path.display(), "cannot read the policy; the last one holds");
                self.enforced.refusal = Some(format!("{}: {cause}", path.display()));
            }
        }
    }

    /// Who asked may have gone meanwhile; then nobody hears the answer.
    fn answer(&mut self, command: Command) {
        match command {
            Command::Status(answer) => drop(answer.send(self.status().map_err(words))),
            Command::Explain(address, answer) => {
                drop(answer.send(self.explain(address).map_err(words)));
            }
            Command::Top(by, rows, answer) => drop(answer.send(Ok(self.top(by, rows)))),
            Command::PolicyShow(answer) => drop(answer.send(Ok(self.policy()))),
            Command::PolicyApply(text, answer) => {
                drop(answer.send(self.enforced.apply(&mut self.datapath, &text, None)));
            }
            Command::Mode(change, answer) => {
                drop(answer.send(self.enforced.set_mode(&mut self.datapath, &change)));
            }
            Command::Counts(answer) => drop(answer.send(self.datapath.counts().map_err(words))),
        }
    }

    fn status(&self) -> Result<Status, MapError> {
        let (counts, record) = (self.datapath.counts()?, &self.enforced.record);
        let (passed, refused) = answer::totals(&counts);
        Ok(Status {
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            uptime_s: self.clock.started.elapsed().as_secs(),
            policy: PolicyStatus {
                version: record.version,
                generation: self.datapath.generation(),
                origin: record.origin.clone(),
                applied_unix_s: record.applied_unix_s,
                rules: answer::rules(&self.enforced.policy, &self.enforced.overlay, &counts),
                last_refusal: self.enforced.refusal.clone(),
                warnings: self.enforced.warnings(),
                file_gone: self.watch.gone().then(|| self.watch.path().display().to_string()),
            },
            bypass: self.bypass()?,
            interfaces: self.guards.status(),
            table: self.table()?,
            passed,
            refused,
            heartbeat_age_s: self.datapath.heartbeat_age().as_secs_f64(),
            metrics: self.servers.metrics().map(|address| address.to_string()),
            pins_problem: pins_problem(&self.pins),
        })
    }

    fn table(&self) -> Result<TableStatus, MapError> {
        let (table, span) = (self.datapath.table(), self.datapath.policy()?.map_or(0, |p| p.span));
        let live = table.count_live(self.datapath.now(), span);
        Ok(TableStatus { slots: table.slots(), bytes: table.bytes(), live })
    }

    fn explain(&self, address: IpAddr) -> Result<Explanation, MapError> {
        let source = Source::of(match address.to_canonical() {
            IpAddr::V4(address) => Address::V4(address.octets()),
            IpAddr::V6(address) => Address::V6(address.octets()),
        });
        let Enforced { policy, entries, overlay, record, .. } = &self.enforced;
        let now = self.datapath.now();
        let find = |rule: &_, key| self.datapath.table().find(rule, key, now);
        let unix = self.datapath.unix_now();
        let rules = answer::explain(policy, entries, &overlay.overrides(), source, unix, find);
        Ok(Explanation {
            address: address.to_string(),
            policy_version: record.version,
            bypass: self.bypass()?,
            rules,
        })
    }

    fn top(&self, by: TopBy, rows: usize) -> Top {
        let Enforced { policy, entries, overlay, .. } = &self.enforced;
        let (now, unix) = (self.datapath.now(), self.datapath.unix_now());
        answer::top((policy, entries, &overlay.overrides()), by, rows, unix, |each| {
            self.datapath.table().visit(entries, now, each)
        })
    }

    fn policy(&self) -> PolicyText {
        let record = &self.enforced.record;
        PolicyText {
            version: record.version,
            origin: record.origin.clone(),
            text: record.text.clone(),
        }
    }

    fn bypass(&self) -> Result<String, MapError> {
        Ok(bypass::name(self.datapath.bypass()?).to_owned())
    }
}

fn words(error: MapError) -> String {
    error.to_string()
}
