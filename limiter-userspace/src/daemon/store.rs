//! Small files in the state directory: written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::DaemonError;

/// Reads a file; `None` if there is none.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, DaemonError> {
    let failed = |cause: String| DaemonError::State { path: path.to_owned(), cause };
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| failed(e.to_string())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(failed(cause.to_string())),
    }
}

/// Replaces a file, in one step that a power cut can't halve.
pub(super) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), DaemonError> {
    let failed =
        |cause: io::Error| DaemonError::State { path: path.to_owned(), cause: cause.to_string() };
    let new = path.with_extension("new");
    let written = serde_json::to_vec_pretty(value).map_err(io::Error::from).and_then(|bytes| {
        let mut file = File::create(&new)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The new name lies in the directory, which the disk gets in its own time otherwise.
        File::open(directory(path))?.sync_all()
    });
    written.map_err(failed)
}

/// Where a file lies; a bare name has an empty parent, which can't be opened.
fn directory(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Makes the directory, if it isn't there.
pub(super) fn make(directory: &Path) -> Result<(), DaemonError> {
    fs::create_dir_all(directory).map_err(|cause| DaemonError::State {
        path: directory.to_owned(),
        cause: cause.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn what_was_written_comes_back_and_garbage_is_an_error() {
        let scratch = Scratch::new("store");
        let path = scratch.path().join("x.json");
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), None);
        write(&path, &vec![1, 2]).unwrap();
        write(&path, &vec![3]).unwrap();
        assert_eq!(read::<Vec<u32>>(&path).unwrap(), Some(vec![3]));
        fs::write(&path, "{").unwrap();
        assert!(read::<Vec<u32>>(&path).unwrap_err().to_string().contains("x.json"));
    }

    #[test]
    fn a_file_has_a_directory_that_can_be_opened_whatever_its_path() {
        for (path, expected) in [("/a/x.json", "/a"), ("a/x.json", "a"), ("x.json", ".")] {
            assert_eq!(directory(Path::new(path)), Path::new(expected));
        }
    }
}
