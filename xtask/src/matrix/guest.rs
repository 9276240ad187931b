//! What a guest is made of: the kernel tests and `ip`, the libraries they want, busybox, modules, and the
//! few lines that start them. Everything lies in memory; there is no disk and no network but what the tests
//! make themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::archive::MODULES;
use super::cpio::Archive;
use crate::process::{built_program, capture, cargo, find, run as run_program, say, target, tool};
use crate::setup::static_busybox;

/// The guest's file system, in the kernel's folder.
pub(super) const INITRAMFS: &str = "initramfs";
/// Before the tests' exit status, on the second serial port.
pub(super) const VERDICT: &str = "verdict";

/// The first process. Tests run one at a time: while one has its program put into the kernel's XDP
/// dispatcher, which is code that is rewritten, an emulated CPU that runs another's can trip over it. The
/// verdict has a serial port of its own: a kernel that panics also ends the machine with success.
fn init(filters: &str) -> String {
    format!(
        r#"#!/bin/busybox sh
export PATH=/bin
busybox mount -t devtmpfs dev /dev
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t bpf bpf /sys/fs/bpf
for module in /modules/*; do busybox insmod $module || echo "insmod $module failed"; done
cd /tmp
LIMITER_STRICT=1 /kernel-tests --test-threads=1 --show-output --color=never {filters}
echo "{VERDICT} $?" > /dev/ttyS1
busybox poweroff -f
"#
    )
}

/// Builds the kernel tests: the very program that this machine's kernel is tested with, so that nothing
/// is compiled a second time.
pub(super) fn build_tests() -> Result<PathBuf> {
    say("building the kernel tests for virtual machines");
    let mut cargo = cargo("test");
    cargo.args(["--no-run", "--package", "limiter-tests", "--test", "kernel"]);
    let built = built_program(&mut cargo).context("the kernel tests do not compile")?;
    // Debug information only makes the guest's memory larger.
    let small = target("matrix/kernel-tests");
    fs::create_dir_all(target("matrix")).context("no folder for guests")?;
    run_program(tool("strip").arg("--strip-debug").arg("-o").arg(&small).arg(&built))?;
    Ok(small)
}

/// Writes the file system that the guest boots into.
///
/// Tests run whose names contain one of the words in `filters`; all, if there is none.
pub(super) fn initramfs(folder: &Path, tests: &Path, filters: &str) -> Result<()> {
    let mut archive = Archive::default();
    for directory in ["bin", "dev", "proc", "run", "sys", "tmp", MODULES] {
        archive.directory(directory);
    }
    archive.file("init", init(filters).as_bytes());
    let busybox = static_busybox().context("no static busybox")?;
    archive.file("bin/busybox", &read(&busybox)?);
    let ip = find("ip").context("no `ip`")?;
    archive.file("bin/ip", &read(&ip)?);
    archive.file("kernel-tests", &read(tests)?);
    let libraries = libraries(&capture(tool("ldd").arg(tests).arg(ip))?);
    for directory in parents(&libraries) {
        archive.directory(&directory);
    }
    for library in &libraries {
        archive.file(library.trim_start_matches('/'), &read(Path::new(library))?);
    }
    for entry in fs::read_dir(folder.join(MODULES)).context("no modules")? {
        let entry = entry?;
        let name = entry.file_name();
        archive.file(&format!("{MODULES}/{}", name.to_string_lossy()), &read(&entry.path())?);
    }
    let path = folder.join(INITRAMFS);
    fs::write(&path, archive.finish()).with_context(|| format!("cannot write {}", path.display()))
}

/// The files that `ldd` names for some programs, each once, the dynamic linker among them.
fn libraries(ldd: &str) -> BTreeSet<String> {
    // Of several programs it names each, with a colon.
    let paths = ldd.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
    paths.map(str::to_owned).collect()
}

/// The folders these files lie in, outer ones first, without the leading slash.
fn parents(files: &BTreeSet<String>) -> BTreeSet<String> {
    let folders = files.iter().flat_map(|file| Path::new(file).ancestors().skip(1));
    let relative = folders.filter_map(|folder| folder.strip_prefix("/").ok());
    relative
        .map(|folder| folder.display().to_string())
        .filter(|folder| !folder.is_empty())
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_come_with_their_folders() {
        let of_one = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        let found = libraries(&format!("/kernel-tests:\n{of_one}/sbin/ip:\n{of_one}"));
        let files: Vec<&String> = found.iter().collect();
        assert_eq!(files, ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]);
        let folders: Vec<String> = parents(&found).into_iter().collect();
        assert_eq!(folders, ["lib", "lib/x86_64-linux-gnu", "lib64"]);
    }
}
