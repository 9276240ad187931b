use super::*;
use limiter_common::clock::WindowLength;
use limiter_common::key::{Family, Level, Source};
use limiter_common::layout::Unit;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;

const BUCKETS: u32 = 64;
const NOW: Tick = Tick(17_000_000_003);

/// A table in plain memory, and the file behind its addresses.
fn table(buckets: u32) -> (Table, File) {
    let slots = u64::from(buckets * SLOTS);
    let memory = |bytes| {
        let file = memfd_create("table", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        file
    };
    let (words, addresses) = (memory(slots * 8), memory(slots * 16));
    let table = Table::over(
        &words,
        &addresses,
        buckets,
        Seed([0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03]),
    )
    .unwrap();
    (table, File::from(addresses))
}

fn rule(id: u32, seconds: u32) -> RuleEntry {
    let window = WindowLength::from_ticks(seconds * 10).unwrap();
    RuleEntry::new(id, 0, window, Unit::Packets, 3).with_limit(Level::Source, 20)
}

fn source(bits: u64) -> Key {
    Source::from_bits(Family::V4, bits).key(Level::Source)
}

/// Puts a word where the program would, its address beside it.
fn put(table: &Table, addresses: &File, rule: &RuleEntry, key: Key, slot: usize, word: Word) {
    let bucket = KeyHash::of(table.seed, key).bucket(rule.group(), table.mask) as usize;
    let slot = bucket * SLOTS_PER_BUCKET + slot;
    table.words.words()[slot].store(word.0, Relaxed);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.bits().to_ne_bytes());
    bytes[8..12].copy_from_slice(&rule.id().to_ne_bytes());
    bytes[12] = key.tag();
    addresses.write_all_at(&bytes, slot as u64 * 16).unwrap();
}

fn word(table: &Table, rule: &RuleEntry, key: Key, end: Tick, used: u32) -> Word {
    let fingerprint = KeyHash::of(table.seed, key).fingerprint(rule.id());
    Word::new(fingerprint, end, Heat::Warm, used)
}

/// What is shown, and how many live.
fn visited(table: &Table, rules: &[RuleEntry]) -> (Vec<LiveKey>, u64) {
    let mut seen = Vec::new();
    let live = table.visit(rules, NOW, |live| {
        seen.push(live);
        0
    });
    (seen, live)
}

#[test]
fn a_living_key_is_found_and_visited() {
    let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
    let key = source(0x0a00_0001);
    put(&table, &addresses, &rule, key, 6, word(&table, &rule, key, Tick(NOW.0 + 40), 7));
    let usage = Use { used: 7, heat: Heat::Warm, ticks_left: 40 };
    assert_eq!(table.find(&rule, key, NOW), Some(usage));
    assert_eq!(table.find(&rule, source(0x0a00_0002), NOW), None);
    let rules = [super::tests::rule(4, 1), rule];
    assert_eq!(visited(&table, &rules), (vec![LiveKey { key, rule: 1, usage }], 1));
    assert_eq!(table.count_live(NOW, 100), 1);
}

#[test]
fn neither_a_past_nor_a_reserved_word_counts() {
    let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
    let key = source(0x0a00_0001);
    put(&table, &addresses, &rule, key, 0, word(&table, &rule, key, NOW, 7));
    assert_eq!(table.find(&rule, key, NOW), None);
    let reserved = word(&table, &rule, key, Tick(NOW.0 + 4), RESERVED);
    put(&table, &addresses, &rule, key, 0, reserved);
    assert_eq!(table.find(&rule, key, NOW), None);
}

#[test]
fn an_address_that_does_not_hash_back_is_not_believed() {
    let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
    let (key, other) = (source(0x0a00_0001), source(0x0a00_0002));
    let others = word(&table, &rule, other, Tick(NOW.0 + 4), 7);
    put(&table, &addresses, &rule, key, 0, others);
    assert_eq!(visited(&table, &[rule]), (vec![], 1));
}

#[test]
fn who_claimed_once_is_counted_and_not_shown_unless_it_is_refused() {
    let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
    for (slot, (used, heat)) in
        [(1, Heat::Cold), (1, Heat::Spent), (2, Heat::Cold)].into_iter().enumerate()
    {
        let key = source(slot as u64);
        let word = word(&table, &rule, key, Tick(NOW.0 + 40), used);
        put(&table, &addresses, &rule, key, slot, word.with(heat, used));
    }
    let (seen, live) = visited(&table, &[rule]);
    let mut keys: Vec<u64> = seen.iter().map(|live| live.key.bits()).collect();
    keys.sort_unstable();
    assert_eq!((keys, live), (vec![1, 2], 3));
}

#[test]
fn use_below_what_is_wanted_is_passed_over() {
    let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
    for bits in 0..10 {
        let key = source(bits);
        let word = word(&table, &rule, key, Tick(NOW.0 + 40), 10);
        put(&table, &addresses, &rule, key, 0, word);
    }
    let mut seen = 0;
    let live = table.visit(&[rule], NOW, |_| {
        seen += 1;
        11
    });
    assert_eq!(seen, 1);
    assert_eq!(live, table.count_live(NOW, 200));
}

#[test]
fn dead_words_are_cleared_and_others_left() {
    let ((table, addresses), rule) = (table(BUCKETS), rule(5, 10));
    let keys = [1, 2, 3].map(source);
    let ends = [NOW.0 - 1, NOW.0, NOW.0 + 200].map(Tick);
    for (slot, (key, end)) in keys.into_iter().zip(ends).enumerate() {
        put(&table, &addresses, &rule, key, slot, word(&table, &rule, key, end, 1));
    }
    assert_eq!(table.clear_dead(NOW, 200), 1, "the tick after the end still belongs to the key");
    assert_eq!(table.clear_dead(NOW, 200), 0);
    assert!(table.find(&super::tests::rule(5, 20), keys[2], NOW).is_some());
}
