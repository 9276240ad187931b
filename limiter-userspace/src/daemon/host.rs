//! What the daemon asks of the host before it touches anything: capabilities, and to be the only one.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use rustix::fs::{FlockOperation, flock, major, minor};
use rustix::thread::{CapabilitySet, capabilities};

use super::error::DaemonError;

/// Held while the daemon runs; goes with the process, however that ends.
#[derive(Debug)]
pub(super) struct Lock {
    _directory: File,
}

/// Locks the pin directory itself: whoever uses the same pins meets the same lock, whatever else is
/// configured, and no stale file is left behind.
pub(super) fn lock(pin_dir: &Path) -> Result<Lock, DaemonError> {
    let state = |cause: io::Error| DaemonError::State {
        path: pin_dir.to_owned(),
        cause: cause.to_string(),
    };
    let directory = File::open(pin_dir).map_err(state)?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock { _directory: directory }),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let pid = holder(&directory, &fs::read_to_string("/proc/locks").unwrap_or_default());
            Err(DaemonError::Running { path: pin_dir.to_owned(), pid })
        }
        Err(cause) => Err(state(cause.into())),
    }
}

/// Whose lock it is, by the kernel's list.
fn holder(directory: &File, locks: &str) -> Option<u32> {
    let about = directory.metadata().ok()?;
    let (device, inode) = (about.dev(), about.ino());
    let place = format!("{:02x}:{:02x}:{inode}", major(device), minor(device));
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ours = fields.get(1) == Some(&"FLOCK") && fields.get(5) == Some(&place.as_str());
        ours.then(|| fields.get(4)?.parse().ok())?
    })
}

/// An error naming the capabilities that are missing.
pub(super) fn require_capabilities() -> Result<(), DaemonError> {
    // If the kernel doesn't tell, its refusals will.
    let Ok(sets) = capabilities(None) else {
        return Ok(());
    };
    let missing = missing(sets.effective);
    if missing.is_empty() {
        return Ok(());
    }
    Err(DaemonError::NotPermitted { missing: missing.join(", ") })
}

fn missing(has: CapabilitySet) -> Vec<&'static str> {
    let admin = CapabilitySet::SYS_ADMIN;
    // Without CAP_PERFMON the verifier hides pointers from the program.
    [
        ("CAP_BPF", CapabilitySet::BPF | admin),
        ("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN),
        ("CAP_PERFMON", CapabilitySet::PERFMON | admin),
    ]
    .into_iter()
    .filter(|(_, any)| !has.intersects(*any))
    .map(|(name, _)| name)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn missing_capabilities_are_named() {
        assert_eq!(missing(CapabilitySet::empty()), ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"]);
        assert_eq!(missing(CapabilitySet::SYS_ADMIN), ["CAP_NET_ADMIN"]);
        let least = CapabilitySet::BPF | CapabilitySet::NET_ADMIN | CapabilitySet::PERFMON;
        assert!(missing(least).is_empty());
    }

    #[test]
    fn a_second_daemon_is_told_who_runs() {
        let scratch = Scratch::new("lock");
        let held = lock(scratch.path()).unwrap();
        let refused = lock(scratch.path()).unwrap_err();
        assert!(
            matches!(refused, DaemonError::Running { pid: Some(pid), .. } if pid == std::process::id()),
            "{refused}"
        );
        drop(held);
        lock(scratch.path()).unwrap();
    }
}
