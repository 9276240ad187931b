//! Where things are pinned in bpffs, so that they outlive the daemon, and how they get there whole:
//!
//! ```text
//! <pin_dir>/v<layout>/META, POLICY, …, program    of one layout
//! <pin_dir>/link-<interface>                      of any layout: an upgrade replaces what is in it
//! <pin_dir>/detached-<interface>/                 `limiter detach` was here: the daemon keeps away
//! ```
//!
//! Knows paths and file operations only, not what is in the maps.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use limiter_common::layout::{VERSION, map};
use rustix::fs::statfs;
use rustix::mount::{MountFlags, mount};

use super::error::OpenError;

/// Where a BPF file system is mounted by custom.
const MOUNT_POINT: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC` of linux/magic.h.
const BPFFS: u64 = 0xcafe_4a11;

/// The pin directory.
#[derive(Clone, Debug)]
pub struct Pins {
    root: PathBuf,
}

/// What is pinned for this layout.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// All maps.
    Whole,
    /// Some maps: somebody removed the others.
    Missing(Vec<&'static str>),
}

impl Pins {
    /// Pins below this directory.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Maps and program of this layout.
    pub(super) fn layout(&self) -> PathBuf {
        self.root.join(format!("v{VERSION}"))
    }

    /// Where they are made before they are whole.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.root.join(format!("v{VERSION}-unfinished"))
    }

    pub(super) fn map(&self, name: &str) -> PathBuf {
        self.layout().join(name)
    }

    pub(super) fn program(&self) -> PathBuf {
        self.layout().join("program")
    }

    pub(super) fn link(&self, interface: &str) -> PathBuf {
        self.root.join(format!("link-{}", escape(interface)))
    }

    pub(super) fn mark(&self, interface: &str) -> PathBuf {
        self.root.join(format!("detached-{}", escape(interface)))
    }

    /// Interfaces that have a link of ours, whether still attached or not, in order.
    #[must_use]
    pub fn linked(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| {
            let name = entry.file_name();
            Some(unescape(name.to_str()?.strip_prefix("link-")?))
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// Makes sure that pins can be made here; mounts a BPF file system where one belongs but isn't.
    pub fn prepare(&self) -> Result<(), OpenError> {
        if self.root.as_os_str().as_bytes().contains(&b'.') {
            return Err(OpenError::Dots { path: self.root.clone() });
        }
        if self.root.starts_with(MOUNT_POINT) && !is_bpffs(Path::new(MOUNT_POINT)) {
            mount("bpf", MOUNT_POINT, "bpf", MountFlags::empty(), None)
                .map_err(|cause| OpenError::file(Path::new(MOUNT_POINT), cause.into()))?;
            tracing::info!("mounted a BPF file system at {MOUNT_POINT}");
        }
        let parent = self.root.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        if !is_bpffs(parent) {
            return Err(OpenError::NotBpffs { path: self.root.clone() });
        }
        fs::create_dir_all(&self.root).map_err(|cause| OpenError::file(&self.root, cause))
    }

    /// What is there of this layout's maps.
    pub(super) fn find(&self) -> Found {
        let missing: Vec<_> =
            map::PINNED.into_iter().filter(|name| !self.map(name).exists()).collect();
        match missing.len() {
            0 => Found::Whole,
            _ if !self.layout().exists() => Found::Nothing,
            _ => Found::Missing(missing),
        }
    }

    /// What is missing of maps and program that ought to be there: nobody finds them any more, and what
    /// works without the daemon doesn't.
    #[must_use]
    pub fn gone(&self) -> Vec<&'static str> {
        let program = ("program", self.program());
        let all = map::PINNED.into_iter().map(|name| (name, self.map(name))).chain([program]);
        all.filter(|(_, path)| !path.exists()).map(|(name, _)| name).collect()
    }

    /// Whether any map is pinned here.
    #[must_use]
    pub fn in_use(&self) -> bool {
        self.find() != Found::Nothing
    }

    /// An empty directory to make maps in. What a crashed predecessor left there was in no use.
    pub(super) fn begin(&self) -> Result<PathBuf, OpenError> {
        let unfinished = self.unfinished();
        remove(&unfinished)?;
        fs::create_dir(&unfinished).map_err(|cause| OpenError::file(&unfinished, cause))?;
        Ok(unfinished)
    }

    /// Gives the maps made since [`Pins::begin`] their place, in one step: whoever looks sees none or
    /// all of them.
    pub(super) fn finish(&self) -> Result<(), OpenError> {
        let layout = self.layout();
        fs::rename(self.unfinished(), &layout).map_err(|cause| OpenError::file(&layout, cause))
    }

    /// Removes this layout's maps and program. Linked interfaces keep theirs alive.
    pub fn discard(&self) -> Result<(), OpenError> {
        remove(&self.unfinished())?;
        remove(&self.layout())
    }

    /// Removes the pin directory if nothing is in it.
    pub fn tidy(&self) {
        let _ = fs::remove_dir(&self.root);
    }
}

/// `fs::remove_dir_all`, but for what may be missing; bpffs has no nested directories of ours.
fn remove(directory: &Path) -> Result<(), OpenError> {
    match fs::remove_dir_all(directory) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(OpenError::file(directory, cause))
        }
        _ => Ok(()),
    }
}

fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|about| u64::try_from(about.f_type).is_ok_and(|magic| magic == BPFFS))
}

/// BPF file systems allow no dots in names, interfaces do (`eth0.100`) but allow no colons.
fn escape(interface: &str) -> String {
    interface.replace('.', ":")
}

fn unescape(name: &str) -> String {
    name.replace(':', ".")
}

/// Whether an interface can have this name at all: no path tricks.
pub(super) fn is_name(interface: &str) -> bool {
    let bytes = OsStr::new(interface).as_bytes();
    (1..16).contains(&bytes.len())
        && !matches!(interface, "." | "..")
        && !bytes.iter().any(|byte| matches!(byte, b'/' | b':') || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_get_by_and_come_back() {
        let pins = Pins::new("/sys/fs/bpf/limiter");
        assert_eq!(pins.link("eth0.100"), Path::new("/sys/fs/bpf/limiter/link-eth0:100"));
        assert_eq!(unescape(&escape("br-lan.7.9")), "br-lan.7.9");
        assert!(is_name("eth0.100") && is_name("a"));
        for bad in ["", "..", "a/b", "a:1", "a b", "sixteen-letters-"] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn a_pin_directory_with_a_dot_is_refused_before_anything_is_made() {
        let refused = Pins::new("/sys/fs/bpf/my.limiter").prepare();
        assert!(matches!(refused, Err(OpenError::Dots { .. })));
    }

    #[test]
    fn pins_that_are_gone_are_named() {
        let gone = Pins::new("/nowhere").gone();
        assert_eq!(gone.len(), map::PINNED.len() + 1, "{gone:?}");
        assert!(gone.contains(&map::BYPASS));
        assert!(!Pins::new("/nowhere").in_use());
    }

    #[test]
    fn a_pin_directory_elsewhere_is_refused() {
        let refused = Pins::new("/proc/limiter").prepare();
        assert!(matches!(refused, Err(OpenError::NotBpffs { .. })));
    }
}
