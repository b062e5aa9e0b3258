//! The data directory: what is where, who may use it, and whether this version understands it. Knows nothing of the
//! files' content.
//!
//! ```text
//! strata.json        format of the directory, and the version that made it
//! lock               held by the one `strata up` that uses it; its process id
//! children.lock      held by that one's processes, until the last of them has ended
//! kubeconfig         the administrator's, for kubectl and `strata`
//! pki/               certificates and keys: ca, apiserver, apiserver-kubelet-client, admin, node, controllers
//! pki/sa.{key,pub}   the key pair that service account tokens are signed with
//! roles/NAME.kubeconfig   identity and server of each controller and of the node agent
//! store/             the API server's data
//! node/              the node agent's: what runs, and its logs
//! run/NAME.sock      the admin port of each process but the API server's, for `strata queue`
//! ```
//!
//! Directories are 0700 and files 0600; files are replaced as a whole.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::files::{self, FileError};

/// The layout that this version writes; a directory of a larger one is left alone.
const FORMAT: u32 = 1;
/// Longest path of a Unix socket, its closing zero included (`sun_path`, unix(7)).
const MAX_SOCKET_PATH: usize = 108;
/// Most bytes of the lock file that are looked at: a process id.
const LOCK_BYTES: u64 = 32;

/// Why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// No place was given and the environment names none.
    #[error("no data directory: neither XDG_DATA_HOME nor HOME is set; name one with --data-dir")]
    NoHome,
    /// Another `strata up` uses it.
    #[error("{path} is in use by another `strata up`{}; stop that one, or choose another --data-dir", by(.pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other process, where it said.
        pid: Option<u32>,
    },
    /// A newer version made it.
    #[error(
        "{path} was made by strata {version} (format {found}, this is strata {} with format {FORMAT}): use that \
         version or a newer one, or choose another --data-dir", env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The version that wrote it.
        version: String,
    },
    /// The file that tells the format makes no sense.
    #[error("{path} is damaged: restore it, or choose another --data-dir")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        #[source]
        source: serde_json::Error,
    },
    /// A file or directory failed.
    #[error(transparent)]
    File(#[from] FileError),
}

fn by(pid: &Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}

/// What `strata.json` says.
#[derive(Debug, Serialize, Deserialize)]
struct Marker {
    format: u32,
    version: String,
}

/// The places in a data directory. A value of it says nothing of what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Layout { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    /// Certificates and keys.
    pub fn pki(&self) -> PathBuf {
        self.root.join("pki")
    }

    /// The kubeconfigs of the roles.
    pub fn roles(&self) -> PathBuf {
        self.root.join("roles")
    }

    /// The kubeconfig of one role: a controller's name, or `node`.
    pub fn role_kubeconfig(&self, role: &str) -> PathBuf {
        self.roles().join(format!("{role}.kubeconfig"))
    }

    /// The admin ports of processes.
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The admin port of one process. `None` where the path is longer than a Unix socket's may be.
    pub fn admin_socket(&self, process: &str) -> Option<PathBuf> {
        let path = self.run().join(format!("{process}.sock"));
        (path.as_os_str().len() < MAX_SOCKET_PATH).then_some(path)
    }

    /// The API server's data.
    pub fn store(&self) -> PathBuf {
        self.root.join("store")
    }

    /// The node agent's data.
    pub fn node(&self) -> PathBuf {
        self.root.join("node")
    }

    /// What the application controller has fetched from repositories; all of it can be fetched again.
    pub fn repositories(&self) -> PathBuf {
        self.root.join("repositories")
    }

    /// Whether `strata up` has made a data directory there.
    pub fn is_there(&self) -> bool {
        self.marker().is_file()
    }

    fn marker(&self) -> PathBuf {
        self.root.join("strata.json")
    }

    fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    fn children_lock(&self) -> PathBuf {
        self.root.join("children.lock")
    }
}

/// The default place: `$XDG_DATA_HOME/strata`, else `~/.local/share/strata`. Pure over the environment.
///
/// # Errors
/// `NoHome` where neither is an absolute path.
pub fn default_root(env: impl Fn(&str) -> Option<String>) -> Result<PathBuf, DataDirError> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|share| share.join("strata"))
        .ok_or(DataDirError::NoHome)
}

/// A data directory that this process alone uses, until the value is dropped or the process ends.
#[derive(Debug)]
pub struct DataDir {
    layout: Layout,
    lock: File,
    unclean: bool,
}

impl DataDir {
    /// Creates the directory where needed, takes its lock and checks its format.
    ///
    /// # Errors
    /// `InUse`, `Newer`, `Damaged`, or a `File` that cannot be written.
    pub fn open(root: &Path) -> Result<DataDir, DataDirError> {
        let root = std::path::absolute(root).map_err(FileError::of("find", root))?;
        let layout = Layout::new(root);
        files::private_dir(layout.root())?;
        let (lock, unclean) = take_lock(&layout)?;
        check_format(&layout)?;
        for dir in [layout.pki(), layout.roles(), layout.run(), layout.store(), layout.node()] {
            files::private_dir(&dir)?;
        }
        Ok(DataDir { layout, lock, unclean })
    }

    /// What is where.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether the last user of the directory did not say goodbye: its children may still be ending.
    pub fn is_unclean(&self) -> bool {
        self.unclean
    }

    /// Takes the lock that our processes are to hold along with us, by inheriting the file; `None` while processes of
    /// an earlier user, which did not stop them, hold it still.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn children_lock(&self) -> Result<Option<File>, FileError> {
        let path = self.layout.children_lock();
        let file = open_lock(&path)?;
        Ok(try_lock(&file, &path)?.then_some(file))
    }

    /// Says that everything that used the directory has ended.
    ///
    /// # Errors
    /// The lock file cannot be written.
    pub fn close(self) -> Result<(), FileError> {
        self.lock.set_len(0).map_err(FileError::of("write", &self.layout.lock()))
    }
}

/// Takes the lock and leaves our process id in it. The second value says that a process id was still there.
fn take_lock(layout: &Layout) -> Result<(File, bool), DataDirError> {
    let path = layout.lock();
    let mut file = open_lock(&path)?;
    let locked = try_lock(&file, &path)?;
    let mut text = String::new();
    (&file).take(LOCK_BYTES).read_to_string(&mut text).map_err(FileError::of("read", &path))?;
    if !locked {
        return Err(DataDirError::InUse { path: layout.root().to_owned(), pid: text.trim().parse().ok() });
    }
    let write = |file: &mut File| {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        writeln!(file, "{}", std::process::id())
    };
    write(&mut file).map_err(FileError::of("write", &path))?;
    Ok((file, !text.trim().is_empty()))
}

fn open_lock(path: &Path) -> Result<File, FileError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(path).map_err(FileError::of("open", path))
}

/// Whether nobody else holds the lock, and now we do.
fn try_lock(file: &File, path: &Path) -> Result<bool, FileError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(FileError::of("lock", path)(errno.into())),
    }
}

/// Checks the marker, and leaves one in a directory that has none.
fn check_format(layout: &Layout) -> Result<(), DataDirError> {
    let path = layout.marker();
    let Some(text) = files::read_text(&path)? else {
        let marker = Marker { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned() };
        let text = serde_json::to_string(&marker)
            .map_err(|source| DataDirError::Damaged { path: path.clone(), source })?;
        return Ok(files::write_private(&path, format!("{text}\n").as_bytes())?);
    };
    let marker: Marker =
        serde_json::from_str(&text).map_err(|source| DataDirError::Damaged { path, source })?;
    if marker.format > FORMAT {
        let path = layout.root().to_owned();
        return Err(DataDirError::Newer { path, found: marker.format, version: marker.version });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_default_follows_the_environment() {
        let root = |xdg: Option<&str>, home: Option<&str>| {
            default_root(|name| match name {
                "XDG_DATA_HOME" => xdg.map(str::to_owned),
                "HOME" => home.map(str::to_owned),
                _ => None,
            })
            .ok()
        };
        assert_eq!(root(Some("/x"), Some("/h")), Some(PathBuf::from("/x/strata")));
        assert_eq!(root(Some("relative"), Some("/h")), Some(PathBuf::from("/h/.local/share/strata")));
        assert_eq!(root(None, None), None);
    }

    #[test]
    fn the_second_user_learns_who_the_first_is() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataDir::open(dir.path()).unwrap();
        assert!(!first.is_unclean());
        let error = DataDir::open(dir.path()).unwrap_err();
        let DataDirError::InUse { pid, .. } = &error else { panic!("{error}") };
        assert_eq!(*pid, Some(std::process::id()));
        drop(first);
        let second = DataDir::open(dir.path()).unwrap();
        assert!(second.is_unclean());
        second.close().unwrap();
        assert!(!DataDir::open(dir.path()).unwrap().is_unclean());
    }

    #[test]
    fn the_children_hold_the_directory_too() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        let ours = data.children_lock().unwrap().unwrap();
        let inherited = ours.try_clone().unwrap();
        drop(ours);
        assert!(data.children_lock().unwrap().is_none(), "a child holds it");
        drop(inherited);
        assert!(data.children_lock().unwrap().is_some());
    }

    #[test]
    fn data_of_a_newer_version_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let marker = r#"{"format":99,"version":"9.9.9"}"#;
        fs::write(dir.path().join("strata.json"), marker).unwrap();
        let text = DataDir::open(dir.path()).unwrap_err().to_string();
        assert!(text.contains("9.9.9") && text.contains("--data-dir"), "{text}");
        assert_eq!(fs::read_to_string(dir.path().join("strata.json")).unwrap(), marker);
        assert!(!dir.path().join("pki").exists());
    }
}
