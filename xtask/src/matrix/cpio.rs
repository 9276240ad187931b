//! Writes the archive format that Linux unpacks as its first file system ("newc" of cpio), as described
//! in the kernel's `buffer-format.rst`. Knows nothing of what is in it.

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive that grows by one entry at a time; parents first.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub(super) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// A file that may be executed.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, content);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let (links, name_size) = (1, path.len() + 1);
        self.bytes.extend_from_slice(b"070701");
        // inode, mode, uid, gid, links, mtime, size, device ×2, special device ×2, name, checksum
        let (inode, size) = (self.entries as usize, content.len());
        for field in [inode, mode as usize, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    /// Header with name, and content, each end on a multiple of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_laid_out_as_the_kernel_reads_it() {
        let mut archive = Archive::default();
        archive.file("init", b"hello");
        let bytes = archive.finish();
        let header = "070701\
            00000001000081ed000000000000000000000001000000000000000500000000\
            00000000000000000000000000000005";
        assert_eq!(&bytes[..102], header.as_bytes());
        assert_eq!(&bytes[102..110], b"00000000");
        assert_eq!(&bytes[110..124], b"init\0\0hello\0\0\0");
        assert_eq!(bytes.len() % 4, 0);
        assert!(bytes.windows(10).any(|word| word == b"TRAILER!!!"));
    }
}
