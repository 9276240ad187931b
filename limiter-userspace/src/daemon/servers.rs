//! Everything that wakes the loop: requests from the sockets, the second, signals.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::control;
use crate::control::command::Command;
use crate::telemetry::exporter;

/// Between two looks at clock, interfaces and policy file.
const TICK: Duration = Duration::from_secs(1);
/// Requests that may wait for the loop.
const QUEUE: usize = 64;

/// All that can happen.
pub(super) enum Event {
    Command(Command),
    Tick,
    /// SIGHUP: read the policy file again.
    Reload,
    /// SIGTERM or SIGINT.
    Stop,
}

/// Who asks the loop, and what else wakes it.
pub(super) struct Servers {
    commands: mpsc::Receiver<Command>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
    metrics: Option<SocketAddr>,
    ticks: Interval,
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Servers {
    /// Where metrics are served, if they are.
    pub(super) fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Begins to answer on the sockets.
    pub(super) fn begin(metrics: Option<TcpListener>, socket: UnixListener) -> io::Result<Self> {
        let (sender, commands) = mpsc::channel(QUEUE);
        let (stop, stopped) = watch::channel(false);
        let address = metrics.as_ref().and_then(|listener| listener.local_addr().ok());
        let until_stop = |mut stopped: watch::Receiver<bool>| async move {
            // An error means that the loop is gone: as good as told.
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        let control = control::server::serve(socket, sender.clone(), until_stop(stopped.clone()));
        let mut tasks = vec![tokio::spawn(logged("control socket", control))];
        if let Some(listener) = metrics {
            let exporter = exporter::serve(listener, sender, until_stop(stopped));
            tasks.push(tokio::spawn(logged("exporter", exporter)));
        }
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Ok(Self {
            commands,
            stop,
            tasks,
            metrics: address,
            ticks,
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for whatever comes first.
    pub(super) async fn next(&mut self) -> Event {
        tokio::select! {
            Some(command) = self.commands.recv() => Event::Command(command),
            _ = self.ticks.tick() => Event::Tick,
            _ = self.hangup.recv() => Event::Reload,
            _ = self.terminate.recv() => Event::Stop,
            _ = self.interrupt.recv() => Event::Stop,
        }
    }

    /// Ends the servers; requests that still wait are told so.
    pub(super) async fn end(self) {
        let Self { commands, stop, tasks, .. } = self;
        drop(commands);
        let _ = stop.send(true);
        for task in tasks {
            let _ = task.await;
        }
    }
}

async fn logged(what: &str, server: impl Future<Output = io::Result<()>>) {
    if let Err(cause) = server.await {
        tracing::error!(%cause, "the {what} stopped answering; limits hold, restart the daemon");
    }
}
