//! Asks the kernel, by way of `ip link`, which XDP program sits on an interface. Independent of the
//! daemon, so that its word can be checked.

use serde_json::Value;

use super::{Namespace, Result};

/// Where in the receive path a program sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before a socket buffer exists.
    Native,
    /// In the network stack.
    Generic,
    /// On the card.
    Offloaded,
    /// A number this kit doesn't know.
    Other(u64),
}

/// A program attached to an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Native or not.
    pub mode: Mode,
    /// The program's id: changes when the program is replaced, even within one link.
    pub program: u64,
}

/// The program on an interface, if there is one.
pub fn attached(namespace: &Namespace, interface: &str) -> Result<Option<Attached>> {
    let links = namespace.ip_json(&["link", "show", "dev", interface])?;
    Ok(read(&links))
}

fn read(links: &Value) -> Option<Attached> {
    let xdp = links.get(0)?.get("xdp")?;
    let mode = match xdp.get("mode")?.as_u64()? {
        1 => Mode::Native,
        2 => Mode::Generic,
        3 => Mode::Offloaded,
        other => Mode::Other(other),
    };
    Some(Attached { mode, program: xdp.get("prog")?.get("id")?.as_u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_ip_prints() {
        let native = serde_json::json!([{"ifname": "a", "xdp": {"mode": 1, "prog": {"id": 42, "jited": 1}}}]);
        assert_eq!(read(&native), Some(Attached { mode: Mode::Native, program: 42 }));
        assert_eq!(read(&serde_json::json!([{"ifname": "a"}])), None);
        assert_eq!(read(&serde_json::json!([])), None);
    }
}
