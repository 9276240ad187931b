//! Reading a policy's text from wherever somebody said it is: never more than a policy can have, and,
//! for the daemon, never waiting. Knows nothing of what the text says.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::policy::MAX_BYTES;

/// An ordinary file's text. A pipe or a device under this name would keep the daemon waiting, or fill
/// its memory.
pub(crate) fn file(path: &Path) -> io::Result<String> {
    // Opening a pipe that nobody writes to would wait, too.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !about.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an ordinary file"));
    }
    text(file)
}

/// All that comes, until it is too much for a policy.
pub(crate) fn text(from: impl Read) -> io::Result<String> {
    let most = MAX_BYTES as u64;
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "more than the 1 MiB of a policy"));
    }
    String::from_utf8(bytes).map_err(|cause| io::Error::new(io::ErrorKind::InvalidData, cause))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn what_has_no_end_is_read_no_further_than_a_policy_goes() {
        let refused = text(io::repeat(b'#')).unwrap_err();
        assert_eq!(refused.to_string(), "more than the 1 MiB of a policy");
        assert_eq!(text(io::repeat(b'#').take(MAX_BYTES as u64)).unwrap().len(), MAX_BYTES);
    }

    #[test]
    fn the_daemon_waits_for_no_pipe_and_reads_no_device() {
        let scratch = Scratch::new("bounded");
        let pipe = scratch.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            assert_eq!(file(path).unwrap_err().to_string(), "not an ordinary file");
        }
        assert!(file(scratch.path()).is_err());
    }
}
