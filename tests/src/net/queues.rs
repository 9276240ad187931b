//! How many packets each receive queue of a veth took, by way of `ethtool`: so that a test of several
//! queues knows that it used them.

use std::process::Command;

use super::namespace::run;
use super::{Error, Namespace, Result};

/// Packets that came through the interface's program, by receive queue.
pub fn queue_packets(namespace: &Namespace, interface: &str) -> Result<Vec<u64>> {
    let mut ethtool = Command::new("ethtool");
    ethtool.args(["-S", interface]);
    let answer = namespace.run(|| run(ethtool, ""))??;
    let counts = read(&answer);
    if counts.is_empty() {
        return Err(Error::Answer { command: format!("ethtool -S {interface}"), answer });
    }
    Ok(counts)
}

fn read(statistics: &str) -> Vec<u64> {
    let count = |line: &str| {
        let (name, count) = line.trim().split_once(": ")?;
        name.strip_prefix("rx_queue_")?.strip_suffix("_xdp_packets")?;
        count.parse().ok()
    };
    statistics.lines().filter_map(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_ethtool_prints() {
        let printed = "NIC statistics:\n     peer_ifindex: 2\n     rx_queue_0_xdp_packets: 12\n     \
                       rx_queue_0_xdp_bytes: 720\n     rx_queue_1_xdp_packets: 3\n";
        assert_eq!(read(printed), [12, 3]);
        assert!(read("no stats available\n").is_empty());
    }
}
