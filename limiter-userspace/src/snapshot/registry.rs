//! Which counter row and id belong to which rule, across policies and restarts: a model of map
//! `REGISTRY`. Counts follow the name, words follow the id.

use limiter_common::layout::{RULE_ROWS, RegistryEntry, Unit};
use limiter_common::quantum::Quantum;

use super::row::{FREE, Row};
use super::{CompileError, UnixNanos};
use crate::policy::{self, Rule};

/// With fewer quanta than this in a limit, what rounding takes is more than 0.1 %.
const FINE: u64 = 1_024;

/// Rows and ids of the rules of a policy and of those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registry {
    /// [`RULE_ROWS`] of them.
    rows: Vec<Option<Row>>,
    next_id: u32,
}

/// A rule's place in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Counter row, below [`RULE_ROWS`].
    pub row: u32,
    /// Identity in words, never given twice.
    pub id: u32,
    /// What is counted, with the quantum.
    pub unit: Unit,
}

impl Assigned {
    /// Which of a key's buckets: two rules share one, so that one source never fills a bucket. It
    /// depends on the row alone, since a rule that moved to another bucket would begin to count anew
    /// whenever a neighbour comes or goes.
    #[must_use]
    pub const fn group(self) -> u32 {
        self.row / 2
    }
}

/// The registry of the next policy.
pub(super) struct Next {
    pub(super) registry: Registry,
    /// One per rule, in order.
    pub(super) assigned: Vec<Assigned>,
    pub(super) reused_rows: Vec<u32>,
}

impl Default for Registry {
    fn default() -> Self {
        Self { rows: vec![None; RULE_ROWS as usize], next_id: 1 }
    }
}

impl Registry {
    /// Reads map `REGISTRY` and `next_rule_id` of map `META` (0 in new maps). A row that can't be read
    /// counts as free: it will be zeroed when it is given away.
    #[must_use]
    pub fn from_entries(entries: &[RegistryEntry], next_rule_id: u32) -> Self {
        let mut registry = Self { next_id: next_rule_id.max(1), ..Self::default() };
        for (place, entry) in entries.iter().enumerate().take(RULE_ROWS as usize) {
            registry.next_id = registry.next_id.max(entry.id.saturating_add(1));
            let row = Row::from_entry(entry);
            if row.as_ref().is_some_and(|row| registry.find(&row.name).is_none()) {
                registry.rows[place] = row;
            }
        }
        registry
    }

    /// All rows for map `REGISTRY`.
    #[must_use]
    pub fn to_entries(&self) -> Vec<RegistryEntry> {
        self.rows.iter().map(|row| row.as_ref().map_or(FREE, Row::to_entry)).collect()
    }

    /// `next_rule_id` for map `META`.
    #[must_use]
    pub const fn next_rule_id(&self) -> u32 {
        self.next_id
    }

    /// The counter row and id of a name, in the policy or retired.
    #[must_use]
    pub fn assigned(&self, name: &str) -> Option<Assigned> {
        let (place, row) = self.find(name)?;
        Some(Assigned { row: u32::try_from(place).ok()?, id: row.id, unit: row.unit })
    }

    /// The name whose counts a row holds: of a rule in the policy, or one that left it.
    #[must_use]
    pub fn name(&self, row: u32) -> Option<&str> {
        self.rows.get(row as usize)?.as_ref().map(|row| row.name.as_str())
    }

    /// The name of the rule with this id, if it still is that rule's.
    #[must_use]
    pub fn name_of_id(&self, id: u32) -> Option<&str> {
        self.rows.iter().flatten().find(|row| row.id == id).map(|row| row.name.as_str())
    }

    fn find(&self, name: &str) -> Option<(usize, &Row)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(place, row)| Some((place, row.as_ref()?)))
            .find(|(_, row)| row.name == name)
    }

    /// Gives every rule its row and id, and retires the others. `partners`: by rule, the one to share a
    /// bucket with; rules that have a row already keep it.
    pub(super) fn next(
        &self,
        rules: &[Rule],
        partners: &[Option<usize>],
        now: UnixNanos,
    ) -> Result<Next, CompileError> {
        let mut registry = self.clone();
        registry.retire(rules, now);
        // Names that have a row take it before new ones look for a place.
        let mut places: Vec<Option<usize>> = Vec::with_capacity(rules.len());
        for rule in rules {
            let place = registry.find(rule.name().as_str()).map(|(place, _)| place);
            if let Some(row) = place.and_then(|place| registry.rows[place].as_mut()) {
                row.retired = None;
            }
            places.push(place);
        }
        let mut next = Next { registry, assigned: Vec::new(), reused_rows: Vec::new() };
        for (at, rule) in rules.iter().enumerate() {
            // Of 64 rows at most 32 are in use before and at most 32 are wanted: one is always left.
            let place = match places[at] {
                Some(place) => place,
                None => {
                    let partner = partners.get(at).copied().flatten();
                    let beside = partner.map(|partner| places[partner]);
                    next.take_place(beside, self).ok_or(CompileError::Ids)?
                }
            };
            places[at] = Some(place);
            next.assign(rule, place)?;
        }
        Ok(next)
    }

    /// Rules that left the policy begin to age.
    fn retire(&mut self, rules: &[Rule], now: UnixNanos) {
        for row in self.rows.iter_mut().flatten().filter(|row| row.retired.is_none()) {
            if !rules.iter().any(|rule| rule.name().as_str() == row.name) {
                // 0 stands for "in the policy" in the map.
                row.retired = Some(UnixNanos(now.0.max(1)));
            }
        }
    }

    /// Since when a row can be given to a new name, 0 if it is free; `None` if it can't. Rows of the policy
    /// before this one are left alone, whatever the clock says: packets may still be counted there.
    fn available(&self, place: usize, before: &Self) -> Option<UnixNanos> {
        let in_use = before.rows[place].as_ref().is_some_and(|row| row.retired.is_none());
        match &self.rows[place] {
            _ if in_use => None,
            None => Some(UnixNanos(0)),
            Some(row) => row.retired,
        }
    }

    /// A row for a new name: beside its partner, or with room for it, if it has one and that can be; else a
    /// free one, else the one that retired longest ago.
    fn place_for_new(&self, beside: Option<Option<usize>>, before: &Self) -> Option<usize> {
        let free = |place: usize| self.available(place, before);
        if let Some(Some(partner)) = beside
            && free(partner ^ 1).is_some()
        {
            return Some(partner ^ 1);
        }
        let roomy = |place: &usize| beside != Some(None) || free(place ^ 1).is_some();
        let best = |places: &mut dyn Iterator<Item = usize>| {
            places.filter_map(|place| Some((free(place)?, place))).min().map(|(_, place)| place)
        };
        best(&mut (0..self.rows.len()).filter(roomy)).or_else(|| best(&mut (0..self.rows.len())))
    }

    fn new_id(&mut self) -> Result<u32, CompileError> {
        let id = self.next_id;
        self.next_id = id.checked_add(1).ok_or(CompileError::Ids)?;
        Ok(id)
    }
}

impl Next {
    /// A row for a new name, which holds nobody's counts any more.
    fn take_place(&mut self, beside: Option<Option<usize>>, before: &Registry) -> Option<usize> {
        let place = self.registry.place_for_new(beside, before)?;
        self.reused_rows.push(place as u32);
        self.registry.rows[place] = None;
        Some(place)
    }

    fn assign(&mut self, rule: &Rule, place: usize) -> Result<(), CompileError> {
        let old = self.registry.rows[place].take();
        let unit = unit(rule, old.as_ref());
        let id = match &old {
            Some(old) if old.window == rule.window() && old.unit == unit => old.id,
            _ => self.registry.new_id()?,
        };
        let (name, window) = (rule.name().as_str().to_owned(), rule.window());
        self.registry.rows[place] = Some(Row { name, id, window, unit, retired: None });
        self.assigned.push(Assigned { row: place as u32, id, unit });
        Ok(())
    }
}

/// What the rule counts in. A quantum is kept while it serves, since another one is another id, and
/// every count would begin anew.
fn unit(rule: &Rule, old: Option<&Row>) -> Unit {
    if rule.unit() == policy::Unit::Packets {
        return Unit::Packets;
    }
    match old.map(|old| old.unit) {
        Some(Unit::Bytes(quantum)) if serves(quantum, rule) => Unit::Bytes(quantum),
        _ => Unit::Bytes(rule.quantum()),
    }
}

/// Whether all limits fit in this quantum, and none is rounded much that needn't be.
fn serves(quantum: Quantum, rule: &Rule) -> bool {
    let fine = |amount: u64| amount == 0 || amount >> quantum.shift() >= FINE;
    quantum == rule.quantum()
        || rule
            .limits()
            .filter_map(|(_, limit)| limit.finite())
            .all(|amount| quantum.floor(amount).is_some() && fine(amount))
}
