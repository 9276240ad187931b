//! One row of the registry, and how it lies in map `REGISTRY`.

use limiter_common::clock::WindowLength;
use limiter_common::layout::{MAX_NAME, RegistryEntry, Unit};
use limiter_common::quantum::Quantum;

use super::UnixNanos;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) id: u32,
    pub(super) window: WindowLength,
    pub(super) unit: Unit,
    /// `None` while the rule is in the policy.
    pub(super) retired: Option<UnixNanos>,
}

/// A row that no rule has had.
pub(super) const FREE: RegistryEntry =
    RegistryEntry { name: [0; MAX_NAME], retired: 0, id: 0, window: 0, bytes: 0, shift: 0 };

impl Row {
    /// `None` for a free row, and for one that can't be read.
    pub(super) fn from_entry(entry: &RegistryEntry) -> Option<Self> {
        let length = entry.name.iter().position(|byte| *byte == 0).unwrap_or(MAX_NAME);
        let name =
            std::str::from_utf8(&entry.name[..length]).ok().filter(|name| !name.is_empty())?;
        let unit = match (entry.bytes, entry.shift) {
            (0, 0) => Unit::Packets,
            (1, shift) => Unit::Bytes(Quantum::from_shift(shift)?),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            id: entry.id,
            window: WindowLength::from_ticks(entry.window)?,
            unit,
            retired: (entry.retired != 0).then_some(UnixNanos(entry.retired)),
        })
    }

    pub(super) fn to_entry(&self) -> RegistryEntry {
        let mut name = [0; MAX_NAME];
        // Policies hold names to MAX_NAME bytes.
        name.iter_mut().zip(self.name.bytes()).for_each(|(to, byte)| *to = byte);
        let (bytes, shift) = match self.unit {
            Unit::Packets => (0, 0),
            Unit::Bytes(quantum) => (1, quantum.shift()),
        };
        let retired = self.retired.map_or(0, |retired| retired.0);
        RegistryEntry { name, retired, id: self.id, window: self.window.ticks(), bytes, shift }
    }
}
