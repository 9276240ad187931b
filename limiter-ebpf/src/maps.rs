//! All maps and load-time constants on one screen. Types: `limiter_common::layout`.
//!
//! | map | key | writer | reader | when full |
//! |---|---|---|---|---|
//! | META | – | daemon | program | – |
//! | POLICY, CLASSIFIER, CLASSES, RULES | generation, place | daemon, idle half only | program | refused by the compiler |
//! | TABLE | bucket | program | program, daemon | the coldest key of a bucket goes; else `crowded` |
//! | ADDRESSES | bucket | program, at insertion | daemon | as TABLE |
//! | COUNTERS | row, per CPU | program | daemon | – |
//! | REGISTRY | counter row | daemon | daemon | the row retired longest is used again |
//! | BYPASS | – | command line | program | – |
//! | SCRATCH | –, per CPU | program | program, within one packet | – |
//! | TEST_CLOCK | – | tests | program, if loaded for tests | – |

use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, PerCpuArray};
use limiter_common::counters::{Count, ROWS};
use limiter_common::layout::{
    AddressEntry, Bypass, ClassEntry, Classifier, DEFAULT_BUCKETS, GENERATIONS, MAX_CLASSES,
    MAX_RULES, Meta, PolicyEntry, RULE_ROWS, RegistryEntry, RuleEntry, SLOTS,
};
use limiter_common::take::Memory;

/// The daemon reads and writes single fields while the program runs. Without the flag, an array's
/// values begin 56 bytes past a cache line: buckets would straddle two.
const MMAPABLE: u32 = 1 << 10;

/// The words of one bucket: one cache line.
#[repr(C, align(64))]
pub struct BucketWords([u64; SLOTS as usize]);

/// Whose words lie in the bucket of the same index.
#[repr(C)]
pub struct BucketAddresses([AddressEntry; SLOTS as usize]);

#[map]
static META: Array<Meta> = Array::with_max_entries(1, MMAPABLE);
#[map]
static POLICY: Array<PolicyEntry> = Array::with_max_entries(GENERATIONS, 0);
#[map]
static CLASSIFIER: Array<Classifier> = Array::with_max_entries(GENERATIONS, 0);
#[map]
static CLASSES: Array<ClassEntry> = Array::with_max_entries(GENERATIONS * MAX_CLASSES, 0);
#[map]
static RULES: Array<RuleEntry> = Array::with_max_entries(GENERATIONS * MAX_RULES, 0);
#[map]
static TABLE: Array<BucketWords> = Array::with_max_entries(DEFAULT_BUCKETS, MMAPABLE);
#[map]
static ADDRESSES: Array<BucketAddresses> = Array::with_max_entries(DEFAULT_BUCKETS, MMAPABLE);
#[map]
static COUNTERS: PerCpuArray<Count> = PerCpuArray::with_max_entries(ROWS, 0);
#[map]
static REGISTRY: Array<RegistryEntry> = Array::with_max_entries(RULE_ROWS, 0);
#[map]
static BYPASS: Array<u32> = Array::with_max_entries(1, 0);
#[map]
static SCRATCH: PerCpuArray<u64> = PerCpuArray::with_max_entries(1, 0);
#[map]
static TEST_CLOCK: Array<u64> = Array::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static BUCKET_MASK: u32 = DEFAULT_BUCKETS - 1;
#[unsafe(no_mangle)]
static USE_TEST_CLOCK: u32 = 0;

/// A constant that the loader may have replaced, so the compiler must not fold it.
#[inline(always)]
fn constant(value: &'static u32) -> u32 {
    // SAFETY: a reference is always readable.
    unsafe { core::ptr::read_volatile(value) }
}

#[inline(always)]
pub fn meta() -> Option<&'static Meta> {
    META.get(0)
}

/// A number that is 0 and that the verifier takes for any.
#[inline(always)]
pub fn zero() -> usize {
    match META.get(0) {
        // SAFETY: a field of a map's value; volatile, so that the compiler doesn't fold it either.
        Some(meta) => unsafe { core::ptr::read_volatile(&raw const meta.reserved) as usize },
        None => 0,
    }
}

#[inline(always)]
pub fn policy(generation: u32) -> Option<&'static PolicyEntry> {
    POLICY.get(generation & 1)
}

#[inline(always)]
pub fn classifier(generation: u32) -> Option<&'static Classifier> {
    CLASSIFIER.get(generation & 1)
}

#[inline(always)]
pub fn class(generation: u32, class: u32) -> Option<&'static ClassEntry> {
    CLASSES.get((generation & 1) * MAX_CLASSES + (class & (MAX_CLASSES - 1)))
}

#[inline(always)]
pub fn rule(generation: u32, place: u32) -> Option<&'static RuleEntry> {
    RULES.get((generation & 1) * MAX_RULES + (place & (MAX_RULES - 1)))
}

#[inline(always)]
pub fn bucket_mask() -> u32 {
    constant(&BUCKET_MASK)
}

/// The first of a bucket's eight words.
#[inline(always)]
pub fn words(bucket: u32) -> Option<*mut u64> {
    Some(TABLE.get_ptr_mut(bucket)?.cast())
}

#[inline(always)]
pub fn set_address(bucket: u32, slot: u32, entry: AddressEntry) {
    let Some(addresses) = ADDRESSES.get_ptr_mut(bucket) else {
        return;
    };
    let slot = (slot & (SLOTS - 1)) as usize;
    // SAFETY: the map's value is eight entries and `slot` is below eight. Another CPU may write the
    // same entry: readers believe one only if it hashes back to the word beside it.
    unsafe { addresses.cast::<AddressEntry>().add(slot).write(entry) }
}

/// This CPU's row of counters.
#[inline(always)]
pub fn counter(row: u32) -> Option<*mut Count> {
    COUNTERS.get_ptr_mut(row)
}

/// A number in this CPU's memory.
#[derive(Clone, Copy)]
pub struct Scratch(*mut u64);

impl Memory for Scratch {
    #[inline(always)]
    fn get(&self) -> u64 {
        // SAFETY: this CPU's own map value; nothing else on this CPU runs meanwhile. Volatile, so
        // that the number really lies there.
        unsafe { self.0.read_volatile() }
    }

    #[inline(always)]
    fn set(&self, number: u64) {
        // SAFETY: as above.
        unsafe { self.0.write_volatile(number) }
    }
}

#[inline(always)]
pub fn scratch() -> Option<Scratch> {
    Some(Scratch(SCRATCH.get_ptr_mut(0)?))
}

#[inline(always)]
pub fn bypass() -> Bypass {
    match BYPASS.get(0) {
        Some(number) => Bypass::from_number(*number),
        None => Bypass::Off,
    }
}

/// The test clock in Unix nanoseconds, if the program was loaded for tests.
#[inline(always)]
pub fn test_clock() -> Option<u64> {
    if constant(&USE_TEST_CLOCK) == 0 {
        return None;
    }
    TEST_CLOCK.get(0).copied()
}
