//! The per-CPU counters, summed. Over all *possible* CPUs: a CPU that is switched off keeps what it counted.

use aya::maps::{MapData, PerCpuArray};
use limiter_common::counters::{Count, RuleCount, exit_row, fault_row};
use limiter_common::layout::{RegistryEntry, map};
use limiter_common::packet::Fault;
use limiter_common::verdict::Exit;

use super::error::MapError;
use crate::telemetry::counts::{Counts, RuleCounts};

/// Reads all rows that mean something. Rows are read one after the other, so packets that come
/// meanwhile may be in one count and not yet in another.
pub(super) fn read(
    counters: &PerCpuArray<MapData, Count>,
    registry: &[RegistryEntry],
) -> Result<Counts, MapError> {
    let exits = Exit::ALL.map(|exit| Ok((exit, row(counters, exit_row(exit))?)));
    let faults = Fault::ALL.map(|fault| Ok((fault, row(counters, fault_row(fault as u32))?)));
    let named = (0..).zip(registry).filter_map(|(at, entry)| Some((at, name(entry)?)));
    let rules = named.map(|(at, name)| {
        let counts = RuleCount::ALL.map(|count| Ok((count, row(counters, count.row(at))?)));
        Ok(RuleCounts { name, counts: counts.into_iter().collect::<Result<_, _>>()? })
    });
    Ok(Counts {
        exits: exits.into_iter().collect::<Result<_, _>>()?,
        faults: faults.into_iter().collect::<Result<_, _>>()?,
        rules: rules.collect::<Result<_, _>>()?,
    })
}

/// A row's rule; `None` if the row is free.
fn name(entry: &RegistryEntry) -> Option<String> {
    let length = entry.name.iter().position(|byte| *byte == 0).unwrap_or(entry.name.len());
    (length > 0).then(|| String::from_utf8_lossy(&entry.name[..length]).into_owned())
}

fn row(counters: &PerCpuArray<MapData, Count>, row: u32) -> Result<Count, MapError> {
    let values = counters.get(&row, 0).map_err(|error| MapError::new(map::COUNTERS, error))?;
    Ok(values.iter().fold(Count::default(), |sum, count| Count {
        packets: sum.packets.wrapping_add(count.packets),
        bytes: sum.bytes.wrapping_add(count.bytes),
    }))
}
