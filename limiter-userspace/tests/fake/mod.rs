//! A daemon without maps: answers every command from the fixtures, on a real socket.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use limiter_common::counters::{Count, RuleCount};
use limiter_common::key::Level;
use limiter_common::packet::Fault;
use limiter_common::verdict::Exit;
use limiter_userspace::control::command::{Command, TopBy};
use limiter_userspace::control::model::{Applied, Explanation, PolicyText, Status, Top};
use limiter_userspace::control::{server, socket};
use limiter_userspace::telemetry::counts::{Counts, RuleCounts};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};

pub(crate) const POLICY: &str = "schema = 1\nversion = 7\n";

/// A policy with this word in it is refused.
pub(crate) const BAD: &str = "mistake";

pub(crate) fn status() -> Status {
    read(include_str!("../fixtures/status.json"))
}

pub(crate) fn counts() -> Counts {
    let count = |packets| Count { packets, bytes: packets * 60 };
    Counts {
        exits: vec![(Exit::Admitted, count(10)), (Exit::Refused, count(4))],
        faults: vec![(Fault::Malformed, count(1))],
        rules: vec![RuleCounts {
            name: "new-connections".to_owned(),
            counts: vec![
                (RuleCount::Passed, count(10)),
                (RuleCount::Refused(Level::Source), count(4)),
            ],
        }],
    }
}

fn read<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

/// What the daemon's loop would do, with this state.
pub(crate) fn answer(command: Command, status: &Status) {
    match command {
        Command::Status(answer) => drop(answer.send(Ok(status.clone()))),
        Command::Counts(answer) => drop(answer.send(Ok(counts()))),
        Command::Explain(address, answer) => {
            let mut explanation: Explanation = read(include_str!("../fixtures/explain.json"));
            explanation.address = address.to_string();
            drop(answer.send(Ok(explanation)));
        }
        Command::Top(by, limit, answer) => {
            let mut top: Top = read(include_str!("../fixtures/top.json"));
            top.rows.truncate(limit);
            if by == TopBy::Prefix {
                top = Top { by: "prefix".into(), live: 0, rows: Vec::new() };
            }
            drop(answer.send(Ok(top)));
        }
        Command::PolicyShow(answer) => {
            let text = PolicyText { version: 7, origin: "p.toml".into(), text: POLICY.into() };
            drop(answer.send(Ok(text)));
        }
        Command::PolicyApply(text, answer) if text.contains(BAD) => {
            drop(answer.send(Err("policy refused: 1 mistake\nrule \"a\": limit: missing".into())));
        }
        Command::PolicyApply(_, answer) => {
            drop(answer.send(Ok(Applied { version: 8, warnings: vec!["limit is 0".into()] })));
        }
        Command::Mode(change, answer) if change.rule == "new-connections" => {
            let seen = format!("{} by {}: {}", change.mode, change.owner, change.reason);
            drop(answer.send(Ok(Applied { version: 7, warnings: vec![seen] })));
        }
        Command::Mode(change, answer) => {
            let rule = change.rule;
            drop(
                answer
                    .send(Err(format!("no rule is called {rule:?}; `limiter status` lists them"))),
            );
        }
    }
}

/// The loop by itself, for tests of what lies before it. Ends when the sender is gone.
pub(crate) fn start(status: Status) -> mpsc::Sender<Command> {
    let (commands, mut received) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Some(command) = received.recv().await {
            answer(command, &status);
        }
    });
    commands
}

/// A fake daemon on a socket of its own, in a thread of its own; stops when dropped.
pub(crate) struct Daemon {
    directory: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Daemon {
    pub(crate) fn start() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("limiter-fake-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let path = directory.join("limiter.sock");
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = socket::bind(&path, None).unwrap();
                ready.send(()).unwrap();
                let shutdown = async { drop(stopped.await) };
                server::serve(listener, start(status()), shutdown).await.unwrap();
            });
        });
        is_ready.recv().unwrap();
        Self { directory, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("limiter.sock")
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// As a clean stop of the daemon.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
        drop(std::fs::remove_dir_all(&self.directory));
    }
}
