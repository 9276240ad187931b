//! The calls of bpf(2) that aya doesn't offer, or offers with a fallback we must not take: links are made
//! here and not through aya, which turns to netlink in silence when the kernel says EINVAL, and what
//! netlink attached can be neither pinned nor replaced without a gap.
//!
//! All `unsafe` around bpf(2) is in this file. It knows nothing of limiter's maps.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const OBJ_PIN: libc::c_long = 6;
const OBJ_GET: libc::c_long = 7;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const LINK_CREATE: libc::c_long = 28;
const LINK_UPDATE: libc::c_long = 29;
const LINK_DETACH: libc::c_long = 34;

const TYPE_ARRAY: u32 = 2;
const TYPE_ARRAY_OF_MAPS: u32 = 12;
const ATTACH_XDP: u32 = 37;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

#[repr(C)]
struct ObjectAttr {
    pathname: u64,
    fd: u32,
    file_flags: u32,
}

#[repr(C)]
struct InfoAttr {
    fd: u32,
    length: u32,
    info: u64,
}

/// The beginning of the kernel's `bpf_link_info`, as long as XDP links need it.
#[repr(C)]
#[derive(Default)]
struct LinkInfoRaw {
    kind: u32,
    id: u32,
    program: u32,
    padding: u32,
    interface: u32,
    rest: u32,
}

#[repr(C)]
struct LinkCreateAttr {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

#[repr(C)]
struct LinkUpdateAttr {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

#[repr(C)]
struct MapCreateAttr {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    inner: u32,
}

#[repr(C)]
struct MapUpdateAttr {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Which of an interface's hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    /// The driver's.
    Native,
    /// The stack's, after a socket buffer exists.
    Generic,
}

/// An XDP link as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LinkInfo {
    /// The program in it.
    pub(super) program: u32,
    /// The interface's index; 0 once the interface is gone or the link detached.
    pub(super) interface: u32,
}

/// Attaches a program to an interface; it stays attached while the link is open or pinned.
pub(super) fn link_create(program: impl AsFd, interface: u32, hook: Hook) -> io::Result<OwnedFd> {
    let flags = match hook {
        Hook::Native => XDP_FLAGS_DRV_MODE,
        Hook::Generic => XDP_FLAGS_SKB_MODE,
    };
    let program = number(&program);
    owned(LINK_CREATE, &LinkCreateAttr { program, interface, attach_type: ATTACH_XDP, flags })
}

/// Puts another program into a link, atomically: no packet meets neither.
pub(super) fn link_update(link: impl AsFd, program: impl AsFd) -> io::Result<()> {
    let (link, program) = (number(&link), number(&program));
    bpf(LINK_UPDATE, &LinkUpdateAttr { link, program, flags: 0, old_program: 0 }).map(drop)
}

/// Takes a link's program off its interface, whoever else holds the link.
pub(super) fn link_detach(link: impl AsFd) -> io::Result<()> {
    bpf(LINK_DETACH, &number(&link)).map(drop)
}

/// What is in a link, and where it is attached.
pub(super) fn link_info(link: impl AsFd) -> io::Result<LinkInfo> {
    let info = LinkInfoRaw::default();
    #[expect(clippy::cast_possible_truncation, reason = "24")]
    let length = size_of::<LinkInfoRaw>() as u32;
    let attr =
        InfoAttr { fd: number(&link), length, info: (&raw const info).expose_provenance() as u64 };
    bpf(OBJ_GET_INFO_BY_FD, &attr)?;
    // SAFETY: `info` is a live local of plain integers; the kernel wrote to it behind the compiler's back.
    let info = unsafe { (&raw const info).read_volatile() };
    Ok(LinkInfo { program: info.program, interface: info.interface })
}

/// Gives an object a name in bpffs.
pub(super) fn pin(object: impl AsFd, path: &Path) -> io::Result<()> {
    let path = terminated(path)?;
    let attr = ObjectAttr {
        pathname: path.as_ptr().expose_provenance() as u64,
        fd: number(&object),
        file_flags: 0,
    };
    bpf(OBJ_PIN, &attr).map(drop)
}

/// Opens what is pinned there.
pub(super) fn get(path: &Path) -> io::Result<OwnedFd> {
    let path = terminated(path)?;
    owned(
        OBJ_GET,
        &ObjectAttr { pathname: path.as_ptr().expose_provenance() as u64, fd: 0, file_flags: 0 },
    )
}

/// Waits until every packet that was in the program when the wait began has left it.
///
/// The kernel promises that for an update of a map of maps (commit 1ae80cf31938, "wait for running BPF
/// programs when updating map-in-map"). membarrier(2)'s global command happens to wait for the same,
/// but promises less and isn't there on kernels with `nohz_full`.
#[derive(Debug)]
pub(super) struct GracePeriod {
    outer: OwnedFd,
    inner: OwnedFd,
}

impl GracePeriod {
    /// Makes the two small maps.
    pub(super) fn new() -> io::Result<Self> {
        let array = MapCreateAttr {
            kind: TYPE_ARRAY,
            key_size: 4,
            value_size: 4,
            max_entries: 1,
            flags: 0,
            inner: 0,
        };
        let inner = owned(MAP_CREATE, &array)?;
        let outer = owned(
            MAP_CREATE,
            &MapCreateAttr { kind: TYPE_ARRAY_OF_MAPS, inner: number(&inner), ..array },
        )?;
        Ok(Self { outer, inner })
    }

    /// Returns after an RCU grace period, about 10 ms.
    pub(super) fn wait(&self) -> io::Result<()> {
        let (key, inner) = (0_u32, number(&self.inner));
        let attr = MapUpdateAttr {
            map: number(&self.outer),
            padding: 0,
            key: (&raw const key).expose_provenance() as u64,
            value: (&raw const inner).expose_provenance() as u64,
            flags: 0,
        };
        bpf(MAP_UPDATE_ELEM, &attr).map(drop)
    }
}

/// A descriptor as bpf(2) wants it; open ones are never negative.
fn number(fd: &impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd().unsigned_abs()
}

fn terminated(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn owned<A>(command: libc::c_long, attr: &A) -> io::Result<OwnedFd> {
    let fd = RawFd::try_from(bpf(command, attr)?).map_err(io::Error::other)?;
    // SAFETY: these commands return a new descriptor that nobody else knows of.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn bpf<A>(command: libc::c_long, attr: &A) -> io::Result<libc::c_long> {
    // SAFETY: `attr` is one of the structures above, which begin like the kernel's `bpf_attr` for the
    // command; the kernel takes the missing rest as zeros. Every pointer in it is to a live local of the
    // caller of at least the size the kernel uses.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attr, size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
