//! The kernel program as a file, without root: the program, maps, constants and licence that user space
//! counts on, and no others. Read by the bytes of the ELF file, not by the loader that will use it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;

use limiter_common::counters::{Count, ROWS};
use limiter_common::judge::Notes;
use limiter_common::layout::{
    AddressEntry, BUCKET_MASK, COARSE_PAGES, Classifier, DEFAULT_BUCKETS, DEFAULT_TICKETS,
    GENERATIONS, MAX_RULES, MAX_SETS, Meta, PROGRAM, PolicyEntry, RULE_ROWS, RegistryEntry,
    RuleEntry, RuleSet, SLOTS, TICKETS_PER_PAGE, USE_TEST_CLOCK, map,
};
use limiter_common::ticket::Ticket;
use limiter_tests::require;
use limiter_userspace::datapath::{is_built, kernel_object};
use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

/// `BPF_MAP_TYPE_ARRAY`, `…_PERCPU_ARRAY`, `…_RINGBUF`.
const ARRAY: u32 = 2;
const PER_CPU: u32 = 6;
const RING: u32 = 27;
/// `BPF_F_MMAPABLE`: user space writes single fields.
const MMAPABLE: u32 = 1 << 10;
/// Where maps lie as `struct bpf_map_def` of libbpf, and the length of one.
const MAPS: &str = "maps";
const DEFINITION: usize = 28;

type Elf = ElfFile64<'static>;

fn built() -> Result<(), String> {
    if is_built() {
        return Ok(());
    }
    Err("the kernel program isn't in this binary: run `cargo xtask build` first".to_owned())
}

fn elf() -> Elf {
    Elf::parse(kernel_object()).unwrap()
}

fn section(elf: &Elf, name: &str) -> &'static [u8] {
    elf.section_by_name(name).unwrap().data().unwrap()
}

/// What lies in a section by name: the place and length of each.
fn symbols(elf: &Elf, section: &str, kind: SymbolKind) -> BTreeMap<String, (usize, usize)> {
    let index = elf.section_by_name(section).unwrap().index();
    // Those with a name for others; the compiler has its own for texts and the like.
    let global = elf.symbols().filter(|symbol| symbol.is_global() && symbol.kind() == kind);
    let inside = global.filter(|symbol| symbol.section_index() == Some(index));
    inside
        .map(|symbol| {
            let place = (symbol.address() as usize, symbol.size() as usize);
            (symbol.name().unwrap().to_owned(), place)
        })
        .collect()
}

/// Type, key and value size in bytes, entries, flags.
type Shape = [u32; 5];

fn maps(elf: &Elf) -> BTreeMap<String, Shape> {
    let bytes = section(elf, MAPS);
    let symbols = symbols(elf, MAPS, SymbolKind::Data);
    assert_eq!(symbols.len() * DEFINITION, bytes.len(), "a map without a name");
    let shape = |(name, (place, length)): (String, _)| {
        assert_eq!(length, DEFINITION, "{name}");
        let mut words = bytes[place..place + length]
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        (name, std::array::from_fn(|_| words.next().unwrap()))
    };
    symbols.into_iter().map(shape).collect()
}

fn array<T>(entries: u32, flags: u32) -> Shape {
    [ARRAY, 4, size_of::<T>() as u32, entries, flags]
}

#[test]
fn its_maps_are_those_of_the_layout_in_kind_and_size() {
    require!(built());
    type Bucket<T> = [T; SLOTS as usize];
    type Page = [Ticket; TICKETS_PER_PAGE as usize];
    const PAGES: u32 = COARSE_PAGES + DEFAULT_TICKETS / TICKETS_PER_PAGE;
    let expected: [(&str, Shape); 14] = [
        (map::META, array::<Meta>(1, MMAPABLE)),
        (map::POLICY, array::<PolicyEntry>(GENERATIONS, 0)),
        (map::CLASSIFIER, array::<Classifier>(GENERATIONS, 0)),
        (map::SETS, array::<RuleSet>(GENERATIONS * MAX_SETS, 0)),
        (map::RULES, array::<RuleEntry>(GENERATIONS * MAX_RULES, 0)),
        (map::TABLE, array::<Bucket<u64>>(DEFAULT_BUCKETS, MMAPABLE)),
        (map::ADDRESSES, array::<Bucket<AddressEntry>>(DEFAULT_BUCKETS, MMAPABLE)),
        (map::TICKETS, [PER_CPU, 4, size_of::<Page>() as u32, PAGES, 0]),
        (map::COUNTERS, [PER_CPU, 4, size_of::<Count>() as u32, ROWS, 0]),
        (map::REGISTRY, array::<RegistryEntry>(RULE_ROWS, 0)),
        (map::BYPASS, array::<u32>(1, 0)),
        (map::TEST_CLOCK, array::<u64>(1, 0)),
        // Of the program alone: what it keeps within one packet, and aya-log's lines.
        ("NOTES", [PER_CPU, 4, size_of::<Notes>() as u32, 1, 0]),
        ("AYA_LOGS", [RING, 0, 0, 1 << 17, 0]),
    ];
    assert_eq!(maps(&elf()), expected.map(|(name, shape)| (name.to_owned(), shape)).into());
    let pinned = map::PINNED.into_iter().filter(|name| !maps(&elf()).contains_key(*name));
    assert_eq!(pinned.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn it_has_one_program_and_takes_frames_of_any_size() {
    require!(built());
    // The section's name tells the loader the kind; `.frags` takes frames in several buffers.
    let programs = symbols(&elf(), "xdp.frags", SymbolKind::Text);
    assert_eq!(programs.into_keys().collect::<Vec<_>>(), [PROGRAM]);
    let elf = elf();
    let sections = elf.sections().filter(|section| section.kind() == object::SectionKind::Text);
    let names: Vec<&str> = sections.map(|section| section.name().unwrap()).collect();
    assert_eq!(names, [".text", "xdp.frags"], "no other program");
}

#[test]
fn its_constants_are_there_for_the_loader_to_replace() {
    require!(built());
    let elf = elf();
    let (bytes, constants) = (section(&elf, ".rodata"), symbols(&elf, ".rodata", SymbolKind::Data));
    let value = |name: &str| {
        let (place, length) = constants[name];
        u32::from_le_bytes(bytes[place..place + length].try_into().unwrap())
    };
    assert_eq!((value(BUCKET_MASK), value(USE_TEST_CLOCK)), (DEFAULT_BUCKETS - 1, 0));
    let names: Vec<&str> = constants.keys().map(String::as_str).collect();
    assert_eq!(names, ["AYA_LOG_LEVEL", BUCKET_MASK, USE_TEST_CLOCK], "and aya-log's own");
}

#[test]
fn its_licence_lets_it_use_the_kernels_functions() {
    require!(built());
    assert_eq!(section(&elf(), "license"), b"Dual MIT/GPL\0");
}
