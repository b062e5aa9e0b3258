//! Private files: written whole or not at all, readable by their owner alone. Knows nothing of what they hold.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Mode of every directory we create.
const DIRECTORY_MODE: u32 = 0o700;
/// Mode of every file we write.
const FILE_MODE: u32 = 0o600;

/// A file or directory that could not be read or written. The text names the path, and what to do where that is clear.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}{}", hint(.source))]
pub struct FileError {
    /// What was tried: "create", "read", "write".
    pub action: &'static str,
    /// On which path.
    pub path: PathBuf,
    /// Why it failed.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// An error of `action` on `path`, for `map_err`.
    pub fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
        let path = path.to_owned();
        move |source| FileError { action, path, source }
    }
}

/// What a newcomer can do about an error of the operating system.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            " (make it writable for this user, or choose another place with --data-dir)"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " (free some space there, or choose another place with --data-dir)"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            " (a file is in the way; choose another place with --data-dir)"
        }
        _ => "",
    }
}

/// Creates a directory and those above it, private to this user. One that is there stays as it is.
///
/// # Errors
/// It cannot be created.
pub fn private_dir(path: &Path) -> Result<(), FileError> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)
        .map_err(FileError::of("create directory", path))
}

/// Writes `bytes` to `path`, mode 0600: after a crash it holds either the old or the new content.
///
/// # Errors
/// The directory cannot be written, or the disk is full; the old content is still there.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let temporary = beside(path);
    let written = create_private(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(source) = written.and_then(|()| fs::rename(&temporary, path)) {
        if let Err(error) = fs::remove_file(&temporary) {
            tracing::debug!(path = %temporary.display(), %error, "temporary file left behind");
        }
        return Err(FileError { action: "write", path: path.to_owned(), source });
    }
    Ok(())
}

/// Like [`write_private`], but leaves a file alone that already holds these bytes. Answers whether it wrote.
///
/// # Errors
/// As of [`write_private`].
pub fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    match fs::read(path) {
        Ok(old) if old == bytes => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(FileError::of("read", path)(error)),
    }
    write_private(path, bytes).map(|()| true)
}

/// Reads a text file; `None` where there is none.
///
/// # Errors
/// It is there and cannot be read.
pub fn read_text(path: &Path) -> Result<Option<String>, FileError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FileError::of("read", path)(error)),
    }
}

/// The name of the file that is written first. One process writes in a data directory, so it is unique.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_written_is_private_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        private_dir(&inner).unwrap();
        let path = inner.join("f");
        assert!(write_if_changed(&path, b"one").unwrap());
        assert!(!write_if_changed(&path, b"one").unwrap());
        assert!(write_if_changed(&path, b"two").unwrap());
        assert_eq!(read_text(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
    }

    #[test]
    fn a_file_in_the_way_is_named_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        fs::write(&file, "").unwrap();
        let text = private_dir(&file.join("data")).unwrap_err().to_string();
        assert!(text.contains("f/data") && text.contains("--data-dir"), "{text}");
    }
}
