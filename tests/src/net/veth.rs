//! Links between namespaces. A veth pair takes native XDP and, with several queues, spreads packets
//! over CPUs as a network card does.

use super::Result;
use super::namespace::{Namespace, ip, run};

/// One end of a link: where, its name there (at most 15 characters), its addresses (`192.0.2.1/24`,
/// `2001:db8::1/64`).
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The namespace it lies in.
    pub namespace: &'a Namespace,
    /// The interface's name.
    pub interface: &'a str,
    /// Addresses with prefix length, of both families.
    pub addresses: &'a [&'a str],
}

/// Joins two namespaces by a pair with one queue; both ends are up on return. It goes with either of
/// its namespaces.
pub fn veth(one: End<'_>, other: End<'_>) -> Result<()> {
    veth_with_queues(one, other, 1)
}

/// As [`veth`], with this many receive and transmit queues at each end.
pub fn veth_with_queues(one: End<'_>, other: End<'_>, queues: u32) -> Result<()> {
    let queues = queues.to_string();
    let shape = ["numrxqueues", &queues, "numtxqueues", &queues];
    let mut words = vec!["link", "add", one.interface, "netns", one.namespace.name()];
    words.extend_from_slice(&shape);
    words.extend_from_slice(&[
        "type",
        "veth",
        "peer",
        "name",
        other.interface,
        "netns",
        other.namespace.name(),
    ]);
    words.extend_from_slice(&shape);
    run(ip(&words), "")?;
    one.bring_up()?;
    other.bring_up()
}

impl End<'_> {
    fn bring_up(&self) -> Result<()> {
        let Self { namespace, interface, addresses } = *self;
        let mut commands: Vec<String> =
            addresses.iter().map(|address| add_address(address, interface)).collect();
        commands.push(format!("link set {interface} up"));
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        namespace.ip(&commands).map(drop)
    }
}

fn add_address(address: &str, interface: &str) -> String {
    // Without nodad an IPv6 address can't be used for a second or two.
    let no_detection = if address.contains(':') { " nodad" } else { "" };
    format!("addr add {address} dev {interface}{no_detection}")
}
