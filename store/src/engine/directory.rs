//! Directory: the log's disk on a real file system, its lock, and the file that names its format.
//! Knows nothing of what the other files hold.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FallocateFlags, fallocate};

use crate::engine::disk::{Disk, DiskFile};
use crate::error::{EngineError, OpenError};

/// Newest format of a data directory that this program reads and the one that it writes.
pub const FORMAT: u32 = 1;

/// Bytes of what a file system calls a block in its answers.
const BLOCK_BYTES: u64 = 512;

const FORMAT_FILE: &str = "format";
const FORMAT_NEW: &str = "format.new";
const FORMAT_PREFIX: &str = "strata-store ";
const LOCK_FILE: &str = "lock";
/// Name of a file that is there while the data is being imported.
pub const IMPORTING_FILE: &str = "importing";

/// A directory.
pub struct Directory {
    path: PathBuf,
}

/// The lock of a data directory, held until this is dropped.
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child that is just being started shares the file until it runs.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the data directory could not be unlocked");
        }
    }
}

/// Prepares a data directory: checks its format, locks it, creates what is missing. The
/// returned lock must outlive all use of the directory.
///
/// # Errors
/// `NewerFormat` before anything is touched, `Locked`, `Directory`.
pub fn prepare(path: &Path) -> Result<(Directory, Lock), OpenError> {
    if path.join(IMPORTING_FILE).exists() {
        return Err(OpenError::Engine(EngineError::Corrupt {
            file: path.display().to_string(),
            offset: 0,
            what: "an import into it did not finish: remove the directory and import again".to_owned(),
        }));
    }
    claim(path)
}

/// As `prepare`, for an import: the directory must hold nothing but an import that did not finish, which goes; and it is
/// no store before [`finish_import`].
///
/// # Errors
/// As `prepare`; `Directory` if there is something.
pub fn prepare_import(path: &Path) -> Result<(Directory, Lock), OpenError> {
    let failed = |action: &'static str| {
        move |source: io::Error| OpenError::Directory { action, path: path.to_owned(), source }
    };
    create(path).map_err(failed("creation"))?;
    let is_unfinished = path.join(IMPORTING_FILE).exists();
    if !is_unfinished && fs::read_dir(path).map_err(failed("reading"))?.next().is_some() {
        let source = io::Error::new(io::ErrorKind::DirectoryNotEmpty, "an import needs an empty directory");
        return Err(failed("import")(source));
    }
    File::create(path.join(IMPORTING_FILE)).and_then(|file| file.sync_all()).map_err(failed("writing"))?;
    let lock = lock(path)?;
    let directory = Directory { path: path.to_owned() };
    if is_unfinished {
        directory.clear(&[LOCK_FILE, IMPORTING_FILE]).map_err(failed("clearing"))?;
    }
    write_format(&directory).map_err(failed("writing"))?;
    Ok((directory, lock))
}

/// Takes away an import that is not to be finished, with its directory if the import made that.
///
/// # Errors
/// Something could not be removed; it is no store all the same.
pub fn discard_import(directory: &Directory, is_new: bool) -> io::Result<()> {
    directory.clear(&[IMPORTING_FILE])?;
    directory.remove(IMPORTING_FILE)?;
    if is_new { fs::remove_dir(&directory.path) } else { directory.sync() }
}

/// Makes what was imported a store.
///
/// # Errors
/// The last step failed, or is not known to be durable.
pub fn finish_import(directory: &Directory) -> io::Result<()> {
    directory.sync()?;
    directory.remove(IMPORTING_FILE)?;
    directory.sync()
}

/// Whether there is a store that was opened before.
///
/// # Errors
/// As `prepare`.
pub fn is_store(path: &Path) -> Result<bool, OpenError> {
    read_format(path).map(|format| format.is_some())
}

fn claim(path: &Path) -> Result<(Directory, Lock), OpenError> {
    let failed = |action: &'static str| {
        move |source: io::Error| OpenError::Directory { action, path: path.to_owned(), source }
    };
    let existing = read_format(path)?;
    if existing.is_none() {
        create(path).map_err(failed("creation"))?;
    }
    let lock = lock(path)?;
    let directory = Directory { path: path.to_owned() };
    if read_format(path)?.is_none() {
        write_format(&directory).map_err(failed("writing"))?;
    }
    Ok((directory, lock))
}

/// Creates a directory that is nobody else's to read.
fn create(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn lock(path: &Path) -> Result<Lock, OpenError> {
    let failed = |action: &'static str| {
        move |source: io::Error| OpenError::Directory { action, path: path.to_owned(), source }
    };
    let lock = OpenOptions::new().create(true).write(true).truncate(false).open(path.join(LOCK_FILE));
    let lock = lock.map_err(failed("opening"))?;
    match lock.try_lock() {
        Ok(()) => Ok(Lock(lock)),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(failed("locking")(error)),
    }
}

/// The format of a data directory, `None` if it is new.
fn read_format(path: &Path) -> Result<Option<u32>, OpenError> {
    let text = match fs::read_to_string(path.join(FORMAT_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(OpenError::Directory { action: "reading", path: path.to_owned(), source });
        }
    };
    let found = text.strip_prefix(FORMAT_PREFIX).and_then(|number| number.trim_end().parse::<u32>().ok());
    match found {
        Some(found) if found > FORMAT => Err(OpenError::NewerFormat { found, supported: FORMAT }),
        Some(found) => Ok(Some(found)),
        None => Err(OpenError::Engine(EngineError::Corrupt {
            file: FORMAT_FILE.to_owned(),
            offset: 0,
            what: "it does not name a format".to_owned(),
        })),
    }
}

fn write_format(directory: &Directory) -> io::Result<()> {
    let path = directory.path.join(FORMAT_NEW);
    let mut file = File::create(&path)?;
    file.write_all(format!("{FORMAT_PREFIX}{FORMAT}\n").as_bytes())?;
    file.sync_all()?;
    directory.rename(FORMAT_NEW, FORMAT_FILE)?;
    directory.sync()?;
    match directory.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

impl Directory {
    /// Removes everything but the files of these names.
    fn clear(&self, kept: &[&str]) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if kept.iter().any(|kept| entry.file_name() == *kept) {
                continue;
            }
            let is_folder = entry.file_type()?.is_dir();
            if is_folder { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
        }
        Ok(())
    }
}

impl Disk for Directory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path.join(name))?;
        let length = file.metadata()?.len();
        Ok(Arc::new(OpenFile { file, length }))
    }

    fn create(&self, name: &str, length: u64) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path.join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        let reserved = match fallocate(&file, FallocateFlags::empty(), 0, length) {
            // Where space cannot be reserved, a full disk shows at a write instead.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(length),
            other => other.map_err(io::Error::from),
        };
        if let Err(error) = reserved {
            drop(file);
            fs::remove_file(&path)?;
            return Err(error);
        }
        Ok(Arc::new(OpenFile { file, length }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn used(&self) -> io::Result<u64> {
        used(&self.path)
    }

    fn available(&self) -> io::Result<u64> {
        let figures = rustix::fs::statvfs(&self.path)?;
        Ok(figures.f_bavail.saturating_mul(figures.f_frsize))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Bytes that a folder's files take. One that goes meanwhile does not count.
fn used(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = match entry.metadata() {
            Ok(found) if found.is_dir() => used(&entry.path()),
            Ok(found) => Ok(found.blocks() * BLOCK_BYTES),
            Err(error) => Err(error),
        };
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => bytes += other?,
        }
    }
    Ok(bytes)
}

struct OpenFile {
    file: File,
    length: u64,
}

impl DiskFile for OpenFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
