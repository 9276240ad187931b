//! Which rules a packet matches, as three look-ups: a column for its protocol, a row for its port,
//! and the class in their cell. Protocols that no rule tells apart share a column, ports a row.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use limiter_common::layout::{Classifier, MAX_CLASSES};
use limiter_common::packet::{Kind, Protocol};

use super::CompileError;
use super::rows::Rows;
use crate::policy::{Match, Packets, Rule};

/// Columns before equal ones are joined: 256 protocols and "unknown".
const PROTOCOLS: u32 = Protocol::UNKNOWN.index() + 1;

/// A set of rules, by their places in the policy.
pub(super) type Set = u32;

/// The look-ups, and what the classes stand for.
pub(super) struct Classes {
    pub(super) classifier: Box<Classifier>,
    /// By class; class 0 is the empty set.
    pub(super) sets: Vec<Set>,
}

impl Classes {
    /// The table for these rules, at most 32.
    pub(super) fn of(rules: &[Rule]) -> Result<Self, CompileError> {
        let anywhere = Anywhere::of(rules);
        let rows = Rows::of(rules)?;
        let mut classifier = empty();
        classifier.port.copy_from_slice(&rows.by_port);
        let mut numbers = Numbers::default();
        let mut columns: HashMap<Vec<Set>, u8> = HashMap::new();
        for protocol in 0..PROTOCOLS {
            let cells = column(protocol, &anywhere, &rows);
            let next = columns.len();
            let number = match columns.get(&cells) {
                Some(number) => *number,
                None if next < Classifier::PROTOCOLS as usize => {
                    let number = next as u8;
                    numbers.fill(&mut classifier, number, &cells, rules)?;
                    columns.insert(cells, number);
                    number
                }
                None => {
                    return Err(CompileError::Protocols { rules: most(rules, protocols) });
                }
            };
            classifier.protocol[protocol as usize] = number;
        }
        Ok(Self { classifier, sets: numbers.sets })
    }
}

/// All classes empty. (It passes over the stack once, 197 KB; the alternative is `unsafe`.)
fn empty() -> Box<Classifier> {
    Box::new(Classifier {
        protocol: [0; 512],
        port: [Classifier::NO_PORT; 65_536],
        class: [0; Classifier::CELLS],
    })
}

/// Whether a match for these packets accepts a packet of this kind.
pub(super) const fn accepts(packets: Packets, kind: Kind) -> bool {
    match packets {
        Packets::All => true,
        Packets::TcpSyn => matches!(kind, Kind::TcpSyn),
    }
}

/// One protocol's sets: kinds × rows.
fn column(protocol: u32, anywhere: &Anywhere, rows: &Rows) -> Vec<Set> {
    KINDS
        .iter()
        .flat_map(|kind| {
            let without_ports = anywhere.set(protocol, *kind);
            rows.sets.iter().map(move |lanes| without_ports | rows.set(lanes, protocol, *kind))
        })
        .collect()
}

/// The kinds there are. The numbers kept for later ones are treated as [`Kind::Other`].
const KINDS: [Kind; 2] = [Kind::Other, Kind::TcpSyn];

/// What a kind number of a cell stands for, as a place in [`KINDS`].
const fn kind_of(number: usize) -> usize {
    if number == Kind::TcpSyn as usize { 1 } else { 0 }
}

/// Rules that have matches without ports: they hold for every row.
struct Anywhere(Vec<[Set; KINDS.len()]>);

impl Anywhere {
    fn of(rules: &[Rule]) -> Self {
        let mut sets = vec![[0; KINDS.len()]; PROTOCOLS as usize];
        for (bit, condition) in conditions(rules).filter(|(_, it)| it.ports().is_empty()) {
            let protocols = match condition.protocol() {
                Some(number) => u32::from(number)..u32::from(number) + 1,
                None => 0..Protocol::UNKNOWN.index(),
            };
            for (kind, place) in KINDS.into_iter().zip(0..) {
                if accepts(condition.packets(), kind) {
                    sets[protocols.start as usize..protocols.end as usize]
                        .iter_mut()
                        .for_each(|set| set[place] |= bit);
                }
            }
            // Where the protocol is hidden, it may be this match's; which packets, nobody knows.
            if condition.packets() == Packets::All {
                sets[Protocol::UNKNOWN.index() as usize].iter_mut().for_each(|set| *set |= bit);
            }
        }
        Self(sets)
    }

    fn set(&self, protocol: u32, kind: Kind) -> Set {
        self.0[protocol as usize][kind_of(kind as usize)]
    }
}

/// Each match with its rule's bit.
pub(super) fn conditions(rules: &[Rule]) -> impl Iterator<Item = (Set, &Match)> {
    let numbered = rules.iter().zip(0..);
    numbered.flat_map(|(rule, bit)| rule.matches().iter().map(move |it| (1 << bit, it)))
}

/// Gives class numbers in the order in which their sets turn up.
struct Numbers {
    sets: Vec<Set>,
    by_set: BTreeMap<Set, u8>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { sets: vec![0], by_set: BTreeMap::from([(0, 0)]) }
    }
}

impl Numbers {
    fn fill(
        &mut self,
        classifier: &mut Classifier,
        column: u8,
        cells: &[Set],
        rules: &[Rule],
    ) -> Result<(), CompileError> {
        let rows = cells.len() / KINDS.len();
        for number in 0..Kind::ROOM as usize {
            let kind = kind_of(number);
            for (row, set) in (0..=u8::MAX).zip(&cells[kind * rows..(kind + 1) * rows]) {
                let class = self.number(*set).ok_or_else(|| self.too_many(rules))?;
                classifier.class[cell(column, number, row)] = class;
            }
        }
        Ok(())
    }

    fn number(&mut self, set: Set) -> Option<u8> {
        match self.by_set.entry(set) {
            Entry::Occupied(number) => Some(*number.get()),
            Entry::Vacant(free) => {
                let number = u8::try_from(self.sets.len()).ok()?;
                self.sets.push(set);
                Some(*free.insert(number))
            }
        }
    }

    fn too_many(&self, rules: &[Rule]) -> CompileError {
        let sets_with = |bit: usize| self.sets.iter().filter(|set| **set >> bit & 1 == 1).count();
        // A rule in about half of the sets splits the others most: it is in as many as it isn't.
        let weight = |bit: usize| sets_with(bit).min(self.sets.len() - sets_with(bit));
        CompileError::Classes { rules: names(rules.iter().zip((0..).map(weight)).collect()) }
    }
}

/// [`Classifier::cell`] for a kind that may not exist yet.
fn cell(column: u8, kind: usize, row: u8) -> usize {
    Classifier::cell(column, Kind::Other as u32, row) + (kind << 8)
}

const _: () = assert!(
    Classifier::cell(5, Kind::TcpSyn as u32, 7)
        == Classifier::cell(5, Kind::Other as u32, 7) + (1 << 8)
        && MAX_CLASSES == 256
        && Classifier::PORTS == 256
);

fn protocols(rule: &Rule) -> usize {
    rule.matches().iter().filter(|condition| condition.protocol().is_some()).count()
}

pub(super) fn most(rules: &[Rule], weight: impl Fn(&Rule) -> usize) -> String {
    names(rules.iter().map(|rule| (rule, weight(rule))).collect())
}

/// The names of those that weigh most, the heaviest first.
fn names(mut weighed: Vec<(&Rule, usize)>) -> String {
    const NAMED: usize = 5;
    weighed.retain(|(_, weight)| *weight > 0);
    weighed.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
    let more = weighed.len().saturating_sub(NAMED);
    let named: Vec<String> =
        weighed.iter().take(NAMED).map(|(rule, _)| format!("\"{}\"", rule.name())).collect();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    named.join(", ") + &rest
}
