//! All maps and load-time constants on one screen. Types: `limiter_common::layout`.
//!
//! | map | key | writer | reader | when full |
//! |---|---|---|---|---|
//! | META | – | daemon | program | – |
//! | POLICY, CLASSIFIER, SETS, RULES | generation, place | daemon, idle half only | program | refused by the compiler |
//! | TABLE | bucket | program | program, daemon | the coldest key of a bucket goes; else `crowded` |
//! | ADDRESSES | bucket | program, once a key is worth it | daemon | as TABLE |
//! | TICKETS | hash of key and set, per CPU | program | program | who comes last has it |
//! | COUNTERS | row, per CPU | program | daemon | – |
//! | REGISTRY | counter row | daemon | daemon | the row retired longest is used again |
//! | BYPASS | – | command line | program | – |
//! | NOTES | –, per CPU | program | program, within one packet | – |
//! | TEST_CLOCK | – | tests | program, if loaded for tests | – |

use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, PerCpuArray};
use limiter_common::border::{Drawn, Subject};
use limiter_common::bucket::Room;
use limiter_common::counters::{Count, ROWS, RuleCount};
use limiter_common::judge::{Maps, Notes};
use limiter_common::key::Level;
use limiter_common::layout::{
    AddressEntry, Bypass, COARSE_PAGES, Classifier, DEFAULT_BUCKETS, DEFAULT_TICKETS, GENERATIONS,
    MAX_RULES, MAX_SETS, Meta, PolicyEntry, RULE_ROWS, RegistryEntry, RuleEntry, RuleSet, SLOTS,
    TICKETS_PER_PAGE,
};
use limiter_common::take::Step;
use limiter_common::ticket::Ticket;
use limiter_common::want::Want;

use crate::table::TableBucket;
use crate::{border, stats};

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
fn words(bucket: u32) -> Option<*mut u64> {
    Some(TABLE.get_ptr_mut(bucket)?.cast())
}

/// The maps, for [`limiter_common::judge`].
#[derive(Clone, Copy)]
pub struct Kernel;

impl Maps for Kernel {
    type Bucket = TableBucket;

    #[inline(always)]
    fn meta(self) -> Option<&'static Meta> {
        META.get(0)
    }

    #[inline(always)]
    fn policy(self, generation: u32) -> Option<&'static PolicyEntry> {
        POLICY.get(generation & 1)
    }

    #[inline(always)]
    fn set(self, subject: Subject) -> Option<&'static RuleSet> {
        SETS.get((subject.generation() & 1) * MAX_SETS + subject.set())
    }

    #[inline(always)]
    fn rule(self, generation: u32, place: u32) -> Option<&'static RuleEntry> {
        RULES.get((generation & 1) * MAX_RULES + (place & (MAX_RULES - 1)))
    }

    #[inline(always)]
    fn bucket_mask(self) -> u32 {
        constant(&BUCKET_MASK)
    }

    #[inline(always)]
    fn touch(self, bucket: u32) {
        if let Some(words) = words(bucket) {
            // SAFETY: the first word of a bucket. Nobody needs it, so nobody waits for it.
            unsafe { words.read_volatile() };
        }
    }

    #[inline(always)]
    fn set_address(self, bucket: u32, slot: u32, entry: AddressEntry) {
        let Some(addresses) = ADDRESSES.get_ptr_mut(bucket) else {
            return;
        };
        let slot = (slot & (SLOTS - 1)) as usize;
        // SAFETY: the map's value is eight entries and `slot` is below eight. Another CPU may write the
        // same entry: readers believe one only if it hashes back to the word beside it.
        unsafe { addresses.cast::<AddressEntry>().add(slot).write(entry) }
    }

    #[inline(always)]
    fn share(self) -> u32 {
        constant(&SHARE)
    }

    #[inline(always)]
    fn notes(self) -> Option<&'static Notes> {
        // SAFETY: a map's value lives as long as the program, and all in it may change under a reference.
        NOTES.get_ptr(0).map(|notes| unsafe { &*notes })
    }

    #[inline(always)]
    fn ticket(self, number: u32) -> Option<&'static mut Ticket> {
        let page = TICKETS.get_ptr_mut(number / TICKETS_PER_PAGE)?;
        // SAFETY: the map's value is a page of so many tickets, this CPU's own, and nothing else on this
        // CPU runs meanwhile.
        Some(unsafe { &mut *page.cast::<Ticket>().add((number % TICKETS_PER_PAGE) as usize) })
    }

    #[inline(always)]
    fn ticket_mask(self) -> u32 {
        constant(&TICKET_MASK)
    }

    #[inline(always)]
    fn bucket(self, number: u32) -> Option<TableBucket> {
        Some(TableBucket { words: words(number)? })
    }

    #[inline(always)]
    fn count(self, row: u32, what: RuleCount, length: u32) {
        stats::rule(row, what, length);
    }

    #[inline(always)]
    fn look(self, name: u32, want: Want) -> Room {
        border::look(name, want)
    }

    #[inline(always)]
    fn draw_level(self, level: Level, want: Want) -> Drawn {
        border::draw_level(level, want)
    }

    #[inline(always)]
    fn draw(self, name: u32, want: Want) -> Step {
        border::draw(name, want)
    }

    #[inline(always)]
    fn find(self, name: u32) {
        border::pool_find(name);
    }

    #[inline(always)]
    fn give_back(self, drawn: Drawn, name: u32, want: Want) {
        border::give_back(drawn, name, want);
    }
}

#[inline(always)]
pub fn classifier(generation: u32) -> Option<&'static Classifier> {
    CLASSIFIER.get(generation & 1)
}

/// This CPU's row of counters.
#[inline(always)]
pub fn counter(row: u32) -> Option<*mut Count> {
    COUNTERS.get_ptr_mut(row)
}

/// The operator's word: a [`Bypass`] as a number.
#[inline(always)]
pub fn bypass() -> u32 {
    BYPASS.get(0).copied().unwrap_or(Bypass::Off as u32)
}

/// The test clock in Unix nanoseconds, if the program was loaded for tests.
#[inline(always)]
pub fn test_clock() -> Option<u64> {
    if constant(&USE_TEST_CLOCK) == 0 {
        return None;
    }
    TEST_CLOCK.get(0).copied()
}
