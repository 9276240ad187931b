//! Clears away namespaces whose makers are dead, and what still runs inside them. Touches nothing
//! whose name isn't ours or whose maker lives.

use rustix::process::{Pid, Signal, kill_process};

use super::namespace::{FOLDER, ip, run};
use crate::owner::orphans;

/// Removes what killed tests and demos left: processes in their namespaces, the namespaces, and their
/// working folders with all pins.
pub fn sweep() {
    for name in orphans(FOLDER) {
        kill_inside(&name);
        // Two sweepers may meet here; then one of them finds nothing left to do.
        let _ = run(ip(&["netns", "del", &name]), "");
    }
    crate::process::sweep_homes();
}

fn kill_inside(namespace: &str) {
    let pids = run(ip(&["netns", "pids", namespace]), "").unwrap_or_default();
    for pid in pids.split_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
