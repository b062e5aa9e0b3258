//! Kustomizations: which files one needs, what the source's settings make of it, and the program that builds it.

mod settings;

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use strata_plan::application::rendered::{Fault, Manifest, RenderError};
use strata_plan::application::spec::Kustomize;

use super::bounds::MAX_FILE;
use super::export::{Export, failed};
use super::job::Job;
use super::manifests;
use super::program;
use super::reads::Reads;
use super::tree::{Kind, Place, broken, components, join};

/// Files that make a folder a kustomization; the first that is there counts.
pub const FILES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// Most kustomizations that one may be made of.
const MAX_PARTS: usize = 1000;
/// Fields whose entries may be elsewhere on the network.
const REMOTE: [&str; 3] = ["resources", "bases", "components"];

/// Builds the kustomization in a folder.
pub fn render(job: &Job<'_>, settings: &Kustomize, reads: &mut Reads) -> Result<Vec<Manifest>, RenderError> {
    let program = job.programs.kustomize()?;
    let scratch = tempfile::Builder::new().prefix("strata-kustomize-").tempdir().map_err(|e| failed(&e))?;
    let root = scratch.path().join("repository");
    let mut export = Export::new(job.snapshot, job.number, Some(job.place), root)?;
    export.add(&job.place.path, reads)?;
    let mut parts = Parts { job, export: &mut export, reads, seen: BTreeSet::new() };
    parts.follow(&job.place.path)?;
    for component in &settings.components {
        parts.refer(&job.place.path, component)?;
    }
    edit(job, &export, settings)?;
    let args = vec![export.on_disk(&job.place.path).display().to_string()];
    let home = scratch.path().join("home");
    fs::create_dir_all(&home).map_err(|error| failed(&error))?;
    let built = program::run(&program, &args, scratch.path(), &home, job.runtime);
    let place = scratch.path().join("repository").display().to_string();
    // Where it was on our disk is nobody's business.
    let built = built.map_err(|error| RenderError::new(error.fault, error.message.replace(&place, "")))?;
    let mut out = Vec::new();
    manifests::add(&join(&job.place.path, FILES[0]), &built, &mut out)?;
    for manifest in &mut out {
        manifest.line = 0;
    }
    Ok(out)
}

/// Follows what kustomizations refer to.
struct Parts<'a, 'e, 's> {
    job: &'a Job<'a>,
    export: &'e mut Export<'s>,
    reads: &'a mut Reads,
    seen: BTreeSet<String>,
}

impl Parts<'_, '_, '_> {
    fn follow(&mut self, folder: &str) -> Result<(), RenderError> {
        if !self.seen.insert(folder.to_owned()) {
            return Ok(());
        }
        if self.seen.len() > MAX_PARTS {
            return Err(broken(format!(
                "{folder}: the source is made of more than {MAX_PARTS} kustomizations"
            )));
        }
        let Some((path, kustomization)) = read(self.job, folder)? else { return Ok(()) };
        for field in REMOTE {
            let entries = kustomization[field].as_array().into_iter().flatten().filter_map(Value::as_str);
            if let Some(entry) = entries.into_iter().find(|entry| is_remote(entry)) {
                return Err(RenderError::new(
                    Fault::Settings,
                    format!(
                        "{path}: {field} has {entry}, which is elsewhere: what is rendered must be in the commit; put a copy into the repository"
                    ),
                ));
            }
        }
        let mut texts = BTreeSet::new();
        strings(&kustomization, &mut texts);
        for text in texts {
            self.refer(folder, &text)?;
        }
        Ok(())
    }

    /// Exports what a text may refer to; `name=path` refers to the path. One that leads nowhere is the program's to judge.
    fn refer(&mut self, folder: &str, text: &str) -> Result<(), RenderError> {
        for candidate in [Some(text), text.split_once('=').map(|(_, path)| path)].into_iter().flatten() {
            let Some(path) = relative(folder, candidate) else { continue };
            let Ok(Some(place)) = self.export.look(&path, self.reads) else { continue };
            self.export.add(&path, self.reads)?;
            if let Place { path, node } = place
                && node.kind == Kind::Folder
            {
                self.follow(&path)?;
            }
        }
        Ok(())
    }
}

/// A path relative to a folder, without `..`; none where it is no path or leads out of the repository.
fn relative(folder: &str, text: &str) -> Option<String> {
    const LONGEST: usize = 512;
    if text.is_empty()
        || text.len() > LONGEST
        || text.starts_with('/')
        || text.contains(['\n', '\0'])
        || text.contains("://")
    {
        return None;
    }
    let mut names: Vec<&str> = components(folder).collect();
    for name in components(text) {
        match name {
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

fn is_remote(entry: &str) -> bool {
    entry.contains("://")
        || entry.starts_with("git@")
        || entry.starts_with("github.com/")
        || entry.contains("?ref=")
        || entry.contains(".git//")
}

fn strings(value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            out.insert(text.clone());
        }
        Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        Value::Object(members) => members.values().for_each(|member| strings(member, out)),
        _ => {}
    }
}

/// The kustomization of a folder, with the path of its file; none where there is none.
fn read(job: &Job<'_>, folder: &str) -> Result<Option<(String, Value)>, RenderError> {
    for name in FILES {
        let path = join(folder, name);
        let Some(place) = job.snapshot.at(&path)? else { continue };
        if place.node.kind == Kind::Folder {
            continue;
        }
        let bytes = job.snapshot.read(place.node.id, &path, MAX_FILE)?;
        let fail = |error: &dyn std::fmt::Display| {
            let error = error.to_string();
            broken(format!("{path}: is no kustomization: {}", error.lines().next().unwrap_or_default()))
        };
        let text = std::str::from_utf8(&bytes).map_err(|error| fail(&error))?;
        let options = serde_saphyr::options! { with_snippet: false };
        let value: Value =
            serde_saphyr::from_str_with_options(text, options).map_err(|error| fail(&error))?;
        return Ok(Some((path, value)));
    }
    Ok(None)
}

/// Writes the source's settings into the exported kustomization.
fn edit(job: &Job<'_>, export: &Export<'_>, settings: &Kustomize) -> Result<(), RenderError> {
    if *settings == Kustomize::default() {
        return Ok(());
    }
    let Some((path, kustomization)) = read(job, &job.place.path)? else { return Ok(()) };
    let exists = |component: &str| {
        let path = relative(&job.place.path, component);
        path.is_some_and(|path| matches!(job.snapshot.at(&path), Ok(Some(_))))
    };
    let edited = settings::apply(kustomization, settings, exists)?;
    let disk = export.on_disk(&path);
    // It may be a link, whose target others may read too.
    fs::remove_file(&disk).map_err(|error| failed(&error))?;
    // JSON is YAML.
    fs::write(&disk, edited.to_string()).map_err(|error| failed(&error))
}
