//! Handles to all maps, and the one way a policy gets into them. The counterpart of the kernel
//! program's `maps.rs`, which has the table of writers and readers.

use aya::maps::{Array, Map, MapData, PerCpuArray, PerCpuValues};
use aya::util::nr_cpus;
use aya::{Ebpf, Pod};
use limiter_common::counters::{Count, RuleCount};
use limiter_common::layout::{
    Bypass, Classifier, MAX_RULES, MAX_SETS, PolicyEntry, RegistryEntry, RuleEntry, RuleSet, map,
};

use super::error::{MapError, OpenError};
use super::meta::MetaPage;
use super::registry;
use super::sys::GracePeriod;
use super::table::Table;
use crate::snapshot::Snapshot;

/// All maps, whether pinned or not.
pub(super) struct Maps {
    pub(super) meta: MetaPage,
    pub(super) table: Table,
    policy: Array<MapData, PolicyEntry>,
    classifier: Array<MapData, Classifier>,
    sets: Array<MapData, RuleSet>,
    rules: Array<MapData, RuleEntry>,
    registry: Array<MapData, RegistryEntry>,
    pub(super) counters: PerCpuArray<MapData, Count>,
    bypass: Array<MapData, u32>,
    test_clock: Array<MapData, u64>,
    grace: GracePeriod,
}

impl Maps {
    /// Takes the maps out of a loaded object.
    pub(super) fn take(ebpf: &mut Ebpf) -> Result<Self, OpenError> {
        let meta = MetaPage::new(data(take(ebpf, map::META)?, map::META)?.fd())?;
        let words = data(take(ebpf, map::TABLE)?, map::TABLE)?;
        let addresses = data(take(ebpf, map::ADDRESSES)?, map::ADDRESSES)?;
        Ok(Self {
            table: Table::new(&words, &addresses, meta.seed())?,
            meta,
            policy: array(ebpf, map::POLICY)?,
            classifier: array(ebpf, map::CLASSIFIER)?,
            sets: array(ebpf, map::SETS)?,
            rules: array(ebpf, map::RULES)?,
            registry: array(ebpf, map::REGISTRY)?,
            counters: take(ebpf, map::COUNTERS)?
                .try_into()
                .map_err(|error| MapError::new(map::COUNTERS, error))?,
            bypass: array(ebpf, map::BYPASS)?,
            test_clock: array(ebpf, map::TEST_CLOCK)?,
            grace: GracePeriod::new().map_err(|cause| OpenError::call("a map of maps", &cause))?,
        })
    }

    /// Writes a policy into the idle half of the maps, then makes it the active one, in one store.
    pub(super) fn install(&mut self, snapshot: &Snapshot) -> Result<(), MapError> {
        // Packets that began before the last flip may still be reading the half that is idle since.
        self.wait_for_packets()?;
        let generation = next_generation(self.meta.generation());
        let idle = generation & 1;
        put(map::POLICY, &mut self.policy, idle, &snapshot.policy)?;
        put(map::CLASSIFIER, &mut self.classifier, idle, &snapshot.classifier)?;
        put_all(map::SETS, &mut self.sets, idle * MAX_SETS, &snapshot.sets)?;
        put_all(map::RULES, &mut self.rules, idle * MAX_RULES, &snapshot.rules)?;
        for row in &snapshot.reused_rows {
            self.zero(*row)?;
        }
        // Before the registry, so that a crash between the two wastes ids and repeats none. The registry
        // before the flip: what it says too early is put right when it is read.
        self.meta.set_next_rule_id(snapshot.registry.next_rule_id());
        put_all(map::REGISTRY, &mut self.registry, 0, &snapshot.registry.to_entries())?;
        self.meta.flip(generation);
        Ok(())
    }

    /// Returns once every packet is through that was in the program before the call.
    pub(super) fn wait_for_packets(&self) -> Result<(), MapError> {
        self.grace.wait().map_err(|cause| MapError::new("grace period", cause))
    }

    /// The active policy's entry; `None` before the first.
    pub(super) fn policy(&self) -> Result<Option<PolicyEntry>, MapError> {
        match self.meta.generation() {
            0 => Ok(None),
            generation => get(map::POLICY, &self.policy, generation & 1).map(Some),
        }
    }

    /// All rows, as the policy in force knows them.
    pub(super) fn registry(&self) -> Result<Vec<RegistryEntry>, MapError> {
        let rows = self.registry.iter().map(|row| row.map_err(|e| MapError::new(map::REGISTRY, e)));
        let mut rows: Vec<RegistryEntry> = rows.collect::<Result<_, _>>()?;
        registry::settle(&mut rows, &self.rules()?);
        Ok(rows)
    }

    /// The active policy's rules.
    fn rules(&self) -> Result<Vec<RuleEntry>, MapError> {
        let generation = self.meta.generation();
        if generation == 0 {
            return Ok(Vec::new());
        }
        let first = (generation & 1) * MAX_RULES;
        let rules = (first..first + MAX_RULES).map(|at| get(map::RULES, &self.rules, at));
        rules.filter(|rule| !matches!(rule, Ok(rule) if rule.id() == 0)).collect()
    }

    /// The operator's word, read from the map that the program reads, wherever its pin has gone.
    pub(super) fn bypass(&self) -> Result<Bypass, MapError> {
        get(map::BYPASS, &self.bypass, 0).map(Bypass::from_number)
    }

    /// The test clock, if the program was loaded with it.
    pub(super) fn set_test_clock(&mut self, unix_nanos: u64) -> Result<(), MapError> {
        put(map::TEST_CLOCK, &mut self.test_clock, 0, &unix_nanos)
    }

    /// Sets a rule's counters to zero, on all possible CPUs. No active rule may use the row.
    fn zero(&mut self, row: u32) -> Result<(), MapError> {
        let failed = |cause: String| MapError::new(map::COUNTERS, cause);
        let cpus = nr_cpus().map_err(|(path, cause)| failed(format!("{path}: {cause}")))?;
        for count in RuleCount::ALL {
            let zeros = PerCpuValues::try_from(vec![Count::default(); cpus]);
            let zeros = zeros.map_err(|cause| failed(cause.to_string()))?;
            let set = self.counters.set(count.row(row), zeros, 0);
            set.map_err(|cause| failed(cause.to_string()))?;
        }
        Ok(())
    }
}

/// Counts on; 0 means that there is no policy, so the wrap leaves it out, and keeps the parity.
fn next_generation(generation: u32) -> u32 {
    generation.checked_add(1).unwrap_or(2)
}

fn put<V: Pod>(
    name: &'static str,
    map: &mut Array<MapData, V>,
    index: u32,
    value: &V,
) -> Result<(), MapError> {
    map.set(index, value, 0).map_err(|error| MapError::new(name, error))
}

fn put_all<V: Pod>(
    name: &'static str,
    map: &mut Array<MapData, V>,
    first: u32,
    values: &[V],
) -> Result<(), MapError> {
    (first..).zip(values).try_for_each(|(index, value)| put(name, map, index, value))
}

fn get<V: Pod>(name: &'static str, map: &Array<MapData, V>, index: u32) -> Result<V, MapError> {
    map.get(&index, 0).map_err(|error| MapError::new(name, error))
}

fn take(ebpf: &mut Ebpf, name: &'static str) -> Result<Map, MapError> {
    ebpf.take_map(name).ok_or_else(|| MapError::new(name, "not in the kernel object"))
}

fn array<V: Pod>(ebpf: &mut Ebpf, name: &'static str) -> Result<Array<MapData, V>, MapError> {
    take(ebpf, name)?.try_into().map_err(|error| MapError::new(name, error))
}

fn data(map: Map, name: &'static str) -> Result<MapData, MapError> {
    match map {
        Map::Array(data) => Ok(data),
        _ => Err(MapError::new(name, "not an array")),
    }
}

#[cfg(test)]
mod tests {
    use super::next_generation;

    #[test]
    fn generations_alternate_and_never_come_back_to_none() {
        assert_eq!(next_generation(0), 1);
        assert_eq!(next_generation(7), 8);
        assert_eq!(next_generation(u32::MAX), 2);
        assert_eq!(next_generation(u32::MAX) & 1, 0, "the active half was 1");
    }
}
