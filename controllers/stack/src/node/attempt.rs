//! The directory of one container attempt: its layout, its record and its lock. Shim and agent meet here and
//! nowhere else. It must never start or signal a process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use strata_plan::pod::observed::{ContainerKey, Exit};

use super::procfs::Identity;

/// The version that this program writes into records; others are refused.
const RECORD_VERSION: u8 = 1;
/// The mode of every directory below the root.
const DIR_MODE: u32 = 0o700;
/// The mode of every file in an attempt's directory.
pub const FILE_MODE: u32 = 0o600;

/// The name of the variable that marks every process of an attempt.
pub const MARK: &str = "STRATA_CONTAINER";

/// What an attempt's directory says of it; written whole, by rename, by the shim while it lives, by the agent
/// (which then holds the lock) when the shim died without a last word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The layout of this record.
    version: u8,
    /// The boot during which the processes below lived.
    pub boot_id: String,
    /// The supervisor; `None` when it never came up.
    pub shim: Option<Identity>,
    /// The main process; `None` before it runs.
    pub workload: Option<Identity>,
    /// When the main process started.
    pub started_at: Option<Timestamp>,
    /// The end, once there is one.
    pub exit: Option<Exit>,
}

impl Record {
    /// The record of a supervisor that is about to start its command.
    pub fn new(boot_id: String, shim: Option<Identity>) -> Self {
        Self { version: RECORD_VERSION, boot_id, shim, workload: None, started_at: None, exit: None }
    }
}

/// Facts of an attempt that are fixed when it is created; no secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub pod_name: String,
    /// The termination grace of the pod, in seconds.
    pub grace_seconds: u32,
    /// How long the start was held back, in seconds.
    pub backoff_seconds: u32,
    /// When the agent created the attempt.
    pub created_at: Timestamp,
}

/// Why an attempt's directory could not be used.
#[derive(Debug, thiserror::Error)]
pub enum AttemptError {
    /// The file system refused.
    #[error("cannot {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path} is not readable as a record")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What was wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A record of a newer program.
    #[error("{path} has record version {version}; this program knows {RECORD_VERSION}")]
    Version {
        /// Which file.
        path: PathBuf,
        /// The version found.
        version: u8,
    },
}

/// The directory of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptDir {
    path: PathBuf,
}

impl AttemptDir {
    /// The directory at `path`, whether or not it exists.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where `key` lives below `root`.
    pub fn of(root: &Path, key: &ContainerKey) -> Self {
        Self { path: container_dir(root, key.pod(), key.container()).join(key.attempt().to_string()) }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The fifo through which the shim takes orders.
    pub fn control(&self) -> PathBuf {
        self.path.join("control")
    }

    /// The newest log file; older ones have `.1` and up appended.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The directory in which a command starts that names none.
    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// Where the shim's own complaints go.
    pub fn complaints(&self) -> PathBuf {
        self.path.join("shim.err")
    }

    fn record_path(&self) -> PathBuf {
        self.path.join("record.json")
    }

    fn facts_path(&self) -> PathBuf {
        self.path.join("facts.json")
    }

    /// Creates the directory (and its parents) with its facts; an existing attempt is an error and stays as it is.
    pub fn create(&self, facts: &Facts) -> Result<(), AttemptError> {
        if let Some(parent) = self.path.parent() {
            create_private_dir(parent)?;
        }
        DirBuilder::new().mode(DIR_MODE).create(&self.path).map_err(io_error("create", &self.path))?;
        let filled = create_private_dir(&self.work()).and_then(|()| write_json(&self.facts_path(), facts));
        // Half an attempt would look like one whose agent died.
        filled.or_else(|error| self.remove().and(Err(error)))
    }

    /// The facts that the attempt was created with; `None` when the agent died before it wrote them.
    pub fn facts(&self) -> Result<Option<Facts>, AttemptError> {
        read_json(&self.facts_path())
    }

    /// The record; `None` before there is one.
    pub fn record(&self) -> Result<Option<Record>, AttemptError> {
        let record: Option<Record> = read_json(&self.record_path())?;
        match record {
            Some(record) if record.version != RECORD_VERSION => {
                Err(AttemptError::Version { path: self.record_path(), version: record.version })
            }
            record => Ok(record),
        }
    }

    /// Replaces the record, whole or not at all.
    pub fn write_record(&self, record: &Record) -> Result<(), AttemptError> {
        write_json(&self.record_path(), record)
    }

    /// Waits for the attempt's lock, which is free again when the returned file is dropped or its process ends.
    pub fn lock(&self) -> Result<File, AttemptError> {
        let file = self.lock_file()?;
        file.lock().map_err(io_error("lock", &self.path))?;
        Ok(file)
    }

    /// The attempt's lock if nobody holds it; a living shim does.
    pub fn try_lock(&self) -> Result<Option<File>, AttemptError> {
        let file = self.lock_file()?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(source)) => Err(io_error("lock", &self.path)(source)),
        }
    }

    fn lock_file(&self) -> Result<File, AttemptError> {
        let path = self.path.join("lock");
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(FILE_MODE)
            .open(&path)
            .map_err(io_error("open", &path))
    }

    /// Removes the directory and everything in it; gone already counts as done.
    pub fn remove(&self) -> Result<(), AttemptError> {
        match fs::remove_dir_all(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error("remove", &self.path)(error))
            }
            _ => Ok(()),
        }
    }
}

/// The directory of all pods below `root`.
pub fn pods_dir(root: &Path) -> PathBuf {
    root.join("pods")
}

/// The directory of one container of one pod.
pub fn container_dir(root: &Path, pod: &str, container: &str) -> PathBuf {
    pods_dir(root).join(pod).join(container)
}

/// The environment entry that marks the processes of `key`.
pub fn mark(key: &ContainerKey) -> String {
    format!("{MARK}={key}")
}

/// Creates a directory and its parents, readable by the owner alone.
pub fn create_private_dir(path: &Path) -> Result<(), AttemptError> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path).map_err(io_error("create", path))
}

/// The names in a directory that are valid UTF-8, sorted; none when it does not exist.
pub fn names_in(path: &Path) -> Result<Vec<String>, AttemptError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("list", path)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry.map_err(io_error("list", path))?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Puts the path and the action around an IO error.
pub fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AttemptError {
    let path = path.to_owned();
    move |source| AttemptError::Io { action, path, source }
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, AttemptError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", path)(error)),
    };
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|source| AttemptError::Malformed { path: path.to_owned(), source })
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), AttemptError> {
    let bytes = serde_json::to_vec(value)
        .map_err(|source| AttemptError::Malformed { path: path.to_owned(), source })?;
    let temporary = path.with_extension("new");
    let written = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(FILE_MODE)
        .open(&temporary)
        .and_then(|mut file| file.write_all(&bytes));
    written.map_err(io_error("write", &temporary))?;
    fs::rename(&temporary, path).map_err(io_error("rename into", path))
}

#[cfg(test)]
mod tests {
    use super::{AttemptDir, AttemptError, Facts, Record};
    use std::os::unix::fs::PermissionsExt;
    use strata_plan::pod::observed::ContainerKey;

    #[test]
    fn an_attempt_is_created_once_private_and_read_back() {
        let root = tempfile::tempdir().unwrap();
        let dir = AttemptDir::of(root.path(), &ContainerKey::new("u", "c", 0).unwrap());
        let facts = Facts {
            namespace: "default".into(),
            pod_name: "web".into(),
            grace_seconds: 30,
            backoff_seconds: 10,
            created_at: "2026-11-30T20:00:00Z".parse().unwrap(),
        };
        dir.create(&facts).unwrap();
        assert_eq!(std::fs::metadata(dir.path()).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(dir.create(&facts).is_err());
        assert_eq!(dir.facts().unwrap(), Some(facts));
        assert_eq!(dir.record().unwrap(), None);
        let record = Record::new("boot".into(), None);
        dir.write_record(&record).unwrap();
        assert_eq!(dir.record().unwrap(), Some(record));
        dir.remove().unwrap();
        dir.remove().unwrap();
    }

    #[test]
    fn a_record_of_a_newer_version_is_refused_not_misread() {
        let root = tempfile::tempdir().unwrap();
        let dir = AttemptDir::at(root.path().to_owned());
        let text = r#"{"version":9,"boot_id":"b","shim":null,"workload":null,"started_at":null,"exit":null}"#;
        std::fs::write(root.path().join("record.json"), text).unwrap();
        assert!(matches!(dir.record(), Err(AttemptError::Version { version: 9, .. })));
    }

    #[test]
    fn the_lock_is_held_once() {
        let root = tempfile::tempdir().unwrap();
        let dir = AttemptDir::at(root.path().to_owned());
        let held = dir.try_lock().unwrap();
        assert!(held.is_some());
        assert!(dir.try_lock().unwrap().is_none());
        drop(held);
        assert!(dir.try_lock().unwrap().is_some());
    }
}
