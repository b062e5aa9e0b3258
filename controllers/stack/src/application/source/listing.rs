//! What a commit has, for those who make Applications of folders and files. Renders nothing.

use gix::ObjectId;
use strata_plan::application::rendered::RenderError;

use super::access::Access;
use super::bounds::{MAX_DEPTH, MAX_FILE, MAX_FILES, MAX_SOURCE_BYTES};
use super::cache::{Newness, Repositories, blocking};
use super::remote;
use super::tree::{Kind, Snapshot, broken, join};

/// Folders and chosen files of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The commit, in hex.
    pub revision: String,
    /// All folders, in the order of their paths; the root is not among them.
    pub folders: Vec<String>,
    /// The files that were chosen, with their texts; those that are no text are left out.
    pub files: Vec<(String, String)>,
}

/// Lists the commit that a target revision is; `chosen` says by path which files are read. Links are not followed.
pub async fn list(
    repositories: &Repositories,
    (url, target): (&str, &str),
    access: &Access,
    newness: Newness,
    chosen: impl Fn(&str) -> bool + Send + 'static,
) -> Result<Listing, RenderError> {
    let held = repositories.commit(url, target, access, newness).await?;
    let url = url.to_owned();
    blocking(move || {
        let opened = remote::open(&held.folder);
        let repository =
            opened.map_err(|error| broken(format!("the copy of {url} cannot be opened: {error}")))?;
        let snapshot = Snapshot::open(repository, held.commit)?;
        let mut listing = Listing { revision: snapshot.commit().to_string(), ..Listing::default() };
        let mut walk =
            Walk { snapshot: &snapshot, chosen: &chosen, listing: &mut listing, seen: 0, bytes: 0 };
        walk.folder(snapshot.root(), "", 0)?;
        Ok(listing)
    })
    .await
}

struct Walk<'a> {
    snapshot: &'a Snapshot,
    chosen: &'a dyn Fn(&str) -> bool,
    listing: &'a mut Listing,
    seen: usize,
    bytes: u64,
}

impl Walk<'_> {
    fn folder(&mut self, id: ObjectId, path: &str, depth: usize) -> Result<(), RenderError> {
        if depth > MAX_DEPTH {
            return Err(broken(format!("{path}: is nested too deep")));
        }
        for (name, node) in self.snapshot.list(id)? {
            let path = join(path, &name);
            self.seen += 1;
            if self.seen > MAX_FILES {
                return Err(broken(format!("the repository has more than {MAX_FILES} files")));
            }
            match node.kind {
                Kind::Folder => {
                    self.listing.folders.push(path.clone());
                    self.folder(node.id, &path, depth + 1)?;
                }
                Kind::File | Kind::Program if (self.chosen)(&path) => self.file(node.id, path)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn file(&mut self, id: ObjectId, path: String) -> Result<(), RenderError> {
        self.bytes += self.snapshot.size(id)?;
        if self.bytes > MAX_SOURCE_BYTES {
            return Err(broken(format!("{path}: with it more than {MAX_SOURCE_BYTES} bytes would be read")));
        }
        if let Ok(text) = String::from_utf8(self.snapshot.read(id, &path, MAX_FILE)?) {
            self.listing.files.push((path, text));
        }
        Ok(())
    }
}
