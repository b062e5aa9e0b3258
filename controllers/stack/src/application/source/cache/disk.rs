//! The copies of repositories as files: made, measured, thrown away. A copy is never the only one: what is wrong with it is
//! mended by throwing it away.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gix::ObjectId;
use gix::hash::Prefix;
use strata_plan::application::rendered::{Fault, RenderError};
use tokio::sync::RwLock;

use crate::application::source::bounds::{MAX_CACHE_BYTES, MAX_PACKS, MAX_REPOSITORIES};
use crate::application::source::remote;

/// Opens a copy, made anew where there is none or it cannot be opened.
pub fn ready(folder: &Path) -> Result<gix::Repository, RenderError> {
    let fail = |error: &dyn std::fmt::Display| {
        let message = format!("no copy of the repository can be kept in {}: {error}", folder.display());
        RenderError::new(Fault::Program, message)
    };
    if folder.exists() {
        match remote::open(folder) {
            Ok(repository) => return Ok(repository),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "a copy of a repository is damaged; it is fetched anew");
                std::fs::remove_dir_all(folder).map_err(|error| fail(&error))?;
            }
        }
    }
    remote::create(folder).map_err(|error| fail(&error))
}

/// Throws a copy away that many fetches have made large.
pub fn forget_if_grown(folder: &Path) {
    let packs = std::fs::read_dir(folder.join("objects/pack")).into_iter().flatten().flatten();
    let packs = packs.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "pack"));
    if packs.count() >= MAX_PACKS {
        remove(folder);
    }
}

fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        tracing::warn!(folder = %folder.display(), %error, "a copy of a repository cannot be removed");
    }
}

/// Removes the least recently used copies, those that nobody knows first, until the rest is within bounds.
pub fn make_room(folder: &Path, keep: &Path, known: &HashMap<PathBuf, (u64, Arc<RwLock<()>>)>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut copies: Vec<(u64, u64, PathBuf)> = entries
        .map(|entry| entry.path())
        .map(|path| (known.get(&path).map_or(0, |(used, _)| *used), size(&path), path))
        .collect();
    copies.sort();
    let mut bytes: u64 = copies.iter().map(|(_, size, _)| size).sum();
    let mut count = copies.len();
    for (_, size, path) in copies {
        if bytes <= MAX_CACHE_BYTES && count <= MAX_REPOSITORIES {
            return;
        }
        if path == keep {
            continue;
        }
        let guard = known.get(&path).map(|(_, disk)| disk.try_write());
        if matches!(guard, Some(Err(_))) {
            continue;
        }
        remove(&path);
        bytes -= size;
        count -= 1;
    }
}

fn size(folder: &Path) -> u64 {
    let mut total = 0;
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => pending.push(entry.path()),
                Ok(meta) => total += meta.len(),
                Err(_) => {}
            }
        }
    }
    total
}

/// The one commit that begins with some digits.
pub fn find_short(
    repository: &gix::Repository,
    url: &str,
    digits: &str,
) -> Result<Option<ObjectId>, RenderError> {
    let broken = |error: &dyn std::fmt::Display| RenderError::new(Fault::Broken, format!("{url}: {error}"));
    let prefix = Prefix::from_hex(digits).map_err(|error| broken(&error))?;
    let mut found = std::collections::HashSet::default();
    repository.objects.lookup_prefix(prefix, Some(&mut found)).map_err(|error| broken(&error))?;
    let is_commit = |id: &ObjectId| {
        repository.find_header(*id).is_ok_and(|header| header.kind() == gix::objs::Kind::Commit)
    };
    let mut commits = found.into_iter().filter(is_commit);
    match (commits.next(), commits.next()) {
        (one, None) => Ok(one),
        _ => {
            let message = format!("{url} has several commits that begin with {digits}: write more digits");
            Err(RenderError::new(Fault::Missing, message))
        }
    }
}
