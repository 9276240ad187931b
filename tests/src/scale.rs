//! How large a test may be here. An emulated machine does some ten thousand packets a second where a real
//! one does millions: there, tests of the same shape run a hundredth of it, and say so.

use std::io::Write as _;

/// An emulated machine does one of so many.
const SMALLER: u64 = 100;

/// `full`, or the part of it that an emulated machine can do, at least 1.
#[must_use]
pub fn scaled(full: u64) -> u64 {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if is_emulated(&cpu) { (full / SMALLER).max(1) } else { full }
}

/// The same, said where everyone sees it: once for each test.
#[must_use]
pub fn scaled_for(test: &str, full: u64) -> u64 {
    let part = scaled(full);
    if part != full {
        // Not eprintln!: the test harness swallows that for tests that pass.
        let _ = writeln!(std::io::stderr(), "SCALED DOWN {test}: {part} instead of {full}");
    }
    part
}

/// QEMU names its emulated CPU so; with hardware's help it names another.
fn is_emulated(cpu: &str) -> bool {
    cpu.lines().any(|line| line.starts_with("model name") && line.contains("QEMU TCG"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_machine_is_known_by_its_cpu() {
        assert!(is_emulated("processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\n"));
        assert!(!is_emulated("model name\t: AMD EPYC\n"));
        assert!(!is_emulated("model name\t: QEMU Virtual CPU version 2.5+\n"));
    }
}
