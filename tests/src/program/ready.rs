//! Keeps a program in the kernel's XDP dispatcher. A test run that repeats puts its program there and takes
//! it out again (`bpf_prog_change_xdp`), and each time waits tens of milliseconds for all CPUs; a program
//! that is attached somewhere is there already.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::bpf::owned;

const LINK_CREATE: libc::c_int = 28;
const ATTACH_XDP: u32 = 37;
const GENERIC: u32 = 1 << 1;
/// The loopback interface is the first of every namespace.
const LOOPBACK: u32 = 1;

/// Attached to a loopback interface that is down, in a namespace without a name.
pub(super) struct Ready {
    _link: OwnedFd,
    _namespace: File,
}

#[repr(C)]
struct LinkAttributes {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

impl Ready {
    /// Until dropped.
    pub(super) fn keep(program: BorrowedFd<'_>) -> io::Result<Self> {
        let program = program.as_raw_fd().unsigned_abs();
        thread::scope(|scope| {
            let inside = scope.spawn(move || {
                // SAFETY: only this thread changes its network namespace, and it ends here.
                unsafe { unshare_unsafe(UnshareFlags::NEWNET)? };
                let namespace = File::open("/proc/thread-self/ns/net")?;
                let (interface, attach_type) = (LOOPBACK, ATTACH_XDP);
                let mut link = LinkAttributes { program, interface, attach_type, flags: GENERIC };
                Ok(Self { _link: owned(LINK_CREATE, &mut link)?, _namespace: namespace })
            });
            // A panic inside is the caller's own.
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}
