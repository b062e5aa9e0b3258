//! Plain directories: which files of a folder are manifests, by Argo CD's settings. Knows no programs.

use globset::{GlobBuilder, GlobMatcher};
use strata_plan::application::rendered::{Fault, Manifest, RenderError};
use strata_plan::application::spec::Directory;

use super::bounds::{MAX_DEPTH, MAX_FILE, MAX_FILES, MAX_SOURCE_BYTES};
use super::manifests;
use super::reads::Reads;
use super::tree::{Kind, Node, Place, Snapshot, broken, join};

/// The endings of files that are manifests.
const ENDINGS: [&str; 3] = [".json", ".yaml", ".yml"];

/// The objects in a folder (or in one file), in the order of the paths of files. Links to files are followed, links to
/// folders are not: a folder is read once, where it is.
pub fn render(
    snapshot: &Snapshot,
    place: &Place,
    settings: &Directory,
    reads: &mut Reads,
    source: usize,
) -> Result<Vec<Manifest>, RenderError> {
    if settings.jsonnet.as_ref().is_some_and(|jsonnet| jsonnet.as_object().is_some_and(|j| !j.is_empty())) {
        return Err(RenderError::new(
            Fault::Settings,
            "directory.jsonnet is not supported; write YAML or JSON",
        ));
    }
    let (include, exclude) = (glob(&settings.include, "include")?, glob(&settings.exclude, "exclude")?);
    let mut files = Vec::new();
    match place.node.kind {
        Kind::Folder => {
            let recurse = if settings.recurse { MAX_DEPTH } else { 0 };
            collect(snapshot, place.node.id, "", recurse, &mut files)?;
        }
        _ => files.push((String::new(), place.node)),
    }
    let mut out = Vec::new();
    let mut bytes = 0;
    for (relative, node) in files {
        let wanted = relative.is_empty()
            || (ENDINGS.iter().any(|ending| relative.ends_with(ending))
                && !exclude.as_ref().is_some_and(|glob| glob.is_match(&relative))
                && include.as_ref().is_none_or(|glob| glob.is_match(&relative)));
        if !wanted {
            continue;
        }
        let path = if relative.is_empty() { place.path.clone() } else { join(&place.path, &relative) };
        let Some(id) = file(snapshot, &path, node, reads, source)? else { continue };
        bytes += snapshot.size(id)?;
        if bytes > MAX_SOURCE_BYTES {
            return Err(broken(format!("{path}: with it the source has more than {MAX_SOURCE_BYTES} bytes")));
        }
        manifests::add(&path, &snapshot.read(id, &path, MAX_FILE)?, &mut out)?;
    }
    Ok(out)
}

/// The contents of an entry, its link followed; none where it is no file.
fn file(
    snapshot: &Snapshot,
    path: &str,
    node: Node,
    reads: &mut Reads,
    source: usize,
) -> Result<Option<gix::ObjectId>, RenderError> {
    if node.kind != Kind::Link {
        return Ok(Some(node.id));
    }
    let target = snapshot.at(path)?;
    reads.note(source, path, target.as_ref().map(|target| target.node.id));
    match target {
        Some(target) if matches!(target.node.kind, Kind::File | Kind::Program) => Ok(Some(target.node.id)),
        Some(_) => Ok(None),
        None => Err(broken(format!("{path}: is a symbolic link to nothing"))),
    }
}

fn collect(
    snapshot: &Snapshot,
    folder: gix::ObjectId,
    prefix: &str,
    deeper: usize,
    out: &mut Vec<(String, Node)>,
) -> Result<(), RenderError> {
    for (name, node) in snapshot.list(folder)? {
        let path = join(prefix, &name);
        match node.kind {
            Kind::Folder if deeper > 0 => collect(snapshot, node.id, &path, deeper - 1, out)?,
            Kind::Folder | Kind::Submodule => {}
            Kind::File | Kind::Program | Kind::Link => out.push((path, node)),
        }
        if out.len() > MAX_FILES {
            return Err(broken(format!("the source has more than {MAX_FILES} files")));
        }
    }
    Ok(())
}

/// A glob of which `*` matches slashes too; `{a,b}` is either.
fn glob(text: &str, field: &str) -> Result<Option<GlobMatcher>, RenderError> {
    if text.is_empty() {
        return Ok(None);
    }
    match GlobBuilder::new(text).build() {
        Ok(glob) => Ok(Some(glob.compile_matcher())),
        Err(error) => {
            Err(RenderError::new(Fault::Settings, format!("directory.{field} {text:?}: {}", error.kind())))
        }
    }
}
