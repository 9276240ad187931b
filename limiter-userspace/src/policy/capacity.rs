//! How much the kernel's maps hold, what they take, and what finds no place in them: computed from the
//! policy, the number of buckets and the number of CPUs. Pure.

use limiter_common::counters::{Count, ROWS};
use limiter_common::key::Level;
use limiter_common::layout::{
    AddressEntry, COARSE_PAGES, Classifier, DEFAULT_TICKETS, GENERATIONS, MAX_RULES, MAX_SETS,
    Meta, PolicyEntry, RULE_ROWS, RegistryEntry, RuleEntry, RuleSet, SLOTS, TICKETS_PER_PAGE,
};
use limiter_common::ticket::Ticket;
use limiter_common::word::Word;
use serde::Serialize;

use super::model::Policy;

/// Up to a quarter full, collisions hardly matter.
const SPARSE: u64 = 4;

/// Keys that one source can take: one for each rule that limits sources.
#[must_use]
pub fn keys_per_source(policy: &Policy) -> u64 {
    let takes_a_key = |rule: &&super::Rule| rule.limit(Level::Source).is_some();
    policy.rules().iter().filter(takes_a_key).count() as u64
}

/// The fewest buckets, a power of two, that this many sources fill to a quarter when each takes all keys
/// that it can; `None` if no number of 32 bits is enough.
#[must_use]
pub fn buckets_for(sources: u64, keys_per_source: u64) -> Option<u32> {
    let keys = sources.checked_mul(keys_per_source.max(1))?;
    let buckets =
        keys.checked_mul(SPARSE)?.div_ceil(u64::from(SLOTS)).checked_next_power_of_two()?;
    u32::try_from(buckets).ok()
}

/// Keys that this many buckets hold, and those they hold at a quarter full.
pub(super) const fn keys_of(buckets: u32) -> (u64, u64) {
    let slots = buckets as u64 * SLOTS as u64;
    (slots, slots / SPARSE)
}

/// Part of the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// What lies there.
    pub what: &'static str,
    /// How much of it.
    pub bytes: u64,
}

/// What all maps take together, part by part. The one place that knows: a new map is a new row.
#[must_use]
pub fn memory(buckets: u32, cpus: u32) -> [Memory; 5] {
    let (slots, _) = keys_of(buckets);
    let tickets = u64::from(COARSE_PAGES * TICKETS_PER_PAGE + DEFAULT_TICKETS);
    let part = |what, count: u64, size: usize| Memory { what, bytes: count * size as u64 };
    let generation = size_of::<PolicyEntry>()
        + size_of::<Classifier>()
        + MAX_SETS as usize * size_of::<RuleSet>()
        + MAX_RULES as usize * size_of::<RuleEntry>();
    let rules = GENERATIONS as usize * generation
        + RULE_ROWS as usize * size_of::<RegistryEntry>()
        + size_of::<Meta>();
    [
        part("words", slots, size_of::<Word>()),
        part("addresses", slots, size_of::<AddressEntry>()),
        part("rules", 1, rules),
        // Once for each CPU:
        part("tickets", tickets * u64::from(cpus), size_of::<Ticket>()),
        part("counters", u64::from(ROWS) * u64::from(cpus), size_of::<Count>()),
    ]
}

/// Keys that come into one bucket together, since two rules' keys of one source share it: how many such
/// bundles of one key and of several each source brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bundles([u32; SLOTS as usize + 1]);

impl Bundles {
    /// What each key of a level brings along.
    #[must_use]
    pub fn of(rules: &[RuleEntry], level: Level) -> Self {
        let mut groups: Vec<u32> =
            rules.iter().filter(|rule| rule.limit(level).is_some()).map(RuleEntry::group).collect();
        groups.sort_unstable();
        let mut bundles = Self::default();
        for group in groups.chunk_by(|one, next| one == next) {
            bundles.0[group.len().min(SLOTS as usize)] += 1;
        }
        bundles
    }

    /// Both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, more)| *mine += more);
        self
    }

    /// The keys in all of them.
    #[must_use]
    pub fn keys(self) -> u64 {
        self.sizes().map(|(size, count)| size as u64 * u64::from(count)).sum()
    }

    fn sizes(self) -> impl Iterator<Item = (usize, u32)> {
        self.0.into_iter().enumerate().filter(|(_, count)| *count > 0)
    }
}

/// How full a table is, in parts of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Keys, of all slots.
    pub load: u64,
    /// Of the keys, those that find their bucket full: someone little used gives way, or the level can't
    /// judge the newcomer.
    pub without_slot: u64,
}

impl Fill {
    /// When as many sources bring these bundles each.
    #[must_use]
    pub fn with(sources: u64, bundles: Bundles, buckets: u32) -> Self {
        let per_bucket = real(sources) / f64::from(buckets);
        let keys = per_bucket * real(bundles.keys());
        let without = if keys > 0.0 { overflow(bundles, per_bucket) / keys } else { 0.0 };
        Self { load: per_million(keys / f64::from(SLOTS)), without_slot: per_million(without) }
    }
}

/// Keys above a bucket's slots, to be expected in one bucket: bundles fall into buckets at random, so their
/// numbers there are Poisson distributed, and the keys' is the sum over the sizes (Panjer's recursion).
fn overflow(bundles: Bundles, sources_per_bucket: f64) -> f64 {
    let rate = |count: u32| f64::from(count) * sources_per_bucket;
    let mean = real(bundles.keys()) * sources_per_bucket;
    let all: f64 = bundles.sizes().map(|(_, count)| rate(count)).sum();
    let mut chance = [0.0; SLOTS as usize];
    chance[0] = (-all).exp();
    for keys in 1..chance.len() {
        let ways = bundles.sizes().filter(|(size, _)| *size <= keys);
        let sum: f64 =
            ways.map(|(size, n)| real(size as u64) * rate(n) * chance[keys - size]).sum();
        chance[keys] = sum / real(keys as u64);
    }
    let room = f64::from(SLOTS);
    let free: f64 =
        (0_u32..).zip(chance).map(|(keys, chance)| (room - f64::from(keys)) * chance).sum();
    // Of what is expected, all that finds no room: mean = room − free + overflow.
    (mean - room + free).max(0.0)
}

/// Nothing here comes near 2^53.
#[expect(clippy::cast_precision_loss, reason = "see above")]
const fn real(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; a load that is no number in 64 bits is far beyond any table"
)]
fn per_million(part: f64) -> u64 {
    (part * 1e6).round() as u64
}

#[cfg(test)]
mod tests;
