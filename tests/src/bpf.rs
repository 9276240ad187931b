//! bpf(2), for what tests and bench ask of the kernel directly: the calls that the loader doesn't offer, or
//! not in the form needed.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

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

#[repr(C)]
struct Info {
    fd: u32,
    length: u32,
    info: u64,
}

/// The beginning of `struct bpf_prog_info`.
#[repr(C)]
#[derive(Default)]
struct ProgramInfo {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    native_length: u32,
    length: u32,
    native: u64,
    instructions: u64,
}

/// Bytes of an instruction.
const INSTRUCTION: usize = 8;

/// The program's instructions as the verifier left them.
pub fn instructions(program: impl AsFd) -> io::Result<Vec<[u8; INSTRUCTION]>> {
    let mut buffer: Vec<[u8; INSTRUCTION]> = Vec::new();
    // First it tells the length, then it fills the buffer.
    for _ in 0..2 {
        let mut info = ProgramInfo {
            length: u32::try_from(buffer.len() * INSTRUCTION).map_err(io::Error::other)?,
            instructions: buffer.as_mut_ptr().expose_provenance() as u64,
            ..ProgramInfo::default()
        };
        let mut attr = Info {
            fd: number(&program),
            length: size_of::<ProgramInfo>() as u32,
            info: (&raw mut info).expose_provenance() as u64,
        };
        bpf(OBJ_GET_INFO_BY_FD, &mut attr)?;
        // SAFETY: `info` is a live local of plain integers; the kernel wrote to it behind the compiler's back.
        let length = unsafe { (&raw const info.length).read_volatile() };
        buffer.resize(length as usize / INSTRUCTION, [0; INSTRUCTION]);
    }
    // The kernel wrote to the buffer behind the compiler's back.
    Ok(std::hint::black_box(buffer))
}

const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_TEST_RUN: libc::c_int = 10;

/// Runs a program on this frame `repeat` times, on the calling thread's CPU. The program sees its own
/// changes of the frame again. The answer to the last frame.
pub fn test_run(program: impl AsFd, frame: &[u8], repeat: u32) -> io::Result<u32> {
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
pub fn send_live(program: impl AsFd, frame: &[u8], interface: u32, frames: u32) -> io::Result<()> {
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
    bpf(PROG_TEST_RUN, &mut attr).map(drop)
}

/// Puts a program into the first place of a table of programs.
pub fn set_program(table: impl AsFd, program: impl AsFd) -> io::Result<()> {
    let (key, value) = (0_u32, number(&program));
    let mut attr = MapUpdate {
        map: number(&table),
        padding: 0,
        key: (&raw const key).expose_provenance() as u64,
        value: (&raw const value).expose_provenance() as u64,
        flags: 0,
    };
    bpf(MAP_UPDATE_ELEM, &mut attr).map(drop)
}

/// A descriptor as bpf(2) wants it; open ones are never negative.
fn number(fd: &impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd().unsigned_abs()
}

/// One call; `attributes` begin as the kernel's `bpf_attr` does for this command.
pub(crate) fn bpf<A>(command: libc::c_int, attributes: &mut A) -> io::Result<libc::c_long> {
    // SAFETY: the attributes outlive the call and are of the size told; the kernel takes the missing rest
    // as zeros. Every pointer in them is to something that the caller keeps alive, of at least the size
    // the kernel uses; it writes to the attributes alone.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same for a command that answers with a new descriptor.
pub(crate) fn owned<A>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    let number = i32::try_from(bpf(command, attributes)?).map_err(io::Error::other)?;
    // SAFETY: a new descriptor that nobody else knows of.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
