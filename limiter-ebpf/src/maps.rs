//! All maps and load-time constants on one screen. Types: `limiter_common::layout`.
//!
//! | map | key | writer | reader | when full |
//! |---|---|---|---|---|
//! | META | – | daemon | program | – |
//! | POLICY, CLASSIFIER, SETS, RULES | generation, place | daemon, idle half only | program | refused by the compiler |
//! | TABLE | bucket | program | program, daemon | the coldest key of a bucket goes; else `crowded` |
//! | ADDRESSES | bucket | program, at insertion | daemon | as TABLE |
//! | TICKETS | hash of key and set, per CPU | program | program | who comes last has it |
//! | COUNTERS | row, per CPU | program | daemon | – |
//! | REGISTRY | counter row | daemon | daemon | the row retired longest is used again |
//! | BYPASS | – | command line | program | – |
//! | NOTES | –, per CPU | program | program, within one packet | – |
//! | TEST_CLOCK | – | tests | program, if loaded for tests | – |

use core::cell::UnsafeCell;

use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, PerCpuArray};
use limiter_common::border::Subject;
use limiter_common::clock::Tick;
use limiter_common::counters::{Count, ROWS};
use limiter_common::key::Level;
use limiter_common::layout::{
    AddressEntry, Bypass, COARSE_PAGES, Classifier, DEFAULT_BUCKETS, DEFAULT_TICKETS, GENERATIONS,
    MAX_RULES, MAX_SETS, Meta, PREFIX_TICKETS, PolicyEntry, RULE_ROWS, RegistryEntry, RuleEntry,
    RuleSet, SLOTS, TICKETS_PER_PAGE,
};
use limiter_common::take::Memory;
use limiter_common::ticket::Ticket;

/// The daemon reads and writes single fields while the program runs. Without the flag, an array's
/// values begin 56 bytes past a cache line: buckets would straddle two.
const MMAPABLE: u32 = 1 << 10;

/// The words of one bucket: one cache line.
#[repr(C, align(64))]
pub struct BucketWords([u64; SLOTS as usize]);

/// Whose words lie in the bucket of the same index.
#[repr(C)]
pub struct BucketAddresses([AddressEntry; SLOTS as usize]);

/// Many values in one, so that only one line is fetched for one of them.
#[repr(C)]
pub struct Page<T, const N: usize>([T; N]);

/// The packet that this CPU is at, for the functions that ask its pools: which rules, when, its key and
/// hash at each level, what each level has room for, where in its bucket each key was seen, which rules
/// were debited. (As arguments and
/// on the stack, Linux 6.1 would follow each value, and there is no stack for all of it.)
#[repr(C)]
pub struct Notes {
    pub subject: Note<u64>,
    pub now: Note<u64>,
    pub tick: Note<u64>,
    pub source: Note<u64>,
    debited: Note<u64>,
    hash: [Note<u64>; 4],
    pub length: Note<u32>,
    reserved: Note<u32>,
    rooms: [Note<u32>; 4],
    places: [Note<u32>; 128],
}

/// A number in this CPU's memory. Accesses are volatile, so that it really lies there.
#[repr(transparent)]
pub struct Note<T>(UnsafeCell<T>);

// SAFETY: each CPU has its own, and programs don't interrupt each other on one CPU.
unsafe impl<T> Sync for Note<T> {}

impl<T: Copy> Note<T> {
    #[inline(always)]
    pub fn get(&self) -> T {
        // SAFETY: this CPU's own map value, and nothing else on this CPU runs meanwhile.
        unsafe { self.0.get().read_volatile() }
    }

    #[inline(always)]
    pub fn set(&self, value: T) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(value) }
    }
}

impl Notes {
    #[inline(always)]
    pub fn set(&self, source: u64, subject: u64, now: u64, length: u32) {
        self.source.set(source);
        self.subject.set(subject);
        self.now.set(now);
        self.tick.set(Tick::from_unix_nanos(now).0);
        self.length.set(length);
    }

    /// What a level was seen to have room for.
    #[inline(always)]
    pub fn room(&self, level: usize) -> &Note<u32> {
        &self.rooms[level & 3]
    }

    /// The hash of the packet's key at a level.
    #[inline(always)]
    pub fn hash(&self, level: usize) -> &Note<u64> {
        &self.hash[level & 3]
    }

    /// Where the key of a rule and level was seen, by [`crate::pool::name`].
    #[inline(always)]
    pub fn place(&self, name: usize) -> &Note<u32> {
        &self.places[name & 127]
    }
}

impl Memory for &Notes {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.debited.get()
    }

    #[inline(always)]
    fn set(&self, number: u64) {
        self.debited.set(number);
    }
}

#[map]
static META: Array<Meta> = Array::with_max_entries(1, MMAPABLE);
#[map]
static POLICY: Array<PolicyEntry> = Array::with_max_entries(GENERATIONS, 0);
#[map]
static CLASSIFIER: Array<Classifier> = Array::with_max_entries(GENERATIONS, 0);
#[map]
static SETS: Array<RuleSet> = Array::with_max_entries(GENERATIONS * MAX_SETS, 0);
#[map]
static RULES: Array<RuleEntry> = Array::with_max_entries(GENERATIONS * MAX_RULES, 0);
#[map]
static TABLE: Array<BucketWords> = Array::with_max_entries(DEFAULT_BUCKETS, MMAPABLE);
#[map]
static ADDRESSES: Array<BucketAddresses> = Array::with_max_entries(DEFAULT_BUCKETS, MMAPABLE);
#[map]
static TICKETS: PerCpuArray<Page<Ticket, { TICKETS_PER_PAGE as usize }>> =
    PerCpuArray::with_max_entries(COARSE_PAGES + DEFAULT_TICKETS / TICKETS_PER_PAGE, 0);
#[map]
static COUNTERS: PerCpuArray<Count> = PerCpuArray::with_max_entries(ROWS, 0);
#[map]
static REGISTRY: Array<RegistryEntry> = Array::with_max_entries(RULE_ROWS, 0);
#[map]
static BYPASS: Array<u32> = Array::with_max_entries(1, 0);
#[map]
static NOTES: PerCpuArray<Notes> = PerCpuArray::with_max_entries(1, 0);
#[map]
static TEST_CLOCK: Array<u64> = Array::with_max_entries(1, 0);

#[unsafe(no_mangle)]
static BUCKET_MASK: u32 = DEFAULT_BUCKETS - 1;
#[unsafe(no_mangle)]
static TICKET_MASK: u32 = DEFAULT_TICKETS - 1;
#[unsafe(no_mangle)]
static SHARE: u32 = 4;
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

/// The rules that judge a subject.
#[inline(always)]
pub fn set(subject: Subject) -> Option<&'static RuleSet> {
    SETS.get((subject.generation() & 1) * MAX_SETS + subject.set())
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

/// Begins to fetch the bucket; what follows runs while the memory is at it.
#[inline(always)]
pub fn touch(bucket: u32) {
    if let Some(words) = words(bucket) {
        // SAFETY: the first word of a bucket. Nobody needs it, so nobody waits for it.
        unsafe { words.read_volatile() };
    }
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

/// This CPU's ticket of a level, at a place: any number; at the total level a set's.
#[inline(always)]
pub fn ticket(level: Level, place: u32) -> Option<*mut Ticket> {
    let at = match level {
        Level::Total => place & (MAX_SETS - 1),
        Level::Prefix => MAX_SETS + (place & (PREFIX_TICKETS - 1)),
        Level::Source => COARSE_PAGES * TICKETS_PER_PAGE + (place & constant(&TICKET_MASK)),
    };
    let page = TICKETS.get_ptr_mut(at / TICKETS_PER_PAGE)?;
    // SAFETY: the map's value is a page of so many tickets.
    Some(unsafe { page.cast::<Ticket>().add((at % TICKETS_PER_PAGE) as usize) })
}

#[inline(always)]
pub fn share() -> u32 {
    constant(&SHARE)
}

#[inline(always)]
pub fn notes() -> Option<&'static Notes> {
    // SAFETY: a map's value lives as long as the program, and all in it may change under a reference.
    NOTES.get_ptr(0).map(|notes| unsafe { &*notes })
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
