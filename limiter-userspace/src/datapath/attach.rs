//! The program on interfaces: attached by links that are pinned, so that it stays when the daemon goes and
//! is replaced without a gap when the next one comes. Needs pins only, no daemon: the command line uses
//! the same functions. Nothing here falls back to a slower or less safe way by itself.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::{fs, io};

use limiter_common::layout::PROGRAM;

use super::error::{AttachError, DetachError};
use super::netlink::{self, Attached, Interface};
use super::pins::{Pins, is_name};
use super::sys::{self, Hook};

/// How the program may be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before a socket buffer exists; or not at all.
    Native,
    /// In the network stack.
    Generic,
}

impl Mode {
    /// The word for it in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

/// What puts an interface back that is to be guarded in this mode, as one types it.
#[must_use]
pub fn command(interface: &str, mode: Mode) -> String {
    let generic = if mode == Mode::Generic { " --generic" } else { "" };
    format!("limiter attach {interface}{generic}")
}

/// What [`attach`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// The program is new on the interface.
    Attached,
    /// The link was there; it has the present program now.
    Replaced,
}

/// How an interface stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Its index; `None` if there is no such interface.
    pub index: Option<u32>,
    /// How our program is attached; `None` if it isn't.
    pub mode: Option<Mode>,
    /// Whether `limiter detach` asked to keep away.
    pub marked: bool,
}

/// Attaches the pinned program to an interface, or puts it into the link that is there.
pub fn attach(pins: &Pins, interface: &str, mode: Mode) -> Result<Done, AttachError> {
    let found = require(interface)?;
    let program = open_program(pins, interface)?;
    let path = pins.link(interface);
    if let Some(link) = open_link(&path, interface)? {
        let info =
            sys::link_info(&link).map_err(|cause| failed(interface, "read the link", cause))?;
        if info.interface == found.index {
            let updated = sys::link_update(&link, &program);
            return updated.map(|()| Done::Replaced).map_err(|cause| refused(&found, mode, cause));
        }
        // The interface was removed and made again: the old link is on nothing any more.
        let _ = sys::link_detach(&link);
        fs::remove_file(&path).map_err(|cause| failed(interface, "unpin the old link", cause))?;
    }
    let hook = match mode {
        Mode::Native => Hook::Native,
        Mode::Generic => Hook::Generic,
    };
    // If pinning fails, the link is closed with its descriptor, and nothing stays attached.
    let link = sys::link_create(&program, found.index, hook)
        .map_err(|cause| refused(&found, mode, cause))?;
    sys::pin(&link, &path).map_err(|cause| failed(interface, "pin the link", cause))?;
    Ok(Done::Attached)
}

/// Takes the program off an interface.
pub fn detach(pins: &Pins, interface: &str) -> Result<(), DetachError> {
    let link = guarding(pins, interface)?;
    // Detaching is said aloud: removing the pin alone leaves the program there while anyone else has
    // the link open.
    match sys::link_detach(&link) {
        Err(cause) if cause.raw_os_error() != Some(libc::ENOLINK) => {
            Err(not_freed(interface, "detach the link", cause))
        }
        _ => fs::remove_file(pins.link(interface))
            .map_err(|cause| not_freed(interface, "unpin the link", cause)),
    }
}

/// Takes the program off an interface and asks daemons, now and later, to keep away.
pub fn release(pins: &Pins, interface: &str) -> Result<(), DetachError> {
    guarding(pins, interface)?;
    // The mark first, or nothing: a daemon that finds the interface free and unmarked attaches again.
    let marked = match fs::create_dir(pins.mark(interface)) {
        Ok(()) => true,
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => false,
        Err(cause) => {
            return Err(not_freed(interface, "leave the mark that keeps daemons away", cause));
        }
    };
    let detached = detach(pins, interface);
    if marked && detached.is_err() {
        let _ = fs::remove_dir(pins.mark(interface));
    }
    detached
}

/// The link that guards an interface.
fn guarding(pins: &Pins, interface: &str) -> Result<OwnedFd, DetachError> {
    let path = pins.link(interface);
    sys::get(&path).map_err(|cause| {
        if !is_name(interface) || cause.kind() == io::ErrorKind::NotFound {
            return DetachError::NotAttached { interface: interface.to_owned(), path };
        }
        not_freed(interface, "open the link", cause)
    })
}

fn not_freed(interface: &str, what: &'static str, cause: io::Error) -> DetachError {
    let interface = interface.to_owned();
    match cause.kind() {
        io::ErrorKind::PermissionDenied => DetachError::NotPermitted { interface },
        _ => DetachError::Other { interface, what, cause },
    }
}

/// Attaches and takes back what [`release`] asked for.
pub fn restore(pins: &Pins, interface: &str, mode: Mode) -> Result<Done, AttachError> {
    let done = attach(pins, interface, mode)?;
    match fs::remove_dir(pins.mark(interface)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(failed(interface, "remove the mark of `limiter detach`", cause))
        }
        _ => Ok(done),
    }
}

/// How an interface stands, as the kernel tells it, not as we remember it.
pub fn look(pins: &Pins, interface: &str) -> Result<Guard, AttachError> {
    let found = find(interface)?;
    let link = open_link(&pins.link(interface), interface)?;
    let info = link.and_then(|link| sys::link_info(link).ok());
    let mode = found.as_ref().zip(info).and_then(|(found, info)| {
        let Attached { native, .. } = found.xdp?;
        let ours = info.interface == found.index;
        ours.then_some(if native { Mode::Native } else { Mode::Generic })
    });
    let marked = pins.mark(interface).exists();
    Ok(Guard { index: found.map(|found| found.index), mode, marked })
}

/// An error naming the interfaces that exist, unless this one does.
pub fn require_interface(interface: &str) -> Result<(), AttachError> {
    require(interface).map(drop)
}

fn require(interface: &str) -> Result<Interface, AttachError> {
    match find(interface)? {
        Some(found) => Ok(found),
        None => {
            let all = netlink::interfaces().unwrap_or_default();
            let existing = all.into_iter().map(|interface| interface.name).collect();
            Err(AttachError::NoInterface { interface: interface.to_owned(), existing })
        }
    }
}

fn find(interface: &str) -> Result<Option<Interface>, AttachError> {
    if !is_name(interface) {
        return Ok(None);
    }
    netlink::interface(interface).map_err(|cause| failed(interface, "look up the interface", cause))
}

fn open_program(pins: &Pins, interface: &str) -> Result<OwnedFd, AttachError> {
    let path = pins.program();
    sys::get(&path).map_err(|cause| match cause.kind() {
        io::ErrorKind::NotFound => AttachError::NoProgram { path },
        _ => failed(interface, "open the pinned program", cause),
    })
}

fn open_link(path: &Path, interface: &str) -> Result<Option<OwnedFd>, AttachError> {
    match sys::get(path) {
        Ok(link) => Ok(Some(link)),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(failed(interface, "open the pinned link", cause)),
    }
}

fn failed(interface: &str, what: &'static str, cause: io::Error) -> AttachError {
    let interface = interface.to_owned();
    match cause.kind() {
        io::ErrorKind::PermissionDenied => AttachError::NotPermitted { interface },
        _ => AttachError::Other { interface, what, cause },
    }
}

/// What the kernel's refusal to attach means.
fn refused(found: &Interface, mode: Mode, cause: io::Error) -> AttachError {
    let interface = found.name.clone();
    match (cause.raw_os_error(), mode) {
        // EEXIST: native and generic can't be active at once.
        (Some(libc::EBUSY | libc::EEXIST), _) => {
            AttachError::Occupied { interface, other: describe(found) }
        }
        (Some(libc::EOPNOTSUPP), Mode::Native) => AttachError::NotNative { interface },
        (Some(libc::EINVAL), Mode::Native) => {
            AttachError::Refused { interface, mtu: format!("its MTU is {}", found.mtu) }
        }
        _ => failed(&interface, "attach the program", cause),
    }
}

/// Who is on the interface already.
fn describe(found: &Interface) -> String {
    let Some(Attached { program, .. }) = found.xdp else {
        return "unknown".to_owned();
    };
    let mut programs = aya::programs::loaded_programs().flatten();
    let name = programs.find(|info| info.id() == program);
    match name.as_ref().and_then(|info| info.name_as_str()) {
        Some(PROGRAM) => format!("another limiter's, with its own --pin-dir; id {program}"),
        Some(name) if !name.is_empty() => format!("\"{name}\", id {program}"),
        _ => format!("id {program}"),
    }
}

/// Pins a program in place of the last one, in one step.
pub(super) fn publish(pins: &Pins, program: impl AsFd) -> io::Result<()> {
    let (path, new) = (pins.program(), pins.layout().join("program-new"));
    match fs::remove_file(&new) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => sys::pin(program, &new)?,
    }
    fs::rename(new, path)
}
