//! One run of the daemon: start and wait until it is ready, kill it, stop it.

use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Error, Home, Result, notify::Notifications};
use crate::net::Namespace;
use crate::wait::wait_for;

/// Loading and verifying the program takes up to seconds on a busy machine or an emulated kernel.
const START: Duration = Duration::from_secs(30);
const STOP: Duration = Duration::from_secs(10);

/// What to run the daemon with, besides the folders of its [`Home`].
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program to start; [`super::binary()`] finds the one to test.
    pub binary: PathBuf,
    /// Each becomes one `--iface`.
    pub interfaces: Vec<String>,
    /// For `--policy`.
    pub policy: PathBuf,
    /// For `--metrics`; `None` means off.
    pub metrics: Option<SocketAddr>,
    /// Further arguments, last.
    pub extra: Vec<String>,
}

/// A running daemon, killed on drop. What it attached and pinned goes with its [`Home`].
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts `limiter run` inside the namespace and returns when it says that it is ready.
    pub fn start(namespace: &Namespace, home: &Home, invocation: &Invocation) -> Result<Self> {
        let notifications = Notifications::listen(&home.notify())
            .map_err(|source| Error::system("listen for the daemon's readiness", source))?;
        let mut daemon = Self::spawn(namespace, home, invocation)?;
        daemon.wait_until_ready(&notifications)?;
        Ok(daemon)
    }

    /// Starts it and doesn't wait: it may be killed at any step of its start.
    pub fn spawn(namespace: &Namespace, home: &Home, invocation: &Invocation) -> Result<Self> {
        let mut command = command(home, invocation)?;
        let child = namespace.run(|| command.spawn())?;
        let child = child.map_err(|source| Error::system(format!("start {command:?}"), source))?;
        Ok(Self { child, log: home.log_path() })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// `kill -9`: no last words, pins and link stay.
    pub fn kill(mut self) {
        self.kill_now();
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    pub fn stop(mut self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let ended = wait_for(STOP, || self.child.try_wait().ok().flatten());
        ended.ok_or_else(|| Error::Late {
            state: "stopped",
            seconds: STOP.as_secs(),
            log: said(&self.log),
        })
    }

    /// Sends a signal, for example SIGHUP.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).map_err(|errno| {
            Error::system(format!("signal the daemon, process {}", self.pid()), errno)
        })
    }

    fn wait_until_ready(&mut self, notifications: &Notifications) -> Result<()> {
        let deadline = Instant::now() + START;
        while !notifications.ready() {
            let status = self.child.try_wait();
            let status =
                status.map_err(|source| Error::system("look at the daemon's state", source))?;
            if let Some(status) = status {
                return Err(Error::Ended { status, log: said(&self.log) });
            }
            if Instant::now() > deadline {
                return Err(Error::Late {
                    state: "ready",
                    seconds: START.as_secs(),
                    log: said(&self.log),
                });
            }
        }
        Ok(())
    }

    fn kill_now(&mut self) {
        // Both fail only if it has ended and been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.kill_now();
    }
}

fn command(home: &Home, invocation: &Invocation) -> Result<Command> {
    let log = OpenOptions::new().create(true).append(true).open(home.log_path());
    let log = log.map_err(|source| Error::system("open the daemon's log", source))?;
    let both = log.try_clone().map_err(|source| Error::system("open the daemon's log", source))?;
    let mut command = Command::new(&invocation.binary);
    command.arg("run");
    for interface in &invocation.interfaces {
        command.args(["--iface", interface]);
    }
    command.arg("--policy").arg(&invocation.policy);
    command.arg("--pin-dir").arg(home.pins()).arg("--socket").arg(home.socket());
    command.arg("--state-dir").arg(home.state());
    command
        .arg("--metrics")
        .arg(invocation.metrics.map_or("off".into(), |address| address.to_string()));
    command.args(&invocation.extra).env("NOTIFY_SOCKET", home.notify());
    command.stdin(Stdio::null()).stdout(log).stderr(both);
    // Ctrl-C at a terminal reaches the whole group; only its owner may end this daemon.
    command.process_group(0);
    Ok(command)
}

fn said(log: &Path) -> String {
    std::fs::read(log)
        .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
