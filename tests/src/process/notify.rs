//! Listens for `READY=1` as systemd does (sd_notify), so that a test starts when the daemon says it
//! is ready, not when some time has passed.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

/// How often a caller gets to see whether the daemon still lives.
const PATIENCE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Notifications {
    socket: UnixDatagram,
}

impl Notifications {
    /// Takes over the path from an earlier start.
    pub(super) fn listen(path: &Path) -> std::io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = UnixDatagram::bind(path)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket })
    }

    /// Waits a moment for the next message; whether it says that the daemon is ready.
    pub(super) fn ready(&self) -> bool {
        let mut message = [0; 4096];
        self.socket.recv(&mut message).is_ok_and(|length| says_ready(&message[..length]))
    }
}

fn says_ready(message: &[u8]) -> bool {
    message.split(|byte| *byte == b'\n').any(|line| line == b"READY=1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_a_line_of_its_own() {
        assert!(says_ready(b"READY=1"));
        assert!(says_ready(b"STATUS=guarding eth0\nREADY=1\n"));
        assert!(!says_ready(b"STATUS=READY=1"));
        assert!(!says_ready(b"READY=0"));
    }
}
