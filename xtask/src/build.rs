//! `cargo xtask build`: compiles the kernel program with a compiler that knows BPF, puts it where the
//! daemon's build embeds it from, and builds the daemon.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result};

use crate::process::{built_program, capture, cargo, cargo_apart, cargo_bin, say, target};
use crate::setup::{self, DEBIAN_RUSTC, Need, Toolchain, toolchain};

/// Build the kernel program and the `limiter` binary that carries it
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the kernel program
    #[arg(long)]
    kernel_only: bool,
}

const TARGET: &str = "bpfel-unknown-none";

pub(crate) fn run(args: Args) -> Result<()> {
    kernel_program()?;
    if !args.kernel_only {
        let daemon = daemon()?;
        say(format!("built {}; next: cargo xtask test", daemon.display()));
    }
    Ok(())
}

/// Builds the kernel program into `target/limiter.o`.
pub(crate) fn kernel_program() -> Result<()> {
    kernel_object("limiter-ebpf", "limiter.o")
}

/// Builds a crate of kernel programs into this file of `target`.
pub(crate) fn kernel_object(package: &str, file: &str) -> Result<()> {
    setup::ensure(Need::Build)?;
    let mut cargo = kernel_cargo("build", package)?;
    let built = built_program(cargo.args(["--features", "kernel", "--profile", "kernel"]))
        .with_context(|| format!("the kernel program of {package} does not compile"))?;
    let object = fs::read(&built).with_context(|| format!("no object at {}", built.display()))?;
    let object = mend_names(object);
    let embedded = target(file);
    // An untouched file spares everything that embeds it a rebuild.
    if fs::read(&embedded).is_ok_and(|old| old == object) {
        return Ok(());
    }
    fs::write(&embedded, &object)
        .with_context(|| format!("cannot write {}", embedded.display()))?;
    say(format!("kernel program: {}, {} KiB", embedded.display(), object.len() / 1024));
    Ok(())
}

/// The kernel takes no type information with a `<` in a union's name, and without type information it
/// takes no functions that are verified on their own. bpf-linker cleans the names of structs only; the
/// unions of aya-log's constants keep theirs. Lengths stay, so nothing moves.
fn mend_names(mut object: Vec<u8>) -> Vec<u8> {
    const BEGINNING: &[u8] = b"MaybeUninit<";
    let mut at = 0;
    while let Some(found) = object[at..].windows(BEGINNING.len()).position(|it| it == BEGINNING) {
        at += found;
        for byte in object[at..].iter_mut().take_while(|byte| **byte != 0) {
            if !byte.is_ascii_alphanumeric() {
                *byte = b'_';
            }
        }
    }
    object
}

/// Builds the `limiter` binary, which carries the kernel program, and returns its path.
pub(crate) fn daemon() -> Result<PathBuf> {
    let mut cargo = cargo("build");
    cargo.args(["--release", "--package", "limiter-userspace", "--bin", "limiter"]);
    built_program(&mut cargo).context("the daemon does not compile")
}

/// A cargo that works on the kernel crate with whatever compiler knows BPF. It has a target folder of
/// its own: two compilers in one folder throw away each other's work.
pub(crate) fn kernel_cargo(command: &str, package: &str) -> Result<Command> {
    let mut cargo = cargo_apart(command, "kernel", "");
    cargo.args(["--package", package, "--target", TARGET]);
    let sysroot = match toolchain() {
        Toolchain::Nightly => {
            cargo.env("RUSTUP_TOOLCHAIN", "nightly").args(["-Z", "build-std=core"]);
            sysroot(Command::new("rustc").env("RUSTUP_TOOLCHAIN", "nightly"))?
        }
        Toolchain::Debian => {
            // Intrinsics and the BPF target's features are unstable, Debian's compiler is not.
            cargo.env("RUSTC", DEBIAN_RUSTC).env("RUSTC_BOOTSTRAP", "1");
            sysroot(&mut Command::new("rustc"))?
        }
    };
    // bpf-linker loads the LLVM that lies in rustup's toolchain.
    cargo.env("LD_LIBRARY_PATH", format!("{sysroot}/lib"));
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([cargo_bin()].into_iter().chain(env::split_paths(&path)))?;
    cargo.env("PATH", path);
    Ok(cargo)
}

fn sysroot(rustc: &mut Command) -> Result<String> {
    let printed = capture(rustc.args(["--print", "sysroot"]))?;
    Ok(printed.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_kernel_refuses_are_mended_in_place() {
        let object = b"x\0MaybeUninit<u8>\0a<b\0MaybeUninit<[u8; 2]>\0".to_vec();
        let mended = b"x\0MaybeUninit_u8_\0a<b\0MaybeUninit__u8__2__\0";
        assert_eq!(mend_names(object), mended);
    }
}
