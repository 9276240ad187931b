//! Ports that no rule tells apart share a row: a sweep over the edges of all ranges of ports.

use std::collections::{BTreeMap, HashMap};

use limiter_common::packet::Kind;

use super::CompileError;
use super::classes::{Set, accepts, conditions, most};
use crate::policy::{Packets, Rule};

/// Matches with ports differ by protocol and packets: each such pair is a lane of its own.
type Lane = (u8, Packets);

/// Ports that no rule tells apart share a row.
pub(super) struct Rows {
    lanes: Vec<Lane>,
    pub(super) by_port: Vec<u8>,
    /// By row, the set in each lane. Row 0, "no port", is in none.
    pub(super) sets: Vec<Vec<Set>>,
}

impl Rows {
    /// The rows for all ports; an error if there are more than the kernel's table has.
    pub(super) fn of(rules: &[Rule]) -> Result<Self, CompileError> {
        let edges = edges(rules);
        let mut lanes: Vec<Lane> = edges.keys().map(|(_, lane, _)| *lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let mut rows = Self { sets: vec![vec![0; lanes.len()]], lanes, by_port: vec![0; 65_536] };
        let mut numbers = HashMap::new();
        let mut depths: HashMap<(Lane, Set), i32> = HashMap::new();
        let mut now = vec![0; rows.lanes.len()];
        let mut edges = edges.into_iter().peekable();
        let mut from = 0;
        while from < 65_536 {
            while let Some(((_, lane, bit), step)) = edges.next_if(|((at, _, _), _)| *at <= from) {
                let depth = depths.entry((lane, bit)).or_default();
                *depth += step;
                let place = rows.lanes.binary_search(&lane).unwrap_or_default();
                now[place] = if *depth > 0 { now[place] | bit } else { now[place] & !bit };
            }
            let to = edges.peek().map_or(65_536, |((at, _, _), _)| *at).min(65_536);
            let row = rows.number(&mut numbers, &now);
            let row = row.ok_or_else(|| CompileError::Ports { rules: most(rules, ports) })?;
            rows.by_port[from as usize..to as usize].fill(row);
            from = to;
        }
        Ok(rows)
    }

    /// The row for ports with these sets; `None` if there is none left.
    fn number(&mut self, numbers: &mut HashMap<Vec<Set>, u8>, sets: &[Set]) -> Option<u8> {
        if let Some(row) = numbers.get(sets) {
            return Some(*row);
        }
        let row = u8::try_from(self.sets.len()).ok()?;
        self.sets.push(sets.to_vec());
        numbers.insert(sets.to_vec(), row);
        Some(row)
    }

    /// What the lanes of a row add for a protocol and a kind.
    pub(super) fn set(&self, sets: &[Set], protocol: u32, kind: Kind) -> Set {
        let lanes = self.lanes.iter().zip(sets);
        lanes
            .filter(|((number, packets), _)| {
                u32::from(*number) == protocol && accepts(*packets, kind)
            })
            .fold(0, |all, (_, set)| all | set)
    }
}

/// Where ranges of ports begin (+1) and, one behind their last port, end (−1).
fn edges(rules: &[Rule]) -> BTreeMap<(u32, Lane, Set), i32> {
    let mut edges = BTreeMap::new();
    for (bit, condition) in conditions(rules) {
        let Some(protocol) = condition.protocol() else {
            continue;
        };
        let lane = (protocol, condition.packets());
        for range in condition.ports() {
            *edges.entry((u32::from(*range.start()), lane, bit)).or_default() += 1;
            *edges.entry((u32::from(*range.end()) + 1, lane, bit)).or_default() -= 1;
        }
    }
    edges
}

fn ports(rule: &Rule) -> usize {
    rule.matches().iter().map(|condition| condition.ports().len()).sum()
}
