//! Runs the `limiter` binary to its end, as a person at a shell does, but never waits for ever. Knows
//! no verb.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use super::{Error, Home, Result};
use crate::net::Namespace;
use crate::wait::wait_for;

/// The command line gives up asking the daemon long before.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a command said, and how it ended.
#[derive(Clone, Debug)]
pub struct Said {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Lets a `limiter` command talk to the daemon of this home and find its pins.
pub fn at_home<'a>(command: &'a mut Command, home: &Home) -> &'a mut Command {
    command.env("LIMITER_SOCKET", home.socket()).env("LIMITER_PIN_DIR", home.pins())
}

/// Runs a command inside a namespace; one that takes longer than half a minute is killed.
pub fn run(namespace: &Namespace, command: &mut Command) -> Result<Said> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = namespace.run(|| command.spawn())?;
    let mut child = child.map_err(|source| Error::system(format!("start {command:?}"), source))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let out = scope.spawn(move || read(out));
        let err = scope.spawn(move || read(err));
        let status = end(&mut child);
        let text = |reader: thread::ScopedJoinHandle<'_, String>| reader.join().unwrap_or_default();
        let (stdout, stderr) = (text(out), text(err));
        match status {
            Some(status) => Ok(Said { code: status.code(), stdout, stderr }),
            None => {
                Err(Error::Late { state: "at its end", seconds: PATIENCE.as_secs(), log: stderr })
            }
        }
    })
}

fn end(child: &mut Child) -> Option<ExitStatus> {
    let ended = wait_for(PATIENCE, || child.try_wait().ok().flatten());
    if ended.is_none() {
        // Both fail only if it has ended in this very moment.
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

fn read(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // What came before an error is still worth showing.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}
