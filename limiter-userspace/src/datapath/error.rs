//! What can go wrong with maps, program and links: each says what, the likely cause and the next step.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Opening or making the maps and the program failed. Nothing was attached or detached.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The binary has no kernel object in it.
    #[error("this limiter was built without its kernel program; run `cargo xtask build`")]
    NotBuilt,
    /// Missing capabilities.
    #[error(
        "not allowed to {what}; run as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON"
    )]
    NotPermitted {
        /// What was tried.
        what: String,
    },
    /// The pin directory isn't where pins can be.
    #[error(
        "{path} is not in a BPF file system, so nothing can outlive the daemon there; mount one with \
         `mount -t bpf bpf /sys/fs/bpf`, or set `pin_dir` to a directory in one"
    )]
    NotBpffs {
        /// The pin directory.
        path: PathBuf,
    },
    /// bpffs keeps dots for itself.
    #[error(
        "pin directory {path}: BPF file systems allow no dots in names; choose another `pin_dir`"
    )]
    Dots {
        /// The pin directory.
        path: PathBuf,
    },
    /// Pins that don't belong together.
    #[error(
        "the pinned maps in {path} are unusable ({reason}) and interfaces are still guarded by them: {links}; \
         free these with `limiter detach`, then start again"
    )]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        reason: String,
        /// Interfaces with a link.
        links: String,
    },
    /// The kernel refused a map or the program.
    #[error("the kernel refused {what}: {cause}")]
    Kernel {
        /// Which.
        what: String,
        /// Its words.
        cause: String,
    },
    /// A file operation failed.
    #[error("{path}: {cause}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A map operation failed.
    #[error(transparent)]
    Map(#[from] MapError),
}

impl OpenError {
    /// An error of a call: missing privileges have their own words.
    pub(super) fn call(what: impl fmt::Display, cause: &io::Error) -> Self {
        // Not by the error's kind: the verifier says EACCES for a program it doesn't like.
        if cause.raw_os_error() == Some(libc::EPERM) {
            return Self::NotPermitted { what: format!("load {what}") };
        }
        Self::Kernel { what: what.to_string(), cause: cause.to_string() }
    }

    /// The same for a path in bpffs.
    pub(super) fn file(path: &Path, cause: io::Error) -> Self {
        if cause.kind() == io::ErrorKind::PermissionDenied {
            return Self::NotPermitted { what: format!("write to {}", path.display()) };
        }
        Self::File { path: path.to_owned(), cause }
    }
}

/// Reading or writing an open map failed. That can't happen to maps that the program uses, short of
/// a kernel out of memory.
#[derive(Debug, thiserror::Error)]
#[error("map {map}: {cause}")]
pub struct MapError {
    /// The map's name.
    pub map: &'static str,
    /// The kernel's or aya's words.
    pub cause: String,
}

impl MapError {
    pub(super) fn new(map: &'static str, cause: impl fmt::Display) -> Self {
        Self { map, cause: cause.to_string() }
    }
}

/// An interface couldn't be guarded. What was attached before still is; nothing new is.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No interface of that name in this network namespace.
    #[error("no interface {interface} here{}", others(.existing))]
    NoInterface {
        /// As asked.
        interface: String,
        /// Those that exist.
        existing: Vec<String>,
    },
    /// Missing capabilities.
    #[error(
        "{interface}: not allowed to attach; run as root, or with the capabilities CAP_BPF, CAP_NET_ADMIN \
         and CAP_PERFMON"
    )]
    NotPermitted {
        /// Where.
        interface: String,
    },
    /// The driver has no XDP hook.
    #[error(
        "{interface}: its driver has no native XDP; `--generic` (`limiter attach {interface} --generic`; for the daemon \
         also `attach = \"generic\"`) runs the program in the network stack instead, at a fraction of the speed"
    )]
    NotNative {
        /// Where.
        interface: String,
    },
    /// Somebody else is there.
    #[error(
        "{interface}: another XDP program is attached ({other}); find its owner with `bpftool net`, remove it with \
         that tool, or with `ip link set dev {interface} xdp off`, then try again"
    )]
    Occupied {
        /// Where.
        interface: String,
        /// Name and id.
        other: String,
    },
    /// The driver has a hook, but not as the interface is set up.
    #[error(
        "{interface}: the driver refused (EINVAL) as the interface is set up now, {mtu}; usual causes: MTU above \
         what it allows with XDP (`ip link set dev {interface} mtu 1500`), LRO on (`ethtool -K {interface} lro off`), \
         all queues in use (`ethtool -L {interface} combined N`, half of them); the kernel's log may say which; or a \
         kernel before 5.9, which has no links for XDP"
    )]
    Refused {
        /// Where.
        interface: String,
        /// `its MTU is 9000`.
        mtu: String,
    },
    /// No daemon has left a program there.
    #[error(
        "no program in {path}; start the daemon once with `limiter run`, it loads and attaches"
    )]
    NoProgram {
        /// The program's pin.
        path: PathBuf,
    },
    /// Anything else.
    #[error("{interface}: {what}: {cause}")]
    Other {
        /// Where.
        interface: String,
        /// What was tried.
        what: &'static str,
        /// The kernel's words.
        cause: io::Error,
    },
}

fn others(names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!("; choose one of: {}", names.join(", "))
}

/// An interface couldn't be freed.
#[derive(Debug, thiserror::Error)]
pub enum DetachError {
    /// Nothing of ours.
    #[error("{interface}: not guarded by limiter (no {path}); `limiter status` lists what is")]
    NotAttached {
        /// As asked.
        interface: String,
        /// Where its link would be pinned.
        path: PathBuf,
    },
    /// Missing capabilities.
    #[error(
        "{interface}: not allowed to detach; run as root, or with the capabilities CAP_BPF and CAP_NET_ADMIN"
    )]
    NotPermitted {
        /// Where.
        interface: String,
    },
    /// Anything else.
    #[error("{interface}: {what}: {cause}")]
    Other {
        /// Where.
        interface: String,
        /// What was tried.
        what: &'static str,
        /// The kernel's words.
        cause: io::Error,
    },
}
