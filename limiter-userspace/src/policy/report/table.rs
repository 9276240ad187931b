//! The part of the report about the table that all rules share: memory, how many sources it is for, how
//! full it is then, what finds no place.

use std::fmt;

use limiter_common::key::Level;
use limiter_common::layout::{RuleEntry, SLOTS};
use serde::Serialize;

use super::super::capacity::{Bundles, Fill, Memory, buckets_for, keys_of, memory};
use super::super::words::grouped;
use super::{Figure, computed, line};

/// What the table is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// Its buckets.
    pub buckets: u32,
    /// CPUs that the machine can have.
    pub cpus: u32,
    /// Sources that it is to hold; `None` for as many as fill it to a quarter.
    pub sources: Option<u64>,
}

/// The table of keys. Field names are an interface: they only ever grow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// Buckets, of 8 keys each.
    pub buckets: u32,
    /// CPUs that `memory` is reckoned for.
    pub cpus: u32,
    /// Bytes of memory of all maps.
    pub memory_bytes: Figure,
    /// The same, part by part.
    pub memory: Vec<Memory>,
    /// Keys that it holds at a quarter full, up to where collisions hardly matter.
    pub keys_at_quarter: Figure,
    /// Keys that one source can take: one for each rule that limits sources.
    pub keys_per_source: Figure,
    /// Keys that one prefix can take: one for each rule that limits prefixes.
    pub keys_per_prefix: Figure,
    /// Sources that fit at a quarter full, if each takes all keys it can; `None` if none takes any.
    pub sources_at_quarter: Option<Figure>,
    /// What becomes of the sources that it is to hold; `None` if none takes any key.
    pub promise: Option<Promise>,
    /// Sources at their limits, each with all keys it can, that fill it; `None` if none takes any.
    pub full_with_hot_sources: Option<Figure>,
}

/// A number of sources, each with all keys it can take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Promise {
    /// How many.
    pub sources: u64,
    /// If their prefixes are few.
    pub together: FillReport,
    /// If each has a prefix of its own, as forged ones may.
    pub apart: FillReport,
}

/// How full the table is, in parts of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FillReport {
    /// Keys, of all that it can hold.
    pub load_per_million: Figure,
    /// Of the keys, those that find their bucket full.
    pub without_slot_per_million: Figure,
}

impl TableReport {
    pub(super) fn new(
        rules: &[RuleEntry],
        TableSize { buckets, cpus, sources }: TableSize,
    ) -> Self {
        let (slots, quarter) = keys_of(buckets);
        let memory = memory(buckets, cpus).to_vec();
        let each = Bundles::of(rules, Level::Source);
        let prefix = Bundles::of(rules, Level::Prefix);
        let at_quarter = quarter.checked_div(each.keys());
        let fill = |sources, bundles| FillReport::new(Fill::with(sources, bundles, buckets));
        let promise = at_quarter.map(|at_quarter| {
            let sources = sources.unwrap_or(at_quarter);
            let (together, apart) = (fill(sources, each), fill(sources, each.and(prefix)));
            Promise { sources, together, apart }
        });
        Self {
            buckets,
            cpus,
            memory_bytes: computed(memory.iter().map(|part| part.bytes).sum()),
            memory,
            keys_at_quarter: computed(quarter),
            keys_per_source: computed(each.keys()),
            keys_per_prefix: computed(prefix.keys()),
            sources_at_quarter: at_quarter.map(computed),
            promise,
            full_with_hot_sources: slots.checked_div(each.keys()).map(computed),
        }
    }

    /// Buckets with which the promise fills a quarter, if these are too few.
    fn enough(&self, promise: &Promise) -> Option<u32> {
        let enough = buckets_for(promise.sources, self.keys_per_source.value)?;
        (enough > self.buckets).then_some(enough)
    }
}

impl FillReport {
    const fn new(fill: Fill) -> Self {
        Self {
            load_per_million: computed(fill.load),
            without_slot_per_million: computed(fill.without_slot),
        }
    }
}

impl fmt::Display for TableReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "table, for all rules together")?;
        self.memory(f)?;
        let keys = self.keys_at_quarter;
        line(f, "keys", format_args!("{keys} at a quarter full [{}]", keys.basis))?;
        if let Some(promise) = &self.promise {
            self.promise(f, promise)?;
        }
        if let Some(hot) = self.full_with_hot_sources {
            line(f, "is full", format_args!("of {hot} sources at their limits [{}]", hot.basis))?;
        }
        Ok(())
    }
}

impl TableReport {
    fn memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: u64| grouped(bytes.div_ceil(1_024));
        let part = |part: &Memory| format!("{} {}", part.what, kib(part.bytes));
        let parts = self.memory.iter().map(part).collect::<Vec<_>>().join(", ");
        let (all, basis) = (kib(self.memory_bytes.value), self.memory_bytes.basis);
        let cpus = plural(u64::from(self.cpus), "CPU");
        line(f, "memory", format_args!("{all} KiB with {cpus}: {parts} [{basis}]"))?;
        line(f, "", format_args!("{} buckets of {SLOTS} keys", grouped(u64::from(self.buckets))))
    }

    fn promise(&self, f: &mut fmt::Formatter<'_>, promise: &Promise) -> fmt::Result {
        let Promise { sources, together, apart } = promise;
        let keys = plural(self.keys_per_source.value, "key");
        line(f, "sources", format_args!("{}, up to {keys} each: {together}", grouped(*sources)))?;
        if self.keys_per_prefix.value > 0 {
            let keys = plural(self.keys_per_prefix.value, "key");
            line(f, "", format_args!("each in a prefix of its own, {keys} more: {apart}"))?;
        }
        match self.enough(promise) {
            Some(enough) => {
                line(f, "", format_args!("a quarter full with {} buckets", grouped(enough.into())))
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for FillReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { load_per_million: load, without_slot_per_million: without } = self;
        let (full, lost) = (percent(load.value), percent(without.value));
        write!(f, "{full} full, {lost} of keys find no place [{}]", load.basis)
    }
}

fn plural(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// With the two digits or so that say something.
fn percent(per_million: u64) -> String {
    let rounded = |step: u64| per_million.saturating_add(step / 2) / step;
    match per_million {
        0 => "0 %".to_owned(),
        1..1_000 => format!("0.{:03} %", rounded(10).max(1)),
        1_000..9_950 => format!("0.{:02} %", rounded(100)),
        9_950..99_500 => format!("{}.{} %", rounded(1_000) / 10, rounded(1_000) % 10),
        _ => format!("{} %", grouped(rounded(10_000))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_digits_that_say_something() {
        for (per_million, text) in [
            (0, "0 %"),
            (1, "0.001 %"),
            (146, "0.015 %"),
            (996, "0.100 %"),
            (4_340, "0.43 %"),
            (9_949, "0.99 %"),
            (9_950, "1.0 %"),
            (32_653, "3.3 %"),
            (99_499, "9.9 %"),
            (99_500, "10 %"),
            (250_000, "25 %"),
            (2_500_000_000, "250,000 %"),
        ] {
            assert_eq!(percent(per_million), text);
        }
    }
}
