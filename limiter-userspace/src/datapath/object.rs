//! The kernel program as a file, in this binary. Loading it makes maps, or takes those that are pinned.

use std::path::Path;

use aya::{Ebpf, EbpfError, EbpfLoader};
use aya_log::{LEVEL, Level};
use limiter_common::layout::{
    BUCKET_MASK, COARSE_PAGES, DEFAULT_BUCKETS, DEFAULT_TICKETS, SHARE, TICKET_MASK,
    TICKETS_PER_PAGE, USE_TEST_CLOCK, map,
};

use super::error::OpenError;

/// Empty if it wasn't built; see `build.rs`.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/limiter.o"));

/// What is settled when the program is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Buckets of the table, a power of two; see [`crate::datapath::Datapath::open`] for maps that exist.
    pub buckets: u32,
    /// Tickets of each CPU, a power of two, at least [`TICKETS_PER_PAGE`].
    pub tickets: u32,
    /// Take the time from the map `TEST_CLOCK`, for tests.
    pub test_clock: bool,
    /// Have the program write a log line for each packet it refuses; see [`super::Datapath::tell`].
    pub trace: bool,
}

impl Default for Options {
    fn default() -> Self {
        let (buckets, tickets) = (DEFAULT_BUCKETS, DEFAULT_TICKETS);
        Self { buckets, tickets, test_clock: false, trace: false }
    }
}

/// What [`LEVEL`] means to the program: nothing at all, or down to `debug`.
const SILENT: u8 = 0;
const DEBUG: u8 = Level::Debug as u8;

/// The kernel program as an ELF file; empty if it wasn't built. For tests of what it is made of.
#[must_use]
pub fn kernel_object() -> &'static [u8] {
    OBJECT
}

/// Whether the kernel program is in this binary.
#[must_use]
pub fn is_built() -> bool {
    !OBJECT.is_empty()
}

/// Reads the object, makes its maps or opens those pinned in `pins`, and relocates the program to them.
/// The program isn't in the kernel yet.
pub(super) fn load(options: Options, pins: Option<&Path>) -> Result<Ebpf, OpenError> {
    if !is_built() {
        return Err(OpenError::NotBuilt);
    }
    let tickets = options.tickets.max(TICKETS_PER_PAGE);
    let (ticket_mask, share) = (tickets - 1, share());
    let (mask, test_clock) = (options.buckets.saturating_sub(1), u32::from(options.test_clock));
    let mut loader = EbpfLoader::new();
    loader
        .map_max_entries(map::TABLE, options.buckets)
        .map_max_entries(map::ADDRESSES, options.buckets)
        .override_global(BUCKET_MASK, &mask, true)
        .map_max_entries(map::TICKETS, COARSE_PAGES + tickets / TICKETS_PER_PAGE)
        .override_global(TICKET_MASK, &ticket_mask, true)
        .override_global(SHARE, &share, true)
        .override_global(USE_TEST_CLOCK, &test_clock, true)
        .override_global(LEVEL, if options.trace { &DEBUG } else { &SILENT }, true);
    for name in pins.iter().flat_map(|_| map::PINNED) {
        loader.map_pin_path(name, pins.unwrap_or(Path::new("")).join(name));
    }
    loader.load(OBJECT).map_err(|error| refused("the maps", &error))
}

/// 8 parts for each CPU that may come online, as a power of two.
fn share() -> u32 {
    let cpus = u32::try_from(aya::util::nr_cpus().unwrap_or(1)).unwrap_or(u32::MAX);
    cpus.max(1).next_power_of_two().ilog2() + 3
}

/// Finds the reason under aya's layers of errors.
fn refused(what: &str, error: &EbpfError) -> OpenError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match cause.downcast_ref::<std::io::Error>() {
        Some(cause) => OpenError::call(what, cause),
        None => OpenError::Kernel { what: what.to_owned(), cause: error.to_string() },
    }
}
