//! The kernel side as the daemon sees it: maps, program and links, and what is written to and read from
//! them. The only part that imports aya. Knows snapshots, which are plain map entries, and neither
//! policies nor authorities.

pub mod attach;
pub mod bypass;
pub mod clock;
mod counters;
pub mod error;
mod mapping;
mod maps;
mod meta;
mod netlink;
mod object;
mod pins;
mod registry;
mod sys;
pub mod table;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use aya::Ebpf;
use aya::maps::MapData;
use aya::programs::{ProgramError, Xdp};
use aya_log::EbpfLogger;
use limiter_common::clock::Tick;
use limiter_common::hash::Seed;
use limiter_common::layout::{Bypass, PROGRAM, PolicyEntry, RegistryEntry, VERSION, map};

pub use error::{AttachError, DetachError, MapError, OpenError};
pub use object::{Options, is_built, kernel_object};
pub use pins::Pins;

use crate::snapshot::Snapshot;
use crate::telemetry::counts::Counts;
use clock::Step;
use maps::Maps;
use meta::MetaPage;
use pins::Found;
use table::Table;

/// Open maps and a loaded program.
pub struct Datapath {
    maps: Maps,
    program: OwnedFd,
    verified: Option<u32>,
    /// The program's log, if it was loaded to write one.
    log: Option<EbpfLogger<&'static dyn log::Log>>,
    /// When the offset was moved last, on the monotonic clock.
    followed: u64,
}

/// Whether maps were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// They are new: no counts, no policy.
    Made,
    /// A predecessor's, with all it counted.
    Found,
}

impl Datapath {
    /// Opens the pinned maps, or makes and pins them; loads this binary's program onto them and pins it
    /// too. What is attached stays as it is: [`attach::attach`] puts the new program in its place.
    ///
    /// The size of a table that exists stays, whatever `options` say.
    pub fn open(pins: &Pins, options: Options) -> Result<(Self, Origin), OpenError> {
        if !is_built() {
            return Err(OpenError::NotBuilt);
        }
        pins.prepare()?;
        let (datapath, origin) = match usable(pins)? {
            Some(buckets) => (Self::reopen(pins, Options { buckets, ..options })?, Origin::Found),
            None => (Self::make(pins, options)?, Origin::Made),
        };
        attach::publish(pins, &datapath.program)
            .map_err(|cause| OpenError::file(pins.root(), cause))?;
        Ok((datapath, origin))
    }

    /// Maps and program for one process, pinned nowhere. For tests.
    pub fn private(options: Options) -> Result<Self, OpenError> {
        let mut ebpf = object::load(options, None)?;
        initialise(&mut ebpf)?;
        Self::take(ebpf, options)
    }

    fn reopen(pins: &Pins, options: Options) -> Result<Self, OpenError> {
        Self::take(object::load(options, Some(&pins.layout()))?, options)
    }

    fn make(pins: &Pins, options: Options) -> Result<Self, OpenError> {
        let unfinished = pins.begin()?;
        let made = object::load(options, Some(&unfinished)).and_then(|mut ebpf| {
            initialise(&mut ebpf)?;
            Self::take(ebpf, options)
        });
        match made {
            Ok(datapath) => pins.finish().map(|()| datapath),
            Err(error) => {
                let _ = pins.discard();
                pins.tidy();
                Err(error)
            }
        }
    }

    fn take(mut ebpf: Ebpf, options: Options) -> Result<Self, OpenError> {
        let (program, verified) = load(&mut ebpf)?;
        // Without its log, the program still does what it is for.
        let log = if options.trace { EbpfLogger::init(&mut ebpf).ok() } else { None };
        let maps = Maps::take(&mut ebpf)?;
        let mut datapath = Self { maps, program, verified, log, followed: 0 };
        datapath.follow_clock();
        Ok(datapath)
    }

    /// The program, for `BPF_PROG_TEST_RUN` and the like.
    #[must_use]
    pub fn program(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
    }

    /// Instructions that the kernel's verifier looked at (it gives up at 1,000,000); `None` where it
    /// doesn't tell (kernels before 5.16).
    #[must_use]
    pub fn verified_instructions(&self) -> Option<u32> {
        self.verified
    }

    /// Passes on what the program has logged since the last call (128 KiB at most, the rest is lost), if
    /// it was loaded to log.
    pub fn tell(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// Makes a policy the active one, whole: each packet is judged by the old or by the new one. Takes
    /// about 20 ms, most of it waiting for packets that are under way.
    pub fn install(&mut self, snapshot: &Snapshot) -> Result<(), MapError> {
        self.maps.install(snapshot)
    }

    /// Which rule each counter row and id belongs to; what the next snapshot must be compiled with.
    pub fn registry(&self) -> Result<Vec<RegistryEntry>, MapError> {
        self.maps.registry()
    }

    /// The first rule id that was never given.
    #[must_use]
    pub fn next_rule_id(&self) -> u32 {
        self.maps.meta.next_rule_id()
    }

    /// The active policy's entry; `None` before the first.
    pub fn policy(&self) -> Result<Option<PolicyEntry>, MapError> {
        self.maps.policy()
    }

    /// The bypass that holds now.
    pub fn bypass(&self) -> Result<Bypass, MapError> {
        self.maps.bypass()
    }

    /// Policy changes since the maps were made; 0 before the first.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.maps.meta.generation()
    }

    /// All counters.
    pub fn counts(&self) -> Result<Counts, MapError> {
        counters::read(&self.maps.counters, &self.maps.registry()?)
    }

    /// The table of keys.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.maps.table
    }

    /// Clears words that no window needs any more under this longest life, and returns how many. The clock
    /// may just have jumped: it first waits, about 10 ms, for packets that saw the old time.
    pub fn clear_dead(&self, span: u32) -> Result<u64, MapError> {
        self.maps.wait_for_packets()?;
        Ok(self.maps.table.clear_dead(self.now(), span))
    }

    /// Unix time as the program sees it, in nanoseconds.
    #[must_use]
    pub fn unix_now(&self) -> u64 {
        clock::monotonic().wrapping_add(self.maps.meta.wall_offset())
    }

    /// The same in ticks.
    #[must_use]
    pub fn now(&self) -> Tick {
        Tick::from_unix_nanos(self.unix_now())
    }

    /// Moves the program's clock towards the wall clock, by the rules of [`clock`].
    pub fn follow_clock(&mut self) -> Step {
        let (now, measured) = (clock::monotonic(), clock::measure());
        let current = match self.maps.meta.wall_offset() {
            0 => measured,
            offset => offset,
        };
        // Right after a start the time since the predecessor's last step is unknown: none.
        let since = if self.followed == 0 { 0 } else { now.saturating_sub(self.followed) };
        let step = clock::follow(current, measured, Duration::from_nanos(since));
        self.maps.meta.set_wall_offset(step.offset);
        self.followed = now;
        step
    }

    /// Says that the daemon is alive.
    pub fn beat(&self) {
        self.maps.meta.beat(self.unix_now());
    }

    /// Time since a daemon said that it is alive.
    #[must_use]
    pub fn heartbeat_age(&self) -> Duration {
        Duration::from_nanos(self.unix_now().saturating_sub(self.maps.meta.heartbeat()))
    }

    /// Sets the time that a program loaded with [`Options::test_clock`] sees, in Unix nanoseconds.
    pub fn set_test_clock(&mut self, unix_nanos: u64) -> Result<(), MapError> {
        self.maps.set_test_clock(unix_nanos)
    }
}

/// The pinned table's size, if the pinned maps can be used; `None` if there are none. Maps that can't be
/// used make way, unless interfaces are guarded by them.
fn usable(pins: &Pins) -> Result<Option<u32>, OpenError> {
    let reason = match pins.find() {
        Found::Nothing => return Ok(None),
        Found::Missing(maps) => format!("missing: {}", maps.join(", ")),
        Found::Whole => match inspect(pins)? {
            (VERSION, buckets) => return Ok(Some(buckets)),
            (other, _) => format!("layout {other} in a directory for {VERSION}"),
        },
    };
    let links = pins.linked();
    if !links.is_empty() {
        let links = links.join(", ");
        return Err(OpenError::Unusable { path: pins.layout(), reason, links });
    }
    tracing::warn!(
        "the pinned maps in {} are unusable ({reason}); making new ones",
        pins.layout().display()
    );
    pins.discard()?;
    Ok(None)
}

/// Layout and number of buckets of the pinned maps.
fn inspect(pins: &Pins) -> Result<(u32, u32), OpenError> {
    let meta = MetaPage::new(open_pin(&pins.map(map::META), map::META)?.fd())?;
    let table = open_pin(&pins.map(map::TABLE), map::TABLE)?;
    let info = table.info().map_err(|error| MapError::new(map::TABLE, error))?;
    Ok((meta.layout(), info.max_entries()))
}

fn open_pin(path: &Path, name: &'static str) -> Result<MapData, OpenError> {
    let fd = sys::get(path).map_err(|cause| OpenError::call(format_args!("map {name}"), &cause))?;
    Ok(MapData::from_fd(fd).map_err(|error| MapError::new(name, error))?)
}

/// Gives new maps their seeds and their clock.
fn initialise(ebpf: &mut Ebpf) -> Result<(), OpenError> {
    let meta = ebpf.map(map::META).ok_or_else(|| MapError::new(map::META, "not in the object"))?;
    let page = match meta {
        aya::maps::Map::Array(data) => MetaPage::new(data.fd())?,
        _ => return Err(MapError::new(map::META, "not an array").into()),
    };
    page.initialise(seed().map_err(|cause| OpenError::call("random numbers", &cause))?);
    page.set_wall_offset(clock::measure());
    Ok(())
}

/// Random bits from the kernel: who can guess them can aim at buckets.
fn seed() -> std::io::Result<Seed> {
    let mut halves = [[0; 8]; 2];
    for half in &mut halves {
        rustix::rand::getrandom(half.as_mut_slice(), rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(Seed(halves.map(u64::from_ne_bytes)))
}

/// Brings the program into the kernel.
fn load(ebpf: &mut Ebpf) -> Result<(OwnedFd, Option<u32>), OpenError> {
    let missing = || OpenError::Kernel {
        what: "the program".to_owned(),
        cause: "not in the object".to_owned(),
    };
    let program: &mut Xdp = ebpf
        .program_mut(PROGRAM)
        .ok_or_else(missing)?
        .try_into()
        .map_err(|error: ProgramError| not_loaded(&error))?;
    program.load().map_err(|error| not_loaded(&error))?;
    let info = program.info().map_err(|error| not_loaded(&error))?;
    let fd = program.fd().map_err(|error| not_loaded(&error))?.as_fd().try_clone_to_owned();
    let fd = fd.map_err(|cause| OpenError::call("the program", &cause))?;
    Ok((fd, info.verified_instruction_count()))
}

/// The verifier's last words say why; the thousands of lines before them don't.
fn not_loaded(error: &ProgramError) -> OpenError {
    const LINES: usize = 6;
    let ProgramError::LoadError { io_error, verifier_log } = error else {
        return OpenError::Kernel { what: "the program".to_owned(), cause: error.to_string() };
    };
    let log = verifier_log.to_string();
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
    match OpenError::call("the program", io_error) {
        OpenError::Kernel { what, cause } => {
            OpenError::Kernel { what, cause: format!("{cause}\n  {last}") }
        }
        other => other,
    }
}
