//! `cargo xtask fuzz`: the targets of `tests/fuzz` under libFuzzer, on stable Rust. What a target does and
//! where its seeds are is written there; this builds, runs, and says what to do with what was found.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{
    capture, cargo, cargo_apart, line, root, run as run_program, say, target, tool,
};
use crate::setup::{self, Need};

/// Feed inputs to parser, claim and policy until one fails or the time is over
///
/// It goes on from the seeds in tests/fuzz/corpus and from what earlier runs reached, which is kept in
/// target/fuzz/corpus. `cargo test` runs the seeds and some inputs made from them; this searches.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which; all of them, one after another, if none is named
    #[arg(value_parser = TARGETS)]
    target: Option<String>,
    /// How long each is run
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Instead, add this file to the target's seeds, under the name that --as gives it
    #[arg(long, value_name = "FILE", requires_all = ["target", "name"])]
    add: Option<PathBuf>,
    /// The situation in words, as `first-fragment-of-8-bytes`
    #[arg(long = "as", value_name = "NAME", requires = "add")]
    name: Option<String>,
}

const TARGETS: [&str; 3] = ["parser", "claim", "policy"];
const PROFILE: &str = "fuzz";
const PACKAGE: [&str; 2] = ["--package", "limiter-fuzz"];

/// What cargo-fuzz asks of a nightly, a stable compiler takes as well, but for the sanitizers: there is
/// no unsafe code in what is fuzzed. Counters show what an input reaches, comparisons what is missing.
const RUSTFLAGS: &str = "--cfg fuzzing \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

pub(crate) fn run(args: Args) -> Result<()> {
    if let (Some(target), Some(file), Some(name)) = (&args.target, &args.add, &args.name) {
        return add(target, file, name);
    }
    setup::ensure(Need::Fuzz)?;
    let asked = |name: &&str| args.target.as_ref().is_none_or(|target| target == name);
    let asked: Vec<&str> = TARGETS.into_iter().filter(asked).collect();
    let built = build(&asked)?;
    let mut found = Vec::new();
    for name in asked {
        if !search(name, &built.join(program(name)), args.seconds)? {
            found.push(name);
        }
    }
    if !found.is_empty() {
        bail!("inputs that fail were found for: {}; see above", found.join(", "));
    }
    Ok(())
}

/// Puts a found input among the seeds.
fn add(target: &str, file: &Path, name: &str) -> Result<()> {
    let file = file.canonicalize().with_context(|| format!("no file {}", file.display()))?;
    run_program(seeds("add").arg(target).arg(file).arg(name))
}

/// The corpus's own program.
fn seeds(verb: &str) -> Command {
    let mut cargo = cargo("run");
    cargo.arg("--quiet").args(PACKAGE).args(["--bin", "seeds", "--", verb]);
    cargo
}

/// Runs one target; false if it found something.
fn search(name: &str, fuzzer: &Path, seconds: u32) -> Result<bool> {
    say(format!("── {name}, {seconds} s ──"));
    let (reached, given) = (folder("corpus", name)?, folder("seeds", name)?);
    run_program(seeds("unpack").arg(name).arg(&given))?;
    let findings = folder("findings", name)?;
    let log = target("fuzz").join(format!("{name}.log"));
    let mut libfuzzer = Command::new(fuzzer);
    libfuzzer.arg(&reached).arg(&given);
    libfuzzer.arg(format!("-max_total_time={seconds}"));
    libfuzzer.arg(format!("-artifact_prefix={}/", findings.display()));
    libfuzzer.args(["-max_len=4096", "-timeout=10", "-print_final_stats=1"]);
    let dictionary = root().join("tests/fuzz").join(format!("{name}.dict"));
    if dictionary.is_file() {
        libfuzzer.arg(format!("-dict={}", dictionary.display()));
    }
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let status = libfuzzer.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status();
    let status = status.with_context(|| format!("cannot start `{}`", line(&libfuzzer)))?;
    let told = fs::read(&log).map(|told| String::from_utf8_lossy(&told).into_owned())?;
    println!("{name}: {}", summary(&told));
    if !status.success() {
        without_search(&told).for_each(|line| println!("    {line}"));
        explain(name, fuzzer, &findings);
    }
    println!("(all of it: {})", log.display());
    Ok(status.success())
}

/// How much was tried, and how many places in the code it reached.
fn summary(told: &str) -> String {
    let last = |before: &str| {
        let (_, after) = told.rsplit_once(before)?;
        after.split_whitespace().next()
    };
    let inputs = last("stat::number_of_executed_units:").unwrap_or("no");
    let rate = last("stat::average_exec_per_sec:").unwrap_or("0");
    let reached = last(" cov: ").unwrap_or("no");
    format!("{inputs} inputs ({rate} a second), {reached} places reached")
}

/// What a person wants to see of a finding: not the search, the stack, the dictionary.
fn without_search(told: &str) -> impl Iterator<Item = &str> {
    let beginning = told.lines().skip_while(|line| !line.contains("panicked at"));
    beginning.take_while(|line| !line.starts_with("stack backtrace") && !line.starts_with("note:"))
}

/// Builds these fuzzers and returns the folder that they are in.
fn build(names: &[&str]) -> Result<PathBuf> {
    let host = host()?;
    let mut cargo = cargo_apart("build", "fuzz", RUSTFLAGS);
    cargo.args(PACKAGE).args(["--features", "libfuzzer", "--profile", PROFILE]);
    cargo.args(names.iter().flat_map(|name| ["--bin".to_owned(), program(name)]));
    // With a target named, the flags aren't used for what runs while building.
    cargo.args(["--target", &host]);
    run_program(&mut cargo).context("the fuzzers do not compile")?;
    Ok(target("fuzz").join(host).join(PROFILE))
}

fn program(name: &str) -> String {
    format!("fuzz-{name}")
}

/// The triple of this machine.
fn host() -> Result<String> {
    let told = capture(tool("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc doesn't say what machine this is")
}

fn folder(what: &str, name: &str) -> Result<PathBuf> {
    let folder = target("fuzz").join(what).join(name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// What to do with the newest finding.
fn explain(name: &str, fuzzer: &Path, findings: &Path) {
    let written = |entry: &fs::DirEntry| entry.metadata().and_then(|file| file.modified()).ok();
    let entries = fs::read_dir(findings).into_iter().flatten().filter_map(Result::ok);
    let Some(newest) = entries.max_by_key(written) else {
        return;
    };
    let (file, fuzzer) = (newest.path(), fuzzer.display());
    let file = file.display();
    println!(
        "\nThis input fails: {file}\n\
         Run it alone:     {fuzzer} {file}\n\
         Make it smaller:  {fuzzer} -minimize_crash=1 -max_total_time=60 {file}\n\
         Keep it:          cargo xtask fuzz {name} --add {file} --as WHAT-IT-IS"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
#2\tINITED cov: 7 ft: 8 corp: 1/1b exec/s: 0 rss: 26Mb
#9\tNEW    cov: 446 ft: 1293 corp: 20/692b exec/s: 0 rss: 27Mb

thread '<unnamed>' (1) panicked at tests/fuzz/src/parser.rs:63:9:
5 reads
note: run with `RUST_BACKTRACE=1`
stat::number_of_executed_units: 175817
stat::average_exec_per_sec:     29302
";

    #[test]
    fn libfuzzers_words_are_summed_up() {
        assert_eq!(summary(TOLD), "175817 inputs (29302 a second), 446 places reached");
        assert_eq!(summary(""), "no inputs (0 a second), no places reached");
        let shown: Vec<_> = without_search(TOLD).collect();
        assert_eq!(shown[1..], ["5 reads"]);
    }
}
