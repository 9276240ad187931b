//! The calls of bpf(2) that the loader doesn't offer in the form needed here: running a program many
//! times over, and putting a program into another's table. All `unsafe` of the bench is in this file.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `struct { … } test` of `union bpf_attr`, as far as kernels since 5.18 read it.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    answer: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    padding: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_TEST_RUN: libc::c_long = 10;

/// Runs a program on this frame `repeat` times, on the calling thread's CPU. The program sees its own
/// changes of the frame again. The answer to the last frame.
pub(crate) fn test_run(program: impl AsFd, frame: &[u8], repeat: u32) -> io::Result<u32> {
    let mut attr = TestRun {
        program: number(&program),
        size_in: u32::try_from(frame.len()).map_err(io::Error::other)?,
        data_in: frame.as_ptr().expose_provenance() as u64,
        repeat,
        ..TestRun::default()
    };
    bpf(PROG_TEST_RUN, &mut attr)?;
    Ok(attr.answer)
}

/// The beginning of `struct xdp_md`.
#[repr(C)]
#[derive(Default)]
struct Context {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress: u32,
    queue: u32,
    egress: u32,
}

/// `BPF_F_TEST_XDP_LIVE_FRAMES`: frames are real and go where the program sends them.
const LIVE_FRAMES: u32 = 1 << 1;
/// Frames between two deliveries.
const BATCH: u32 = 64;

/// Runs a program on this many copies of a frame that come in, as far as it can tell, by this interface
/// of the calling thread's network namespace; what it redirects is sent.
pub(crate) fn send_live(
    program: impl AsFd,
    frame: &[u8],
    interface: u32,
    frames: u32,
) -> io::Result<()> {
    let size = u32::try_from(frame.len()).map_err(io::Error::other)?;
    let context = Context { data_end: size, ingress: interface, ..Context::default() };
    let mut attr = TestRun {
        program: number(&program),
        size_in: size,
        data_in: frame.as_ptr().expose_provenance() as u64,
        repeat: frames,
        context_size_in: 24,
        context_in: (&raw const context).expose_provenance() as u64,
        flags: LIVE_FRAMES,
        batch: BATCH,
        ..TestRun::default()
    };
    bpf(PROG_TEST_RUN, &mut attr)
}

/// Puts a program into the first place of a table of programs.
pub(crate) fn set_program(table: impl AsFd, program: impl AsFd) -> io::Result<()> {
    let (key, value) = (0_u32, number(&program));
    let mut attr = MapUpdate {
        map: number(&table),
        padding: 0,
        key: (&raw const key).expose_provenance() as u64,
        value: (&raw const value).expose_provenance() as u64,
        flags: 0,
    };
    bpf(MAP_UPDATE_ELEM, &mut attr)
}

/// A descriptor as bpf(2) wants it; open ones are never negative.
fn number(fd: &impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd().unsigned_abs()
}

fn bpf<A>(command: libc::c_long, attr: &mut A) -> io::Result<()> {
    // SAFETY: `attr` is one of the structures above, which begin like the kernel's `bpf_attr` for the
    // command; the kernel takes the missing rest as zeros. Every pointer in it is to a live value of the
    // caller of at least the size the kernel uses.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attr, size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
