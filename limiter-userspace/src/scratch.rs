//! A directory for one test, gone when the test ends. Tests only.

use std::path::{Path, PathBuf};

/// Removes its directory when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A new empty directory; `name` must be this test's alone.
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("limiter-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone_already = std::fs::remove_dir_all(&self.0);
    }
}
