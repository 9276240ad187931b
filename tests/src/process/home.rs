//! What a daemon keeps between its starts: a BPF file system of its own for the pins, a state folder,
//! a socket, a log. Outlives the daemon (so that `kill -9` and restart can be tested) and is taken
//! away as a whole.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{Error, Result};
use crate::net;
use crate::owner::{orphans, unique_name};

/// Memory-backed, so that it vanishes at boot together with all pins.
const FOLDER: &str = "/run";

/// A folder for one daemon under test, removed with all pins on drop.
#[derive(Debug)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    /// Makes the folders and mounts the BPF file system. A mount of our own leaves /sys/fs/bpf alone,
    /// works where nobody mounted that, and gives up every pin in one step.
    pub fn create(purpose: &str) -> Result<Self> {
        net::sweep();
        let home = Self { folder: Path::new(FOLDER).join(unique_name(purpose)) };
        for folder in [home.pins(), home.state()] {
            fs::create_dir_all(&folder)
                .map_err(|source| Error::system(format!("make {}", folder.display()), source))?;
        }
        mount("bpf", home.pins(), "bpf", MountFlags::empty(), None::<&CStr>)
            .map_err(|errno| Error::system("mount a BPF file system (needs root)", errno))?;
        Ok(home)
    }

    /// For `--pin-dir`.
    #[must_use]
    pub fn pins(&self) -> PathBuf {
        self.folder.join("bpf")
    }

    /// For `--state-dir`.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// For `--socket`.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("limiter.sock")
    }

    /// Everything the daemons of this home wrote, in order.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(self.log_path())
            .map_or_else(|_| String::new(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(super) fn log_path(&self) -> PathBuf {
        self.folder.join("daemon.log")
    }

    pub(super) fn notify(&self) -> PathBuf {
        self.folder.join("notify.sock")
    }

    /// Puts a file (a policy, a configuration) into this home.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text)
            .map_err(|source| Error::system(format!("write {}", path.display()), source))?;
        Ok(path)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Removes homes whose makers are dead.
pub(crate) fn sweep_homes() {
    for name in orphans(FOLDER) {
        remove(&Path::new(FOLDER).join(name));
    }
}

fn remove(folder: &Path) {
    // Nobody can act on a failure here; the next sweep tries again. Without DETACH a daemon that is
    // just dying would keep the mount.
    let _ = unmount(folder.join("bpf"), UnmountFlags::DETACH);
    let _ = fs::remove_dir_all(folder);
}
