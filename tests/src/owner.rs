//! Names that tell who made a thing, so that what a crashed test or demo left behind (namespaces,
//! pins, a daemon) can be told from what a living one is using, and cleared away.

use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A name that no other process, and no other call of this one, gives:
/// `limiter-PURPOSE-PID-STARTED-NUMBER`.
#[must_use]
pub fn unique_name(purpose: &str) -> String {
    name_for(purpose, std::process::id())
}

/// As [`unique_name`], on behalf of another process.
#[must_use]
pub fn name_for(purpose: &str, pid: u32) -> String {
    let started = start_time(pid).unwrap_or(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("limiter-{purpose}-{pid}-{started}-{number}")
}

/// Whether this is one of our names and the process that gave it is no more.
#[must_use]
pub fn is_orphan(name: &str) -> bool {
    let Some((pid, started)) = owner_of(name) else {
        return false;
    };
    start_time(pid) != Some(started)
}

/// Names in a folder that are ours and whose makers are dead.
pub(crate) fn orphans(folder: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_orphan(name)).collect()
}

fn owner_of(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix("limiter-")?.rsplitn(4, '-');
    let _number: u32 = parts.next()?.parse().ok()?;
    let started = parts.next()?.parse().ok()?;
    let pid = parts.next()?.parse().ok()?;
    parts.next().map(|_purpose| (pid, started))
}

/// When the process was started, in clock ticks since boot. Process ids are used again, the pair isn't.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the command's name in brackets and may hold spaces and brackets itself.
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_owner_keeps_its_things() {
        let name = unique_name("test");
        assert_eq!(owner_of(&name).map(|(pid, _)| pid), Some(std::process::id()));
        assert!(!is_orphan(&name));
        assert_ne!(name, unique_name("test"));
    }

    #[test]
    fn a_dead_owner_or_a_reused_process_id_makes_an_orphan() {
        assert!(is_orphan("limiter-test-4194999-17-0"));
        assert!(is_orphan(&format!("limiter-demo-{}-1-0", std::process::id())));
    }

    #[test]
    fn what_isn_t_ours_is_never_an_orphan() {
        for name in [
            "limiter",
            "limiter-prod",
            "limiter-a-b-c-d",
            "other-test-4194999-17-0",
            "limiter-4194999-17-0",
        ] {
            assert!(!is_orphan(name), "{name}");
        }
    }
}
