//! Running other programs: found where they are, printed or captured, and named in the error when
//! they fail. Knows nothing of what they are run for.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, IsTerminal, pipe};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, iter};

use anyhow::{Context, Result, anyhow, bail};

/// Says what xtask is doing. On stderr: stdout belongs to results.
pub(crate) fn say(text: impl AsRef<str>) {
    eprintln!("xtask: {}", text.as_ref());
}

/// The workspace's folder.
pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}

/// A path in the workspace's own `target` folder, where xtask keeps what it makes.
pub(crate) fn target(inner: impl AsRef<Path>) -> PathBuf {
    root().join("target").join(inner)
}

/// A cargo that works on the workspace.
pub(crate) fn cargo(command: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.arg(command).current_dir(root());
    if wants_color() {
        cargo.env("CARGO_TERM_COLOR", "always");
    }
    cargo
}

/// A cargo with its own target folder and exactly these rustc flags, so that neither the caller's
/// flags leak in nor the caller's builds are thrown away.
pub(crate) fn cargo_apart(command: &str, folder: &str, rustflags: &str) -> Command {
    let mut cargo = cargo(command);
    cargo.env("CARGO_TARGET_DIR", target(folder)).env_remove("CARGO_ENCODED_RUSTFLAGS");
    match rustflags {
        "" => cargo.env_remove("RUSTFLAGS"),
        flags => cargo.env("RUSTFLAGS", flags),
    };
    cargo
}

/// Runs a program whose output the user sees.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    check(command, status)
}

/// Runs a program and returns its stdout; its stderr is shown only in the error.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    check(command, output.status).with_context(|| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!("{}\n{}", text.trim_end(), stderr.trim_end()).trim().to_owned()
    })?;
    Ok(text)
}

/// Runs a cargo that builds one program, and returns where that lies.
pub(crate) fn built_program(cargo: &mut Command) -> Result<PathBuf> {
    cargo.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    // A failed one has said why on stderr; its messages are for programs, not for the error.
    let messages = capture(cargo).map_err(|error| anyhow!("{}", error.root_cause()))?;
    last_executable(&messages)
        .with_context(|| format!("`{}` names no program that it built", line(cargo)))
}

/// Runs a program whose output the user sees, and hands each line, without colours, to `read`.
pub(crate) fn tee(command: &mut Command, mut read: impl FnMut(&str)) -> Result<ExitStatus> {
    let (reader, writer) = pipe().context("cannot make a pipe")?;
    let both = writer.try_clone().context("cannot make a pipe")?;
    let mut child =
        command.stdout(writer).stderr(both).spawn().with_context(|| cannot_start(command))?;
    // The command still owns our copies of the pipe's end; while they live, reading never ends.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("cannot read a program's output")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        read(&without_colors(&line));
    }
    child.wait().with_context(|| cannot_start(command))
}

/// An error if the program failed.
pub(crate) fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("`{}` failed ({status})", line(command));
    }
    Ok(())
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let words = iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Where a program is: on PATH, among cargo's own, or where Debian hides tools from plain users.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([cargo_bin(), "/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// A program from [`find`], or just its name, so that the error names it.
pub(crate) fn tool(program: &str) -> Command {
    Command::new(find(program).unwrap_or_else(|| program.into()))
}

/// Where `cargo install` puts programs.
pub(crate) fn cargo_bin() -> PathBuf {
    let home = |name| env::var_os(name).map(PathBuf::from);
    let cargo = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
    cargo.unwrap_or_default().join("bin")
}

/// Whether this is root, who alone may install packages and load programs into the kernel.
pub(crate) fn is_root() -> bool {
    // The owner of our own /proc entry is our effective user.
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn last_executable(messages: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(message["executable"].as_str()?.into())
    })
}

fn cannot_start(command: &Command) -> String {
    format!("cannot run `{}`", line(command))
}

fn wants_color() -> bool {
    env::var_os("NO_COLOR").is_none()
        && env::var_os("CARGO_TERM_COLOR").is_none()
        && std::io::stdout().is_terminal()
}

fn without_colors(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_taken_out_of_lines() {
        assert_eq!(without_colors("\x1b[32;1m  Summary\x1b[0m 3 passed"), "  Summary 3 passed");
    }

    #[test]
    fn a_failing_program_is_named() {
        let error = run(&mut Command::new("false")).unwrap_err();
        assert_eq!(error.to_string(), "`false` failed (exit status: 1)");
    }

    #[test]
    fn the_built_program_is_found_among_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","executable":null}
{"reason":"compiler-artifact","executable":"/target/limiter"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(last_executable(messages), Some("/target/limiter".into()));
        assert_eq!(last_executable(""), None);
    }

    #[test]
    fn output_is_shown_and_read() {
        let mut lines = Vec::new();
        let mut command = Command::new("printf");
        let status = tee(command.arg("a\\nb\\n"), |line| lines.push(line.to_owned())).unwrap();
        assert!(status.success());
        assert_eq!(lines, ["a", "b"]);
    }
}
