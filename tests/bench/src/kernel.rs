//! The bench's own kernel programs: loaded from the object that `cargo xtask bench` built, onto maps of
//! the product where they need its policy.

use std::env;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use aya::programs::{Xdp, XdpMode};
use aya::{Ebpf, EbpfLoader};
use limiter_common::layout::map;
use limiter_tests::bpf;

/// Which sources the wrapper gives packets.
#[derive(Clone, Copy)]
pub(crate) struct Sources {
    base: u32,
    mask: u32,
    random: bool,
}

impl Sources {
    /// Random ones among the first 2^`bits` from 10.0.0.0 on.
    pub(crate) const fn random(bits: u32) -> Self {
        Self { base: 10 << 24, mask: (1 << bits) - 1, random: true }
    }

    /// The same set, each source once before any comes again.
    pub(crate) const fn each_once(self) -> Self {
        Self { random: false, ..self }
    }

    /// Of all 2^32, each once.
    pub(crate) const ALL_ONCE: Self = Self { base: 0, mask: u32::MAX, random: false };

    /// As many from this address on.
    pub(crate) const fn from(self, base: Ipv4Addr) -> Self {
        Self { base: base.to_bits(), ..self }
    }

    /// Whether none comes a second time.
    pub(crate) const fn are_new(self) -> bool {
        !self.random
    }

    /// How many there are.
    pub(crate) const fn count(self) -> u64 {
        self.mask as u64 + 1
    }

    /// A /24 further up.
    pub(crate) const fn in_prefix(self, number: u32) -> Self {
        Self { base: self.base | number << 8, ..self }
    }
}

/// Sizes and limits of the yardsticks.
#[derive(Clone, Copy)]
pub(crate) struct Yard {
    /// Of which kind: the name of the program.
    pub(crate) program: &'static str,
    /// Entries of each level's map.
    pub(crate) entries: u32,
}

/// Packets per window that nobody reaches, and the longest window, in ticks.
const YARD_LIMIT: u32 = u32::MAX;
const YARD_WINDOW: u32 = 36_000;

/// Read once, so that a build in the meantime changes nothing.
fn object() -> Result<&'static [u8]> {
    static OBJECT: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(object) = OBJECT.get() {
        return Ok(object);
    }
    let path = env::var_os("LIMITER_BENCH_OBJECT")
        .map_or_else(|| PathBuf::from("target/bench.o"), PathBuf::from);
    let object = std::fs::read(&path).with_context(|| {
        format!(
            "no kernel programs at {}: run `cargo xtask bench`, which builds them",
            path.display()
        )
    })?;
    Ok(OBJECT.get_or_init(|| object))
}

fn pinned<'a>(loader: &mut EbpfLoader<'a>, pins: Option<&Path>) {
    for name in pins.iter().flat_map(|_| map::PINNED) {
        loader.map_pin_path(name, pins.unwrap_or(Path::new("")).join(name));
    }
}

fn program(ebpf: &mut Ebpf, name: &str) -> Result<OwnedFd> {
    let program = ebpf.program_mut(name).with_context(|| format!("no program `{name}`"))?;
    let program: &mut Xdp = program.try_into()?;
    program.load().with_context(|| format!("the kernel refuses `{name}`"))?;
    Ok(program.fd()?.as_fd().try_clone_to_owned()?)
}

/// A program that drops everything, on an interface of this thread's network namespace while what is
/// returned lives.
pub(crate) fn drop_everything(interface: &str) -> Result<Ebpf> {
    let mut ebpf = Ebpf::load(object()?)?;
    program(&mut ebpf, "bare")?;
    let bare: &mut Xdp = ebpf.program_mut("bare").context("no program `bare`")?.try_into()?;
    bare.attach(interface, XdpMode::Driver)?;
    Ok(ebpf)
}

/// One of the programs that need nothing but perhaps the product's maps, pinned there.
pub(crate) fn plain(name: &str, pins: Option<&Path>) -> Result<OwnedFd> {
    let mut loader = EbpfLoader::new();
    pinned(&mut loader, pins);
    program(&mut loader.load(object()?)?, name)
}

/// The product's rules and levels over the kernel's own maps.
pub(crate) fn yardstick(yard: Yard, pins: &Path) -> Result<OwnedFd> {
    let mut loader = EbpfLoader::new();
    pinned(&mut loader, Some(pins));
    let maps = match yard.program {
        "lru" => ["SHARED_SOURCES", "SHARED_PREFIXES"],
        _ => ["PERCPU_SOURCES", "PERCPU_PREFIXES"],
    };
    for map in maps {
        loader.map_max_entries(map, yard.entries);
    }
    for limit in ["YARD_TOTAL", "YARD_PREFIX", "YARD_SOURCE"] {
        loader.override_global(limit, &YARD_LIMIT, true);
    }
    loader.override_global("YARD_WINDOW", &YARD_WINDOW, true);
    program(&mut loader.load(object()?)?, yard.program)
}

/// The generator, which sends out of an interface.
pub(crate) fn generator(sources: Sources, interface: u32) -> Result<OwnedFd> {
    let random = u32::from(sources.random);
    let mut loader = EbpfLoader::new();
    loader
        .override_global("SOURCE_BASE", &sources.base, true)
        .override_global("SOURCE_MASK", &sources.mask, true)
        .override_global("SOURCE_RANDOM", &random, true)
        .override_global("GENERATE_TO", &interface, true);
    program(&mut loader.load(object()?)?, "generate")
}

/// The wrapper: gives each packet another source, then runs `target`. With it comes its table, which
/// empties itself when nobody holds it any more.
pub(crate) fn wrapper(sources: Sources, target: impl AsFd) -> Result<(OwnedFd, OwnedFd)> {
    let random = u32::from(sources.random);
    let mut loader = EbpfLoader::new();
    loader
        .override_global("SOURCE_BASE", &sources.base, true)
        .override_global("SOURCE_MASK", &sources.mask, true)
        .override_global("SOURCE_RANDOM", &random, true);
    let mut ebpf = loader.load(object()?)?;
    let wrapper = program(&mut ebpf, "sources")?;
    let table = ebpf.take_map("TARGET").context("no map `TARGET`")?;
    let aya::maps::Map::ProgramArray(table) = table else {
        anyhow::bail!("`TARGET` holds no programs");
    };
    bpf::set_program(table.fd(), target).context("can't chain the program under test")?;
    Ok((wrapper, table.fd().as_fd().try_clone_to_owned()?))
}
