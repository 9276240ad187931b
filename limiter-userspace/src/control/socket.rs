//! The socket file: who may connect, and whose file may be replaced. Knows nothing of HTTP.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::UnixListener;

/// Owner and group may connect: whoever can, can change limits.
const MODE: u32 = 0o660;
/// Connections waiting to be accepted.
const BACKLOG: i32 = 64;

/// Why the socket can't be had.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another daemon answers there.
    #[error(
        "{}: another limiter daemon answers on this socket; stop it first, or give this one its own with --socket (and its own --pin-dir)",
        .0.display()
    )]
    InUse(PathBuf),
    /// Something that isn't a socket lies there.
    #[error(
        "{}: a file that is no socket lies there; move it away, or choose another path with --socket",
        .0.display()
    )]
    NotASocket(PathBuf),
    /// The group isn't in /etc/group.
    #[error(
        "socket_group {0:?}: no such group in /etc/group; create it (groupadd --system {0}), or give a number"
    )]
    NoSuchGroup(String),
    /// The system said no.
    #[error(
        "{}: cannot {step}: {source}; the daemon runs as root, and the directory must be writable (or choose another path with --socket)",
        path.display()
    )]
    Io {
        /// The socket's path.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

/// Listens on a new socket file at `path`, for the owner and, if given, the members of `group` (a
/// name in `/etc/group`, or a number). Replaces the file of a daemon that has died.
///
/// Two daemons that start in the same instant are told apart by their lock, not here.
///
/// # Errors
/// If another daemon answers there, or the file can't be made.
pub fn bind(path: &Path, group: Option<&str>) -> Result<UnixListener, ControlError> {
    let failed = |step| move |source| ControlError::Io { path: path.to_owned(), step, source };
    let group = group.map(group_id).transpose()?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed("create its directory"))?;
    }
    clear(path)?;
    // Mode and group are set between bind and listen: before, there is no file; after, anyone could
    // have connected under the wrong ones.
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .map_err(io::Error::from)
    .map_err(failed("open a socket"))?;
    SocketAddrUnix::new(path)
        .and_then(|address| rustix::net::bind(&socket, &address))
        .map_err(io::Error::from)
        .map_err(failed("create the socket"))?;
    chown(path, None, group).map_err(failed("give it to its group"))?;
    fs::set_permissions(path, fs::Permissions::from_mode(MODE)).map_err(failed("set its mode"))?;
    rustix::net::listen(&socket, BACKLOG).map_err(io::Error::from).map_err(failed("listen"))?;
    UnixListener::from_std(socket.into()).map_err(failed("listen"))
}

/// Removes a dead daemon's socket file, and nothing else.
fn clear(path: &Path) -> Result<(), ControlError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ControlError::NotASocket(path.to_owned()));
        }
        Ok(_) | Err(_) => {}
    }
    let io = |step, source| ControlError::Io { path: path.to_owned(), step, source };
    match UnixStream::connect(path) {
        Ok(_) => Err(ControlError::InUse(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|source| io("remove a dead daemon's socket", source))
        }
        Err(source) => Err(io("tell whether a daemon answers there", source)),
    }
}

/// A group's number, from `/etc/group` or as written.
fn group_id(group: &str) -> Result<u32, ControlError> {
    let named = fs::read_to_string("/etc/group").unwrap_or_default();
    let number = named.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    });
    number.or_else(|| group.parse().ok()).ok_or_else(|| ControlError::NoSuchGroup(group.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[tokio::test]
    async fn only_owner_and_group_may_connect() {
        let scratch = Scratch::new("socket-mode");
        let path = scratch.path().join("made/for/it/limiter.sock");
        let _listener = bind(&path, Some("0")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    }

    #[tokio::test]
    async fn a_dead_daemons_file_is_replaced_and_a_living_ones_is_not() {
        let scratch = Scratch::new("socket-stale");
        let path = scratch.path().join("limiter.sock");
        let living = bind(&path, None).unwrap();
        let refused = bind(&path, None).unwrap_err();
        assert!(matches!(refused, ControlError::InUse(_)), "{refused}");
        drop(living);
        assert!(path.exists(), "as kill -9 leaves it");
        let _next = bind(&path, None).unwrap();
    }

    #[tokio::test]
    async fn an_ordinary_file_is_left_alone() {
        let scratch = Scratch::new("socket-file");
        let path = scratch.path().join("limiter.sock");
        fs::write(&path, "precious").unwrap();
        let refused = bind(&path, None).unwrap_err();
        assert!(matches!(refused, ControlError::NotASocket(_)), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[tokio::test]
    async fn an_unknown_group_is_named() {
        let scratch = Scratch::new("socket-group");
        let refused = bind(&scratch.path().join("limiter.sock"), Some("nobody-has-this"));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "socket_group \"nobody-has-this\": no such group in /etc/group; create it (groupadd --system nobody-has-this), or give a number"
        );
    }
}
