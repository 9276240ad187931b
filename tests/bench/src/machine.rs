//! Where figures come from: processor, kernel and commit.

use std::fs;
use std::process::Command;

/// In words.
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cpus: usize,
    pub(crate) kernel: String,
    pub(crate) commit: String,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let values = |key: &str| -> Vec<String> {
            let lines = info.lines().filter_map(|line| line.split_once(':'));
            lines.filter(|(name, _)| name.trim() == key).map(|(_, it)| it.trim().into()).collect()
        };
        let processor = values("model name").into_iter().next();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: processor.unwrap_or_else(|| "unknown".into()),
            cpus: values("processor").len(),
            kernel: kernel.trim().to_owned(),
            commit: commit().unwrap_or_else(|| "unknown".into()),
        }
    }
}

/// Memory that programs could have, in MiB, as far as the kernel tells.
pub(crate) fn available_memory() -> Option<u64> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

/// The commit, marked if files differ from it.
fn commit() -> Option<String> {
    let short = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])?;
    let mark = if changed.is_empty() { "" } else { " with changes" };
    Some(format!("{short}{mark}"))
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
