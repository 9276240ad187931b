//! What a test needs from the machine. A test that can't run says why and returns; with
//! `LIMITER_STRICT=1`, as in CI, it fails, so that a skip can't hide.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// What is missing, in words a person can act on.
pub type Missing = String;

/// Skips the surrounding test (a function without a result) unless every need is met.
///
/// ```no_run
/// use limiter_tests::{require, require::{root, tool}};
///
/// fn counts_real_packets() {
///     require!(root(), tool("ip"));
/// }
/// ```
#[macro_export]
macro_rules! require {
    ($($need:expr),+ $(,)?) => {
        $(
            if let Err(reason) = $need {
                $crate::require::skip(::std::module_path!(), &reason);
                return;
            }
        )+
    };
}

/// Says why a test doesn't run, and adds a line to the file that `LIMITER_SKIPS` names, if it does.
///
/// # Panics
/// If `LIMITER_STRICT` is `1`.
pub fn skip(test: &str, reason: &str) {
    assert!(!strict(), "{test} can't run, and LIMITER_STRICT=1 forbids skipping: {reason}");
    // Not eprintln!: the test harness swallows that for tests that pass.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {reason}");
    if let Some(list) = std::env::var_os("LIMITER_SKIPS") {
        note(Path::new(&list), &format!("{test}: {reason}\n"));
    }
}

/// Appends in one write, since several test programs note their skips in one file.
fn note(list: &Path, line: &str) {
    let opened = OpenOptions::new().create(true).append(true).open(list);
    if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
        let _ = writeln!(std::io::stderr(), "can't note a skip in {}: {error}", list.display());
    }
}

/// Whether skipping counts as a failure.
#[must_use]
pub fn strict() -> bool {
    std::env::var_os("LIMITER_STRICT").is_some_and(|value| value == "1")
}

/// Effective user id 0.
pub fn root() -> Result<(), Missing> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    Err("not root: network namespaces and BPF need it; run under sudo".into())
}

/// May load BPF programs, and the kernel has a BPF file system for pins.
pub fn bpf() -> Result<(), Missing> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !may_load_bpf(&status) {
        return Err("neither CAP_BPF nor CAP_SYS_ADMIN: run as root outside of a container".into());
    }
    let file_systems = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !file_systems.split_whitespace().any(|word| word == "bpf") {
        return Err("this kernel has no BPF file system (CONFIG_BPF_SYSCALL)".into());
    }
    Ok(())
}

fn may_load_bpf(proc_status: &str) -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const BPF: u64 = 1 << 39;
    let effective = proc_status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (SYS_ADMIN | BPF) != 0)
}

/// A program on the search path.
pub fn tool(name: &str) -> Result<(), Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Debian keeps `ip` where a plain user's PATH doesn't look.
    let sbin = ["/usr/sbin".into(), "/sbin".into()];
    if std::env::split_paths(&path).chain(sbin).any(|folder| folder.join(name).is_file()) {
        return Ok(());
    }
    Err(format!("`{name}` isn't installed"))
}

/// A file that an earlier step makes; `make` names the command that does.
pub fn file(path: &Path, make: &str) -> Result<(), Missing> {
    if path.is_file() {
        return Ok(());
    }
    Err(format!("{} is missing: run `{make}`", path.display()))
}

/// At least this many CPUs.
pub fn cpus(count: usize) -> Result<(), Missing> {
    let have = std::thread::available_parallelism().map_or(1, usize::from);
    if have >= count {
        return Ok(());
    }
    Err(format!("needs {count} CPUs, has {have}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_capabilities_as_the_kernel_writes_them() {
        assert!(may_load_bpf("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_load_bpf("CapEff:\t0000008000000000\n"), "CAP_BPF alone");
        assert!(!may_load_bpf("CapEff:\t0000000000000000\n"));
        assert!(!may_load_bpf("CapEff:\t00000000a80425fb\n"), "a container's usual set");
        assert!(!may_load_bpf(""));
    }

    #[test]
    fn names_what_is_missing() {
        assert_eq!(tool("sh"), Ok(()));
        assert_eq!(tool("no-such-tool"), Err("`no-such-tool` isn't installed".into()));
        let reason = file(Path::new("/nonexistent"), "cargo xtask build").unwrap_err();
        assert_eq!(reason, "/nonexistent is missing: run `cargo xtask build`");
    }
}
