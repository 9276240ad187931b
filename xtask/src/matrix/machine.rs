//! Boots one kernel under emulation and brings back what it printed and its verdict. Hardware
//! virtualisation is not used: stock kernels die on it inside other virtual machines.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::archive::IMAGE;
use super::guest::{INITRAMFS, VERDICT};
use crate::process::tool;

/// What the guest printed, in the kernel's folder.
pub(super) const CONSOLE: &str = "console.log";

/// Every test has the program verified anew, which takes seconds under emulation on old kernels.
const PATIENCE: Duration = Duration::from_secs(900);

/// Every feature of a newer processor (`max`) is one more that has to be emulated: page tables of five
/// levels alone make all of it slower by a half. By the name, tests know that they are emulated.
const CPU: &str = "qemu64,model-id=QEMU TCG CPU";

/// What a guest left behind.
pub(super) struct Run {
    /// The tests' exit status; none if the guest did not get that far.
    pub(super) status: Option<u8>,
    /// Everything it printed.
    pub(super) console: String,
}

/// Boots the kernel in `folder` and waits for its end.
pub(super) fn boot(folder: &Path) -> Result<Run> {
    let (console, verdict) = (folder.join(CONSOLE), folder.join(VERDICT));
    let _ = fs::remove_file(&verdict);
    let output = File::create(&console).context("cannot write the guest's console")?;
    let mut qemu = qemu(folder, &verdict);
    qemu.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
    let child = qemu.spawn().context("cannot start qemu")?;
    wait(child)?;
    Ok(Run { status: read(&verdict).lines().find_map(status), console: read(&console) })
}

fn qemu(folder: &Path, verdict: &Path) -> Command {
    let mut qemu = tool("qemu-system-x86_64");
    qemu.args(["-accel", "tcg", "-cpu", CPU, "-M", "pc", "-m", "1024", "-smp", "2"]);
    qemu.args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"]);
    qemu.args(["-serial", "stdio", "-serial"]).arg(format!("file:{}", verdict.display()));
    qemu.arg("-kernel").arg(folder.join(IMAGE)).arg("-initrd").arg(folder.join(INITRAMFS));
    qemu.args(["-append", "console=ttyS0 panic=-1 quiet"]);
    qemu
}

/// Waits for the machine to switch itself off; switches it off when patience ends.
fn wait(mut qemu: Child) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while qemu.try_wait()?.is_none() {
        if Instant::now() > deadline {
            qemu.kill()?;
            qemu.wait()?;
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn status(line: &str) -> Option<u8> {
    line.trim().strip_prefix(VERDICT)?.trim().parse().ok()
}

fn read(path: &Path) -> String {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
