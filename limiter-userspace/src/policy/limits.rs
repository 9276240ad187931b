//! Reads a rule's `limit`: an amount per level, in range, and what in it would surprise its author.

use limiter_common::key::Level;
use limiter_common::quantum::{MAX_BYTE_SHIFT, Quantum};
use limiter_common::word::MAX_VALUE;

use super::amount::amount;
use super::document::{Fields, Keys, Node};
use super::model::{Limit, Unit};
use super::problem::{Findings, Problem};
use super::words::grouped;

/// The longest frame of an Ethernet without jumbo frames, VLAN tags and FCS aside.
const FULL_FRAME: u64 = 1_514;

const EXAMPLE: &str = "write, for instance, limit = { source = 20, prefix = 200 }";
const KEYS: Keys = Keys { known: &["source", "prefix", "total"], not_built: &[] };

/// The limits by level; `None` if any has a problem. Without a readable unit, bytes are assumed, to
/// which more is allowed: one mistake is not to be told twice.
pub(super) fn limits(
    rule: &Fields<'_>,
    unit: Option<Unit>,
    findings: &mut Findings,
) -> Option<[Option<Limit>; Level::COUNT]> {
    let unit = unit.unwrap_or(Unit::Bytes);
    let node = findings.keep(rule.need("limit", EXAMPLE))?;
    let fields = findings.keep(node.fields(EXAMPLE))?;
    fields.check_keys(&KEYS, findings);
    let nodes = Level::ALL.map(|level| fields.get(level.name()));
    if nodes.iter().all(Option::is_none) {
        findings.add(|| node.place.problem("names no level to limit", EXAMPLE));
        return None;
    }
    let mut limits = [None; Level::COUNT];
    let mut complete = true;
    for (limit, node) in limits.iter_mut().zip(&nodes) {
        let Some(node) = node else { continue };
        *limit = findings.keep(one(node, unit));
        complete &= limit.is_some();
    }
    for (level, node) in Level::ALL.into_iter().zip(&nodes) {
        if let Some(node) = node {
            warn(level, node, &limits, unit, findings);
        }
    }
    complete.then_some(limits)
}

fn one(node: &Node<'_>, unit: Unit) -> Result<Limit, Problem> {
    if node.value.is_table() {
        let fix = "write an amount per window, as source = 20";
        return Err(node.place.not_built("a token bucket's rate and burst", fix));
    }
    if node.value.as_str() == Some("unlimited") {
        return Ok(Limit::Unlimited);
    }
    let amount = match node.integer() {
        Some(number) if number < 0 => {
            let fix = "write 0 to refuse everything, or \"unlimited\" to count only";
            return Err(node.place.problem(format!("{} is below 0", node.shown()), fix));
        }
        Some(number) => u64::try_from(number).unwrap_or(u64::MAX),
        None => amount(node.text("write a whole number, \"2k\", or \"unlimited\"")?, unit)
            .map_err(|(reason, fix)| node.place.problem(reason, fix))?,
    };
    fits(node, amount, unit).map(Limit::Finite)
}

/// The amount, if a word in the kernel can count so far.
fn fits(node: &Node<'_>, amount: u64, unit: Unit) -> Result<u64, Problem> {
    let (fits, most) = match unit {
        Unit::Packets => (amount <= u64::from(MAX_VALUE), u64::from(MAX_VALUE)),
        Unit::Bytes => {
            let end = (u64::from(MAX_VALUE) + 1) << MAX_BYTE_SHIFT;
            (Quantum::for_bytes(amount).is_some(), end - 1)
        }
    };
    if fits {
        return Ok(amount);
    }
    let most = grouped(most);
    let reason = format!("{} is more than the {most} {unit} that can be counted", node.shown());
    let fix = "write a shorter window with a smaller limit, or \"unlimited\" to count only";
    Err(node.place.problem(reason, fix))
}

fn warn(
    level: Level,
    node: &Node<'_>,
    limits: &[Option<Limit>; Level::COUNT],
    unit: Unit,
    findings: &mut Findings,
) {
    let amount_at = |level: Level| limits[level as usize].and_then(Limit::finite);
    let Some(amount) = amount_at(level) else {
        return;
    };
    if amount == 0 {
        let fix = "remove the level if that isn't meant; \"unlimited\" only counts";
        findings.warn(node.place.problem("0 refuses everything this rule applies to", fix));
    } else if unit == Unit::Bytes && amount < FULL_FRAME {
        let reason = format!("a full frame of 1,514 bytes never fits into {amount} bytes");
        findings.warn(node.place.problem(reason, "write 1514 or more"));
    }
    let coarser = Level::ALL.into_iter().filter(|coarser| *coarser < level);
    for (coarser, less) in coarser.filter_map(|coarser| Some((coarser, amount_at(coarser)?))) {
        if less < amount {
            let (level, coarser) = (level.name(), coarser.name());
            let reason = format!("the {coarser}'s limit of {less} refuses before {amount} is met");
            let fix = format!("raise limit.{coarser}, or lower limit.{level} below it");
            findings.warn(node.place.problem(reason, fix));
        }
    }
}
