//! bpf(2), for what the kit asks of the kernel directly.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// One call; `attributes` begin as the kernel's `bpf_attr` does for this command.
pub(super) fn bpf<A>(command: libc::c_int, attributes: &mut A) -> io::Result<libc::c_long> {
    // SAFETY: the attributes outlive the call and are of the size told; the kernel takes the missing rest
    // as zeros. Every pointer in them is to something that the caller keeps alive, of at least the size
    // the kernel uses; it writes to the attributes alone.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *attributes, size_of::<A>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same for a command that answers with a new descriptor.
pub(super) fn owned<A>(command: libc::c_int, attributes: &mut A) -> io::Result<OwnedFd> {
    let number = i32::try_from(bpf(command, attributes)?).map_err(io::Error::other)?;
    // SAFETY: a new descriptor that nobody else knows of.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
