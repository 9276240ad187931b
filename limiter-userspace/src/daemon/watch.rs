//! Notices when the policy file changes. Looks once a second: editors, configuration management and
//! mounted volumes replace files in ways that notifications miss.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::bounded;

/// What tells one state of a file from another without reading it.
type Stamp = (i64, i64, u64, u64);

/// The policy file.
#[derive(Debug)]
pub(super) struct Watch {
    path: PathBuf,
    /// When its text was read last.
    read: Option<Stamp>,
    /// At the last look.
    seen: Option<Stamp>,
    gone: bool,
}

impl Watch {
    /// A file whose text has just been read.
    pub(super) fn new(path: PathBuf) -> Self {
        let stamp = stamp(&path);
        Self { path, read: stamp, seen: stamp, gone: false }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file should be read now: it isn't what was read last, and hasn't changed since
    /// the last look, so that no half-written file is taken.
    pub(super) fn look(&mut self) -> bool {
        let now = stamp(&self.path);
        let settled = now == self.seen;
        self.gone = now.is_none() && settled;
        self.seen = now;
        now.is_some() && settled && now != self.read
    }

    /// Whether it was gone at the last two looks: editors take a file away for a moment.
    pub(super) fn gone(&self) -> bool {
        self.gone
    }

    /// Reads it.
    pub(super) fn read(&mut self) -> io::Result<String> {
        self.read = stamp(&self.path);
        bounded::file(&self.path)
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let about = fs::metadata(path).ok()?;
    Some((about.mtime(), about.mtime_nsec(), about.ino(), about.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_change_is_taken_once_it_has_settled() {
        let scratch = Scratch::new("watch");
        let path = scratch.path().join("policy.toml");
        fs::write(&path, "one").unwrap();
        let mut watch = Watch::new(path.clone());
        assert!(!watch.look());
        fs::write(&path, "half of").unwrap();
        assert!(!watch.look(), "just changed");
        fs::write(&path, "half of two").unwrap();
        assert!(!watch.look(), "changed again");
        assert!(watch.look());
        assert_eq!(watch.read().unwrap(), "half of two");
        assert!(!watch.look());
    }

    #[test]
    fn a_file_that_is_gone_changes_nothing_until_it_is_back() {
        let scratch = Scratch::new("watch-gone");
        let path = scratch.path().join("policy.toml");
        fs::write(&path, "one").unwrap();
        let mut watch = Watch::new(path.clone());
        fs::remove_file(&path).unwrap();
        assert!(!watch.look() && !watch.gone(), "for a moment");
        assert!(!watch.look() && watch.gone());
        fs::write(&path, "another").unwrap();
        assert!(!watch.look() && !watch.gone());
        assert!(watch.look());
    }
}
