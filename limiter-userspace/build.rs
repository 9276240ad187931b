//! Puts the kernel program into the binary, if it has been built. `cargo build` must work without the
//! BPF toolchain, so a missing object is an empty one here and a clear error where it is loaded.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-env-changed=LIMITER_OBJECT");
    let object = env::var_os("LIMITER_OBJECT").map_or_else(default_object, PathBuf::from);
    println!("cargo:rerun-if-changed={}", object.display());
    // A file that doesn't exist yet is noticed by its directory.
    if let (false, Some(directory)) =
        (object.exists(), object.parent().filter(|path| path.exists()))
    {
        println!("cargo:rerun-if-changed={}", directory.display());
    }
    let copy = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("limiter.o");
    match fs::read(&object) {
        Ok(bytes) => fs::write(copy, bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::write(copy, []),
        Err(error) => Err(error),
    }
}

/// Where `cargo xtask build` leaves it.
fn default_object() -> PathBuf {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    package.parent().unwrap_or(Path::new(".")).join("target/limiter.o")
}
