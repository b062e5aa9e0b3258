//! A commit's files, read from the object database: no working tree is checked out, so that nothing on this machine can
//! be reached through a link. Remembers nothing between commits.

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use strata_plan::application::rendered::{Fault, RenderError};

use super::bounds::{MAX_DEPTH, MAX_LINKS};

/// One entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Its object: equal ids are equal contents.
    pub id: ObjectId,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file.
    File,
    /// A file that may be executed.
    Program,
    /// A symbolic link.
    Link,
    /// Another repository, which is not read.
    Submodule,
}

/// Where a path leads, links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path without links, `.` and `..`; empty for the root.
    pub path: String,
    /// What is there.
    pub node: Node,
}

/// A commit.
pub struct Snapshot {
    repository: gix::Repository,
    commit: ObjectId,
    root: ObjectId,
}

impl Snapshot {
    /// Opens a commit, or what an annotated tag leads to.
    pub fn open(repository: gix::Repository, commit: ObjectId) -> Result<Self, RenderError> {
        let lacks = |error: gix::Error| broken(format!("commit {commit} cannot be read: {error}"));
        let object = repository.find_object(commit).map_err(lacks)?;
        let object = object.peel_tags_to_end().map_err(lacks)?;
        if object.kind != gix::objs::Kind::Commit {
            let message = format!("{commit} is no commit but a {}", object.kind);
            return Err(RenderError::new(Fault::Missing, message));
        }
        let commit = object.id;
        let root = object.into_commit().tree_id().map_err(lacks)?.detach();
        Ok(Self { repository, commit, root })
    }

    /// Its id.
    pub fn commit(&self) -> ObjectId {
        self.commit
    }

    /// The tree of its root.
    pub fn root(&self) -> ObjectId {
        self.root
    }

    /// What is at a path, relative to the root. Links are followed within the repository; one that leads out of it, or in
    /// circles, is an error, and so is a path that does.
    pub fn at(&self, path: &str) -> Result<Option<Place>, RenderError> {
        let mut pending: Vec<String> = components(path).rev().map(str::to_owned).collect();
        let mut above: Vec<(String, ObjectId)> = Vec::new();
        let mut here = Node { kind: Kind::Folder, id: self.root };
        let mut links = 0;
        while let Some(name) = pending.pop() {
            if above.len() + pending.len() > MAX_DEPTH * 2 {
                return Err(broken(format!("{path}: is nested too deep")));
            }
            if name == ".." {
                let Some((_, folder)) = above.pop() else {
                    return Err(broken(format!("{path}: leads out of the repository")));
                };
                here = Node { kind: Kind::Folder, id: folder };
                continue;
            }
            if here.kind != Kind::Folder {
                return Ok(None);
            }
            let Some(found) = self.child(here.id, &name)? else { return Ok(None) };
            if found.kind == Kind::Link {
                links += 1;
                let target = self.link(found.id, path)?;
                if links > MAX_LINKS {
                    return Err(broken(format!("{path}: symbolic links lead in a circle")));
                }
                if target.starts_with('/') {
                    return Err(broken(format!(
                        "{path}: a symbolic link leads out of the repository, to {target}"
                    )));
                }
                pending.extend(components(&target).rev().map(str::to_owned));
                continue;
            }
            above.push((name, here.id));
            here = found;
        }
        let path = above.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join("/");
        Ok(Some(Place { path, node: here }))
    }

    /// The entries of a folder, in the order of their names. Names that are not text are left out.
    pub fn list(&self, folder: ObjectId) -> Result<Vec<(String, Node)>, RenderError> {
        let tree = self.repository.find_tree(folder).map_err(|error| unreadable(folder, &error))?;
        let mut entries = Vec::new();
        for entry in tree.iter() {
            let entry = entry.map_err(|error| unreadable(folder, &error))?;
            if let Ok(name) = std::str::from_utf8(entry.filename()) {
                entries.push((name.to_owned(), node(entry.mode().kind(), entry.object_id())));
            }
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(entries)
    }

    /// How many bytes a file has.
    pub fn size(&self, file: ObjectId) -> Result<u64, RenderError> {
        let header = self.repository.find_header(file).map_err(|error| unreadable(file, &error))?;
        Ok(header.size())
    }

    /// A file's bytes, at most `limit`; `path` is for the error.
    pub fn read(&self, file: ObjectId, path: &str, limit: u64) -> Result<Vec<u8>, RenderError> {
        let size = self.size(file)?;
        if size > limit {
            return Err(broken(format!("{path}: has {size} bytes; files may have {limit}")));
        }
        let mut blob = self.repository.find_blob(file).map_err(|error| unreadable(file, &error))?;
        Ok(blob.take_data())
    }

    /// Where a link points, as it is written.
    pub fn link(&self, link: ObjectId, path: &str) -> Result<String, RenderError> {
        const LONGEST: u64 = 4096;
        let target = self.read(link, path, LONGEST)?;
        String::from_utf8(target).map_err(|_| broken(format!("{path}: is a link to a name that is no text")))
    }

    fn child(&self, folder: ObjectId, name: &str) -> Result<Option<Node>, RenderError> {
        let tree = self.repository.find_tree(folder).map_err(|error| unreadable(folder, &error))?;
        Ok(tree.find_entry(name).map(|entry| node(entry.mode().kind(), entry.object_id())))
    }
}

/// The names in a path; `.` and empty ones are left out.
pub fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty() && *name != ".")
}

/// A path relative to a folder; `..` is kept for [`Snapshot::at`] to judge.
pub fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}

fn node(kind: EntryKind, id: ObjectId) -> Node {
    let kind = match kind {
        EntryKind::Tree => Kind::Folder,
        EntryKind::Blob => Kind::File,
        EntryKind::BlobExecutable => Kind::Program,
        EntryKind::Link => Kind::Link,
        EntryKind::Commit => Kind::Submodule,
    };
    Node { kind, id }
}

/// A fault of what the repository has.
pub fn broken(message: String) -> RenderError {
    RenderError::new(Fault::Broken, message)
}

fn unreadable(id: ObjectId, error: &gix::Error) -> RenderError {
    broken(format!("object {id} of the repository cannot be read: {error}"))
}
