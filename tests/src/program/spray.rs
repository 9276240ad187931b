//! A flood of forged sources at full speed: a few BPF instructions in front of the program give each frame
//! a source that no frame before had, then go on to it by a tail call. So that millions of sources cost
//! seconds, not minutes of system calls.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd};

use super::ready::Ready;
use super::run;
use crate::bpf::{owned, set_program};

const MAP_CREATE: libc::c_int = 0;
const PROGRAM_LOAD: libc::c_int = 5;
const TYPE_ARRAY: u32 = 2;
const TYPE_PROGRAM_ARRAY: u32 = 3;
const TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// A program may only call one that is like it in this.
const XDP_HAS_FRAGS: u32 = 1 << 5;
const TAIL_CALL: i32 = 12;
/// Says in a 64-bit load that the number is a map's descriptor; that it is, and means its first value.
const MAP: u8 = 1;
const MAP_VALUE: u8 = 2;
/// Bytes from the frame's beginning to the IPv4 source, and to its end.
const SOURCE: i16 = 26;
const SOURCE_END: i32 = 30;
/// Any odd number makes the n-th source another one for each n below 2^32; this one scatters them.
const SCATTER: u32 = 0x9e37_79b1;

/// The generator, and what it goes on to.
pub struct Spray {
    program: OwnedFd,
    _ready: Ready,
    _count: OwnedFd,
    _next: OwnedFd,
}

impl Spray {
    /// In front of an XDP program that takes frames in several buffers.
    pub(super) fn before(program: BorrowedFd<'_>) -> io::Result<Self> {
        let count = map(TYPE_ARRAY, 8)?;
        let next = map(TYPE_PROGRAM_ARRAY, 4)?;
        set_program(&next, program)?;
        let program = load(&instructions(&count, &next))?;
        let _ready = Ready::keep(program.as_fd())?;
        Ok(Self { program, _ready, _count: count, _next: next })
    }

    /// Runs as many frames like this IPv4 frame, each from another source: together with all earlier
    /// runs none comes twice below 2^32. Any number of threads may do so at once.
    ///
    /// # Panics
    /// If the kernel refuses the frame (below 14 bytes).
    pub fn run(&self, frame: &[u8], times: u32) {
        let last = run::repeated(self.program.as_fd(), frame, times);
        assert!(!matches!(last, run::Action::Other(_)), "no IPv4 frame, or no tail call: {last:?}");
    }
}

/// One instruction, as `struct bpf_insn` has it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    /// Destination in the lower half, source in the upper.
    registers: u8,
    offset: i16,
    number: i32,
}

const fn op(code: u8, to: u8, from: u8, offset: i16, number: i32) -> Instruction {
    Instruction { code, registers: to | from << 4, offset, number }
}

/// In the words of the kernel's own disassembler.
fn instructions(count: &OwnedFd, next: &OwnedFd) -> Vec<Instruction> {
    vec![
        op(0xbf, 6, 1, 0, 0),          // r6 = r1
        op(0x61, 2, 6, 0, 0),          // r2 = *(u32 *)(r6 + 0): the frame's beginning
        op(0x61, 3, 6, 4, 0),          // r3 = *(u32 *)(r6 + 4): its end
        op(0xbf, 4, 2, 0, 0),          // r4 = r2
        op(0x07, 4, 0, 0, SOURCE_END), // r4 += 30
        op(0x2d, 4, 3, 11, 0),         // if r4 > r3 goto out
        op(0x18, 7, MAP_VALUE, 0, count.as_raw_fd()),
        op(0, 0, 0, 0, 0),                        // r7 = the count, in two halves
        op(0xb7, 5, 0, 0, 1),                     // r5 = 1
        op(0xdb, 7, 5, 0, 0x01),                  // r5 = atomic_fetch_add(r7, r5)
        op(0x24, 5, 0, 0, SCATTER.cast_signed()), // w5 *= SCATTER
        op(0x63, 2, 5, SOURCE, 0),                // *(u32 *)(r2 + 26) = w5
        op(0xbf, 1, 6, 0, 0),                     // r1 = r6
        op(0x18, 2, MAP, 0, next.as_raw_fd()),
        op(0, 0, 0, 0, 0),            // r2 = the program, in two halves
        op(0xb7, 3, 0, 0, 0),         // r3 = 0
        op(0x85, 0, 0, 0, TAIL_CALL), // call; comes back only if it can't
        op(0xb7, 0, 0, 0, 0),         // out: r0 = XDP_ABORTED
        op(0x95, 0, 0, 0, 0),         // exit
    ]
}

#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

fn map(kind: u32, value_size: u32) -> io::Result<OwnedFd> {
    owned(MAP_CREATE, &mut MapAttributes { kind, key_size: 4, value_size, entries: 1 })
}

/// As far as kernels since 4.17 read it; `name` stays empty.
#[repr(C)]
#[derive(Default)]
struct LoadAttributes {
    kind: u32,
    count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    owned(
        PROGRAM_LOAD,
        &mut LoadAttributes {
            kind: TYPE_XDP,
            count: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
            instructions: instructions.as_ptr().expose_provenance() as u64,
            license: c"MIT/Apache-2.0".as_ptr().expose_provenance() as u64,
            flags: XDP_HAS_FRAGS,
            attach_type: ATTACH_XDP,
            ..LoadAttributes::default()
        },
    )
}
