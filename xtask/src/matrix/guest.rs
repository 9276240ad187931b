//! What a guest is made of: the kernel tests as one static program, busybox, modules, and the few lines
//! that start them. Everything lies in memory; there is no disk and no network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::archive::MODULES;
use super::cpio::Archive;
use crate::process::{built_program, cargo_apart, say};
use crate::setup::static_busybox;

/// The guest's file system, in the kernel's folder.
pub(super) const INITRAMFS: &str = "initramfs";
/// Before the tests' exit status, on the second serial port.
pub(super) const VERDICT: &str = "verdict";

/// Only static programs run where there is no libc.
const STATIC: &str = "-C target-feature=+crt-static";

/// The first process. The verdict has a serial port of its own: a kernel that panics also ends the
/// machine with success.
fn init() -> String {
    format!(
        r#"#!/bin/busybox sh
export PATH=/bin
busybox mount -t devtmpfs dev /dev
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t bpf bpf /sys/fs/bpf
for module in /modules/*; do busybox insmod $module || echo "insmod $module failed"; done
ip link set lo up
# busybox names the other end itself.
ip link add lim0 type veth
ip link set lim0 up
ip link set veth0 up
cd /tmp
LIMITER_STRICT=1 LIMITER_ATTACH=lim0 /kernel-tests --test-threads=2 --color=never
echo "{VERDICT} $?" > /dev/ttyS1
busybox poweroff -f
"#
    )
}

/// Builds the kernel tests as a static program.
pub(super) fn build_tests() -> Result<PathBuf> {
    say("building the kernel tests for virtual machines");
    let mut cargo = cargo_apart("test", "guest", STATIC);
    // A target of its own keeps build scripts and macros out of the static flags.
    cargo.args(["--no-run", "--package", "limiter-tests", "--test", "kernel"]);
    cargo.args(["--target", "x86_64-unknown-linux-gnu"]);
    // Debug information only makes the guest's memory larger.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    built_program(&mut cargo).context("the kernel tests do not compile for a guest")
}

/// Writes the file system that the guest boots into.
pub(super) fn initramfs(folder: &Path, tests: &Path) -> Result<()> {
    let mut archive = Archive::default();
    for directory in ["bin", "dev", "proc", "sys", "tmp", MODULES] {
        archive.directory(directory);
    }
    archive.file("init", init().as_bytes());
    let busybox = static_busybox().context("no static busybox")?;
    archive.file("bin/busybox", &read(&busybox)?);
    archive.symlink("bin/ip", "busybox");
    archive.file("kernel-tests", &read(tests)?);
    for entry in fs::read_dir(folder.join(MODULES)).context("no modules")? {
        let entry = entry?;
        let name = entry.file_name();
        archive.file(&format!("{MODULES}/{}", name.to_string_lossy()), &read(&entry.path())?);
    }
    let path = folder.join(INITRAMFS);
    fs::write(&path, archive.finish()).with_context(|| format!("cannot write {}", path.display()))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
