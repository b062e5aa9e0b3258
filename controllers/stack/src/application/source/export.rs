//! Files of a commit for a program to read: only what the source needs, in a folder of its own, with the layout of the
//! repository. What is not exported cannot be read, so that what was exported is all that a render depends on.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use strata_plan::application::rendered::{Fault, RenderError};

use super::bounds::{MAX_DEPTH, MAX_FILES, MAX_SOURCE_BYTES};
use super::reads::Reads;
use super::tree::{Kind, Node, Place, Snapshot, broken, components, join};

/// A folder with files of one repository.
pub struct Export<'a> {
    snapshot: &'a Snapshot,
    source: usize,
    /// The part of the source itself, whose tree is in the key of the render already.
    own: Option<String>,
    root: PathBuf,
    done: BTreeSet<String>,
    files: usize,
    bytes: u64,
}

impl<'a> Export<'a> {
    /// Into `root`, which is made; `own` is the folder of the source, where it is of this repository.
    pub fn new(
        snapshot: &'a Snapshot,
        source: usize,
        own: Option<&Place>,
        root: PathBuf,
    ) -> Result<Self, RenderError> {
        fs::create_dir_all(&root).map_err(|error| failed(&error))?;
        let own = own.map(|place| place.path.clone());
        Ok(Self { snapshot, source, own, root, done: BTreeSet::new(), files: 0, bytes: 0 })
    }

    /// Where a path of the repository is on disk.
    pub fn on_disk(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Exports what is at a path, with all below it and all that links in it lead to. Answers where it is; none where there
    /// is nothing.
    pub fn add(&mut self, path: &str, reads: &mut Reads) -> Result<Option<Place>, RenderError> {
        let found = self.look(path, reads)?;
        let Some(place) = found else { return Ok(None) };
        let mut pending = VecDeque::from([place.clone()]);
        while let Some(next) = pending.pop_front() {
            self.write(&next.path, next.node, reads, &mut pending)?;
        }
        Ok(Some(place))
    }

    /// What is at a path: noted as read where it is not the source's own.
    pub fn look(&self, path: &str, reads: &mut Reads) -> Result<Option<Place>, RenderError> {
        let found = self.snapshot.at(path)?;
        let inside = |own: &String| {
            found.as_ref().is_some_and(|place| place.path == *own || place.path.starts_with(&join(own, "")))
        };
        if !self.own.as_ref().is_some_and(|own| own.is_empty() || inside(own)) {
            reads.note(self.source, path, found.as_ref().map(|place| place.node.id));
        }
        Ok(found)
    }

    fn write(
        &mut self,
        path: &str,
        node: Node,
        reads: &mut Reads,
        pending: &mut VecDeque<Place>,
    ) -> Result<(), RenderError> {
        if !self.done.insert(path.to_owned()) {
            return Ok(());
        }
        if components(path).count() > MAX_DEPTH {
            return Err(broken(format!("{path}: is nested too deep")));
        }
        self.files += 1;
        if self.files > MAX_FILES {
            return Err(broken(format!("the source has more than {MAX_FILES} files")));
        }
        let disk = self.on_disk(path);
        match node.kind {
            Kind::Submodule => Ok(()),
            Kind::Folder => {
                fs::create_dir_all(&disk).map_err(|error| failed(&error))?;
                for (name, child) in self.snapshot.list(node.id)? {
                    self.write(&join(path, &name), child, reads, pending)?;
                }
                Ok(())
            }
            Kind::Link => {
                // One that leads out of the repository is an error here, so that none can be followed on disk.
                let target = self.snapshot.link(node.id, path)?;
                if let Some(place) = self.look(path, reads)? {
                    pending.push_back(place);
                }
                parent(&disk)?;
                match symlink(target, &disk) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(failed(&error)),
                    _ => Ok(()),
                }
            }
            Kind::File | Kind::Program => {
                self.bytes += self.snapshot.size(node.id)?;
                if self.bytes > MAX_SOURCE_BYTES {
                    return Err(broken(format!(
                        "{path}: with it the source has more than {MAX_SOURCE_BYTES} bytes"
                    )));
                }
                parent(&disk)?;
                let content = self.snapshot.read(node.id, path, MAX_SOURCE_BYTES)?;
                fs::write(&disk, content).map_err(|error| failed(&error))?;
                let mode = if node.kind == Kind::Program { 0o700 } else { 0o600 };
                fs::set_permissions(&disk, fs::Permissions::from_mode(mode)).map_err(|error| failed(&error))
            }
        }
    }
}

fn parent(path: &Path) -> Result<(), RenderError> {
    path.parent().map_or(Ok(()), |folder| fs::create_dir_all(folder).map_err(|error| failed(&error)))
}

/// A fault of our own disk.
pub fn failed(error: &std::io::Error) -> RenderError {
    RenderError::new(Fault::Program, format!("files for a program cannot be written: {error}"))
}
