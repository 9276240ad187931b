//! Finds the `limiter` binary. It never builds one: two cargos would wait for each other.

use std::path::{Path, PathBuf};

use super::{Error, Result};
use crate::require::Missing;

/// `LIMITER_BIN`; else the one built with the same profile as this program; else the release build.
pub fn binary() -> Result<PathBuf> {
    let named = std::env::var_os("LIMITER_BIN").map(PathBuf::from);
    let candidates = named.map_or_else(built_candidates, |path| vec![path]);
    let found = candidates.iter().find(|path| path.is_file());
    found.cloned().ok_or_else(|| Error::NotBuilt { looked: list(&candidates) })
}

/// For [`crate::require!`]: skips a test that has no binary to start.
pub fn built() -> std::result::Result<(), Missing> {
    binary().map(drop).map_err(|error| error.to_string())
}

fn built_candidates() -> Vec<PathBuf> {
    let this = std::env::current_exe().unwrap_or_default();
    // A test lies in target/PROFILE/deps, xtask in target/PROFILE.
    let folders = this.ancestors().skip(1).take(2);
    let mut paths: Vec<PathBuf> = folders.map(|folder| folder.join("limiter")).collect();
    paths.extend(this.ancestors().nth(3).map(release));
    paths.extend(this.ancestors().nth(2).map(release));
    paths
}

fn release(target: &Path) -> PathBuf {
    target.join("release").join("limiter")
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
