//! `cargo xtask setup`: the table of tools that building and testing need, and how each one comes
//! onto a bare Debian. Installs nothing that is there already, starts no service.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::process::{find, is_root, run as run_program, say};

/// Install what building and testing need; quick when nothing is missing
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only tell what is there and what is missing
    #[arg(long)]
    check: bool,
    /// What it is for; each one includes those before it
    #[arg(long = "for", value_name = "WHAT", value_enum, default_value_t = Need::Matrix)]
    need: Need,
}

/// What the tools are for; each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Need {
    /// Compiling the kernel program
    Build,
    /// Host, kernel and namespace tests
    Test,
    /// Fuzzing
    Fuzz,
    /// Booting other kernels
    Matrix,
    /// Measuring, beside the kernel's own packet filters
    Bench,
    /// What CI checks beyond tests
    Ci,
}

struct Tool {
    what: &'static str,
    need: Need,
    from: Source,
    proof: Proof,
}

enum Source {
    /// Debian packages.
    Apt(&'static [&'static str]),
    /// A crate and its version.
    Cargo(&'static str, &'static str),
}

enum Proof {
    /// A program of the tool's name is found.
    Program,
    Check(fn() -> bool),
}

const TOOLS: &[Tool] = &[
    Tool {
        what: "a Rust compiler with a core library for BPF",
        need: Need::Build,
        from: Source::Apt(&["rustc-web", "libstd-rust-web-dev-bpf"]),
        proof: Proof::Check(|| nightly_has_source() || debian_has_core()),
    },
    // Later versions want a system LLVM that Debian 12 lacks; this one finds rustup's.
    from_cargo("bpf-linker", "0.10.1", Need::Build),
    from_apt("ip", &["iproute2"], Need::Test),
    from_apt("ethtool", &["ethtool"], Need::Test),
    // libFuzzer is written in it.
    from_apt("c++", &["g++"], Need::Fuzz),
    from_apt("qemu-system-x86_64", &["qemu-system-x86"], Need::Matrix),
    Tool {
        what: "busybox without a need for libc",
        need: Need::Matrix,
        from: Source::Apt(&["busybox-static"]),
        proof: Proof::Check(|| static_busybox().is_some()),
    },
    from_apt("modprobe", &["kmod"], Need::Matrix),
    from_apt("xz", &["xz-utils"], Need::Matrix),
    from_apt("zstd", &["zstd"], Need::Matrix),
    from_apt("nft", &["nftables"], Need::Bench),
    from_apt("iptables", &["iptables"], Need::Bench),
    Tool {
        what: "clippy for the kernel crate",
        need: Need::Ci,
        from: Source::Apt(&["rust-web-clippy"]),
        proof: Proof::Check(|| nightly_has_source() || Path::new(DEBIAN_CLIPPY).is_file()),
    },
    from_cargo("cargo-deny", "0.20.2", Need::Ci),
];

const fn from_apt(what: &'static str, packages: &'static [&'static str], need: Need) -> Tool {
    Tool { what, need, from: Source::Apt(packages), proof: Proof::Program }
}

const fn from_cargo(what: &'static str, version: &'static str, need: Need) -> Tool {
    Tool { what, need, from: Source::Cargo(what, version), proof: Proof::Program }
}

impl Tool {
    fn is_there(&self) -> bool {
        match self.proof {
            Proof::Program => find(self.what).is_some(),
            Proof::Check(check) => check(),
        }
    }
}

/// Debian's compiler, which knows the BPF target.
pub(crate) const DEBIAN_RUSTC: &str = "/usr/bin/rustc";
/// Its clippy.
pub(crate) const DEBIAN_CLIPPY: &str = "/usr/bin/cargo-clippy";

/// The compilers that can build the kernel program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toolchain {
    /// A nightly with the standard library's source builds `core` itself.
    Nightly,
    /// Debian ships `core` ready made.
    Debian,
}

/// The compiler that builds the kernel program: a nightly where there is one.
pub(crate) fn toolchain() -> Toolchain {
    if nightly_has_source() { Toolchain::Nightly } else { Toolchain::Debian }
}

pub(crate) fn run(args: Args) -> Result<()> {
    if args.check {
        return report(args.need);
    }
    ensure(args.need)?;
    say("everything is there; next: cargo xtask test");
    Ok(())
}

/// Installs what `need` lacks; silent and quick if that is nothing.
pub(crate) fn ensure(need: Need) -> Result<()> {
    let missing: Vec<_> = tools(need).filter(|tool| !tool.is_there()).collect();
    install_packages(&missing)?;
    for tool in &missing {
        if let Source::Cargo(name, version) = tool.from {
            install_crate(name, version)?;
        }
    }
    match missing.iter().find(|tool| !tool.is_there()) {
        Some(tool) => bail!("{} is still missing after installing it", tool.what),
        None => Ok(()),
    }
}

/// A busybox that runs where there is no libc.
pub(crate) fn static_busybox() -> Option<PathBuf> {
    let path = find("busybox")?;
    let mut head = Vec::new();
    // A program that wants a dynamic loader names it near the start of its file.
    fs::File::open(&path).ok()?.take(4096).read_to_end(&mut head).ok()?;
    let dynamic = head.windows(8).any(|word| word == b"ld-linux");
    (!dynamic).then_some(path)
}

fn report(need: Need) -> Result<()> {
    let mut missing = 0;
    for tool in tools(need) {
        let there = tool.is_there();
        let from = match &tool.from {
            Source::Apt(packages) => format!("apt: {}", packages.join(" ")),
            Source::Cargo(name, version) => format!("cargo install: {name} {version}"),
        };
        let state = if there { "there" } else { "missing" };
        println!("{state:<8} {:<44} {from}", tool.what);
        missing += u32::from(!there);
    }
    if missing > 0 {
        bail!("{missing} missing; the same without --check installs what is");
    }
    Ok(())
}

fn install_packages(missing: &[&Tool]) -> Result<()> {
    let packages: Vec<&str> = missing
        .iter()
        .filter_map(|tool| match tool.from {
            Source::Apt(packages) => Some(packages),
            Source::Cargo(..) => None,
        })
        .flatten()
        .copied()
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    let names = packages.join(" ");
    if find("apt-get").is_none() {
        bail!("this system has no apt; install what these Debian packages hold: {names}");
    }
    if !is_root() {
        bail!(
            "packages are missing and only root may install them; run this, then try again:\n  \
             sudo apt-get update && sudo apt-get install --no-install-recommends {names}"
        );
    }
    say(format!("installing with apt (a minute or two): {names}"));
    // One unreachable source of many is no reason to stop: the install below decides.
    if let Err(error) = run_program(apt_get().args(["-qq", "update"])) {
        say(format!("{error}; trying with the package lists at hand"));
    }
    let mut install = apt_get();
    install.args(["-qq", "--yes", "--no-install-recommends", "install"]).args(&packages);
    run_program(&mut install).context("apt could not install what is missing")
}

fn apt_get() -> Command {
    let mut apt = Command::new("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive").args([
        "-o",
        "DPkg::Lock::Timeout=300",
        "-o",
        "Dpkg::Use-Pty=0",
    ]);
    apt
}

fn install_crate(name: &str, version: &str) -> Result<()> {
    say(format!("building {name} {version} with cargo (one to three minutes)"));
    let mut install = Command::new("cargo");
    install.args(["install", "--locked", "--quiet", "--version", version, name]);
    run_program(&mut install).with_context(|| format!("cargo could not install {name} {version}"))
}

fn tools(need: Need) -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(move |tool| tool.need <= need)
}

/// Looked up in the file system: asking rustup costs more and may start a download.
fn nightly_has_source() -> bool {
    let home = env::var_os("RUSTUP_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".rustup")));
    let Some(toolchains) = home.and_then(|home| fs::read_dir(home.join("toolchains")).ok()) else {
        return false;
    };
    let source = "lib/rustlib/src/rust/library/core/Cargo.toml";
    toolchains
        .filter_map(Result::ok)
        .filter(|toolchain| toolchain.file_name().to_string_lossy().starts_with("nightly-x86_64"))
        .any(|toolchain| toolchain.path().join(source).is_file())
}

fn debian_has_core() -> bool {
    let Ok(mut files) = fs::read_dir("/usr/lib/rustlib/bpfel-unknown-none/lib") else {
        return false;
    };
    Path::new(DEBIAN_RUSTC).is_file()
        && files.any(|file| {
            file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
        })
}
