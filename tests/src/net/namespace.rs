//! One network namespace: made by `ip netns`, so that it has a name which survives a crash and can be
//! looked at from a shell. Nothing here knows about links or addresses.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::{Error, Result, sweep};
use crate::owner::unique_name;

/// Where `ip netns` keeps its names.
pub(super) const FOLDER: &str = "/run/netns";

/// A network namespace of our own, removed on drop.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new one with `lo` up, no source address checks, and none of IPv6's own chatter (router
    /// solicitations, duplicate address detection, link-local addresses), which would be counted.
    ///
    /// `purpose` becomes part of the name. Clears away first what dead processes left behind.
    pub fn create(purpose: &str) -> Result<Self> {
        sweep();
        let namespace = Self { name: unique_name(purpose) };
        run(ip(&["netns", "add", &namespace.name]), "")?;
        namespace.run(quiet_defaults)??;
        namespace.ip(&["link set lo up"])?;
        Ok(namespace)
    }

    /// As `ip netns` knows it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` inside, on a thread of its own. Sockets and child processes made there stay inside
    /// wherever they are used later.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let inside = self.handle()?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || inside.enter().map(|()| work()));
            // A panic inside is the caller's own.
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Something to enter it with from a thread that is to live inside.
    pub fn handle(&self) -> Result<Handle> {
        let path = PathBuf::from(FOLDER).join(&self.name);
        let file = File::open(&path);
        let file =
            file.map_err(|source| Error::system(format!("open {}", path.display()), source))?;
        Ok(Handle(file))
    }

    /// Runs `ip` commands inside, each without the leading `ip`, all in one process.
    pub fn ip(&self, commands: &[&str]) -> Result<String> {
        let mut script = commands.join("\n");
        script.push('\n');
        run(ip(&["-n", &self.name, "-batch", "-"]), &script)
    }

    /// Runs one `ip` command inside and reads its answer.
    pub(super) fn ip_json(&self, arguments: &[&str]) -> Result<serde_json::Value> {
        let mut words = vec!["-n", &self.name, "-json", "-details"];
        words.extend_from_slice(arguments);
        let answer = run(ip(&words), "")?;
        serde_json::from_str(&answer).map_err(|_not_json| Error::Answer {
            command: format!("ip {}", words.join(" ")),
            answer,
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nobody can act on a failure here; the next sweep tries again.
        let _ = run(ip(&["netns", "del", &self.name]), "");
    }
}

/// A way into a namespace. Keeps it alive, name or no name.
#[derive(Debug)]
pub struct Handle(File);

impl Handle {
    /// Moves the calling thread inside, for good. Sockets and threads made from here on are inside.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|errno| Error::system("enter a network namespace (needs root)", errno))
    }
}

fn quiet_defaults() -> Result<()> {
    // Defaults count for interfaces made later; `all` is there for those that combine by maximum.
    set("ipv4/conf/all/rp_filter", "0")?;
    set("ipv4/conf/default/rp_filter", "0")?;
    if !PathBuf::from("/proc/sys/net/ipv6").exists() {
        return Ok(()); // Booted with IPv6 off: its tests fail where they add an address, and say so.
    }
    for (name, value) in [
        ("accept_ra", "0"),
        ("accept_dad", "0"),
        ("router_solicitations", "0"),
        ("addr_gen_mode", "1"),
    ] {
        set(&format!("ipv6/conf/default/{name}"), value)?;
    }
    Ok(())
}

fn set(setting: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/net/{setting}");
    std::fs::write(&path, value).map_err(|source| Error::system(format!("write {path}"), source))
}

pub(super) fn ip(arguments: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(arguments);
    command
}

/// Runs a command with this input; its output, or an error that quotes the whole command line.
pub(super) fn run(mut command: Command, input: &str) -> Result<String> {
    let line = format!("{command:?}").replace('"', "");
    let output = feed(&mut command, input)
        .map_err(|source| Error::system(format!("run `{line}`"), source))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Command { command: format!("{line} {}", input.trim()).trim().to_owned(), message })
}

fn feed(command: &mut Command, input: &str) -> std::io::Result<Output> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that fails at once closes its input; its own message is the better one.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output()
}
