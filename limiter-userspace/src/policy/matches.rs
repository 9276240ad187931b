//! Reads a rule's `match`: protocol, packets and ports, and which of them go together.

use std::ops::RangeInclusive;

use super::document::{Fields, Keys, Node, did_you_mean};
use super::model::{Match, Packets};
use super::problem::{Findings, Problem};
use super::words::{PROTOCOLS, WITH_PORTS, protocol_name};

/// Matches in a rule, at most.
pub(super) const MAX_MATCHES: usize = 32;
/// Ports and ranges in a match, at most.
pub(super) const MAX_PORTS: usize = 256;

const EXAMPLE: &str = "write, for instance, match = [{ protocol = \"tcp\", ports = [80, 443] }]";
const KEYS: Keys = Keys { known: &["protocol", "packets", "ports"], not_built: &["cost"] };

/// All matches of a rule; `None` if any has a problem.
pub(super) fn matches(rule: &Fields<'_>, findings: &mut Findings) -> Option<Vec<Match>> {
    let node = findings.keep(rule.need("match", EXAMPLE))?;
    let items = findings.keep(node.items(MAX_MATCHES, EXAMPLE))?;
    let read: Vec<Option<Match>> = items.iter().map(|item| one(item, findings)).collect();
    read.into_iter().collect()
}

fn one(node: &Node<'_>, findings: &mut Findings) -> Option<Match> {
    let fields = findings.keep(node.fields(EXAMPLE))?;
    fields.check_keys(&KEYS, findings);
    let protocol = fields
        .need("protocol", "add protocol = \"tcp\", or \"any\"")
        .and_then(|node| protocol(&node));
    let protocol = findings.keep(protocol);
    let packets = findings.keep(packets(&fields, protocol));
    let ports = ports(&fields, protocol, findings);
    Some(Match { protocol: protocol?, packets: packets?, ports: ports? })
}

fn protocol(node: &Node<'_>) -> Result<Option<u8>, Problem> {
    if let Some(number) = node.integer() {
        let number = u8::try_from(number).map(Some);
        let out_of_range = |_| node.wrong("a protocol number", "write a number from 0 to 255");
        return number.map_err(out_of_range);
    }
    let written = node.text("write a name as \"tcp\", or a number from 0 to 255")?;
    if written == "any" {
        return Ok(None);
    }
    if let Some((_, number)) = PROTOCOLS.iter().find(|(name, _)| *name == written) {
        return Ok(Some(*number));
    }
    let names: Vec<&str> =
        std::iter::once("any").chain(PROTOCOLS.iter().map(|(name, _)| *name)).collect();
    let fix = did_you_mean(written, &names);
    let fix = if fix.starts_with("write") { format!("{fix}, or its number") } else { fix };
    Err(node.wrong("a protocol known by name", &fix))
}

/// `protocol` is `None` if it couldn't be read: then nothing is said about what goes with it.
fn packets(fields: &Fields<'_>, protocol: Option<Option<u8>>) -> Result<Packets, Problem> {
    const TCP: u8 = 6;
    let Some(node) = fields.get("packets") else {
        return Ok(Packets::All);
    };
    match node.text("write \"all\" or \"tcp-syn\"")? {
        "all" => Ok(Packets::All),
        "tcp-syn" => match protocol {
            Some(other) if other != Some(TCP) => {
                let reason = format!("\"tcp-syn\" doesn't go with {}", name(other));
                Err(node.place.problem(reason, "write protocol = \"tcp\", or packets = \"all\""))
            }
            _ => Ok(Packets::TcpSyn),
        },
        written => {
            Err(node.wrong("a kind of packets", &did_you_mean(written, &["all", "tcp-syn"])))
        }
    }
}

fn name(protocol: Option<u8>) -> String {
    match protocol {
        Some(number) => protocol_name(number).map_or(format!("protocol {number}"), str::to_owned),
        None => "\"any\"".into(),
    }
}

fn ports(
    fields: &Fields<'_>,
    protocol: Option<Option<u8>>,
    findings: &mut Findings,
) -> Option<Vec<RangeInclusive<u16>>> {
    let Some(node) = fields.get("ports") else {
        return Some(Vec::new());
    };
    if let Some(protocol) = protocol
        && !protocol.is_some_and(|number| WITH_PORTS.contains(&number))
    {
        let reason = format!("{} has no ports", name(protocol));
        let fix = "remove ports, or write one match for each of tcp, udp, sctp, dccp, udplite";
        findings.add(|| node.place.problem(reason, fix));
    }
    let example = "write, for instance, ports = [80, \"8000-8100\"], or leave it out for all ports";
    let items = findings.keep(node.items(MAX_PORTS, example))?;
    let read: Vec<_> = items.iter().map(|item| findings.keep(range(item))).collect();
    read.into_iter().collect()
}

/// A port, or a range of ports with both ends.
fn range(node: &Node<'_>) -> Result<RangeInclusive<u16>, Problem> {
    let fix = "write a port from 0 to 65535, or a range as \"8000-8100\"";
    if let Some(number) = node.integer() {
        let out_of_range = |_| node.wrong("a port", fix);
        return u16::try_from(number).map(|port| port..=port).map_err(out_of_range);
    }
    let written = node.text(fix)?;
    let (start, end) = written.split_once('-').unwrap_or((written, written));
    match (start.trim().parse::<u16>(), end.trim().parse::<u16>()) {
        (Ok(start), Ok(end)) if start <= end => Ok(start..=end),
        (Ok(start), Ok(end)) => {
            let reason = format!("{} ends before it begins", node.shown());
            Err(node.place.problem(reason, format!("write \"{end}-{start}\"")))
        }
        _ => Err(node.wrong("a port", fix)),
    }
}
