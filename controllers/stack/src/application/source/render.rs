//! From sources to objects: which commit, what kind of source, whether it was rendered before; and the rendering. Knows no
//! Application beyond its name and the namespace of its destination.

mod kept;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use strata_plan::application::rendered::{Fault, Manifest, RenderError, Rendered, SourceType};
use strata_plan::application::spec::Source;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::Access;
use super::bounds::{MAX_PROGRAMS, MAX_RENDERINGS};
use super::cache::{Held, Newness, Repositories, blocking};
use super::directory;
use super::helm;
use super::job::Job;
use super::kustomize;
use super::manifests;
use super::program::Programs;
use super::reads::{Reads, digest};
use super::remote;
use super::tree::{Kind, Place, Snapshot, join};
use kept::Kept;

/// What is to be rendered.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Name of the Application: of a release, unless the source says.
    pub name: String,
    /// Namespace of its destination.
    pub namespace: String,
    /// The sources.
    pub sources: Vec<Source>,
    /// Renders of before do not count.
    pub anew: bool,
}

/// Renders sources.
pub struct Sources {
    repositories: Repositories,
    shop: Arc<Shop>,
}

/// What renders share.
struct Shop {
    kept: Kept,
    /// For what only reads: more at once would be slower for all.
    slots: Arc<Semaphore>,
    /// For programs, so that slow ones hold up nobody who needs none.
    program_slots: Semaphore,
    programs: Programs,
}

/// A source whose commit is on disk.
struct Opened {
    source: Source,
    held: Held,
}

impl Sources {
    /// Keeps copies of repositories in a folder, which is made.
    pub fn new(folder: PathBuf, programs: Programs) -> std::io::Result<Self> {
        let shop = Shop {
            kept: Kept::default(),
            slots: Arc::new(Semaphore::new(MAX_RENDERINGS)),
            program_slots: Semaphore::new(MAX_PROGRAMS),
            programs,
        };
        Ok(Self { repositories: Repositories::new(folder)?, shop: Arc::new(shop) })
    }

    /// The repositories.
    pub fn repositories(&self) -> &Repositories {
        &self.repositories
    }

    /// Renders all sources, in order; those that are only referred to answer no objects. The same object twice, in one source
    /// or in two, is an error.
    pub async fn render(
        &self,
        task: &Task,
        access: &Access,
        newness: Newness,
    ) -> Result<Vec<Rendered>, RenderError> {
        if task.sources.is_empty() {
            return Err(settings("the Application has no source: set spec.source or spec.sources"));
        }
        let mut opened = Vec::with_capacity(task.sources.len());
        for source in &task.sources {
            check(source)?;
            let target = &source.target_revision;
            let held = self.repositories.commit(&source.repo_url, target, access, newness).await?;
            opened.push(Opened { source: source.clone(), held });
        }
        let (shop, task, runtime) = (Arc::clone(&self.shop), task.clone(), Handle::current());
        let slot = Arc::clone(&shop.slots).acquire_owned().await.ok();
        blocking(move || shop.render(&task, &opened, &runtime, slot)).await
    }
}

/// What we do not do is said before anybody is asked.
fn check(source: &Source) -> Result<(), RenderError> {
    if source.plugin.as_ref().is_some_and(|plugin| !plugin.is_null()) {
        return Err(settings("source.plugin is not supported; use a directory, Kustomize or Helm"));
    }
    if !source.chart.is_empty() {
        return Err(settings(&format!(
            "source.chart {}: charts of Helm repositories are not supported; put the chart into git and set source.path",
            source.chart
        )));
    }
    if source.path.starts_with('/') {
        return Err(settings(&format!(
            "source.path {}: must be relative to the root of the repository",
            source.path
        )));
    }
    let said = [
        ("helm", source.helm.is_some()),
        ("kustomize", source.kustomize.is_some()),
        ("directory", source.directory.is_some()),
    ];
    let said: Vec<&str> = said.iter().filter(|(_, said)| *said).map(|(name, _)| *name).collect();
    if said.len() > 1 {
        return Err(settings(&format!(
            "a source is of one kind, this one has {}: keep one",
            said.join(" and ")
        )));
    }
    Ok(())
}

fn settings(message: &str) -> RenderError {
    RenderError::new(Fault::Settings, message)
}

impl Shop {
    fn render(
        &self,
        task: &Task,
        opened: &[Opened],
        runtime: &Handle,
        mut slot: Option<OwnedSemaphorePermit>,
    ) -> Result<Vec<Rendered>, RenderError> {
        let mut snapshots = BTreeMap::new();
        for (number, one) in opened.iter().enumerate() {
            let broken = |error: gix::Error| {
                let message = format!("the copy of {} cannot be opened: {error}", one.source.repo_url);
                RenderError::new(Fault::Broken, message)
            };
            let repository = remote::open(&one.held.folder).map_err(broken)?;
            snapshots.insert(number, Snapshot::open(repository, one.held.commit)?);
        }
        let snapshots: BTreeMap<usize, &Snapshot> = snapshots.iter().map(|(at, s)| (*at, s)).collect();
        let mut answers = Vec::with_capacity(opened.len());
        for (number, one) in opened.iter().enumerate() {
            let scene = Scene { task, sources: opened, snapshots: &snapshots, number, runtime };
            answers.push(self.one(&scene, &one.source, &mut slot)?);
        }
        let all = answers.iter().flat_map(|one: &Rendered| one.manifests.iter());
        manifests::no_duplicates(all)?;
        Ok(answers)
    }

    fn one(
        &self,
        scene: &Scene<'_>,
        source: &Source,
        slot: &mut Option<OwnedSemaphorePermit>,
    ) -> Result<Rendered, RenderError> {
        let snapshot = scene.snapshot();
        let revision = snapshot.commit().to_string();
        if !source.reference.is_empty() && source.path.is_empty() {
            return Ok(Rendered { key: revision.clone(), revision, ..Rendered::default() });
        }
        let place = scene.place(source)?;
        let source_type = detect(snapshot, source, &place)?;
        let base = base(scene.task, source, source_type, &place)?;
        if !scene.task.anew
            && let Some(kept) = self.kept.find(&base, scene.snapshots)
        {
            return Ok(Rendered { revision, ..kept });
        }
        // Who runs a program gives the slot for reading away: programs wait for each other alone.
        let is_program = source_type != SourceType::Directory;
        let _program = is_program.then(|| {
            slot.take();
            scene.runtime.block_on(self.program_slots.acquire())
        });
        let mut reads = Reads::default();
        let manifests = scene.manifests(&self.programs, source, source_type, &place, &mut reads)?;
        let key = reads.key(&base)?;
        let rendered = Rendered { revision, key, source_type, manifests: Arc::new(manifests) };
        self.kept.keep(base, reads, rendered.clone());
        Ok(rendered)
    }
}

/// One source among all of its Application.
struct Scene<'a> {
    task: &'a Task,
    sources: &'a [Opened],
    snapshots: &'a BTreeMap<usize, &'a Snapshot>,
    number: usize,
    runtime: &'a Handle,
}

impl Scene<'_> {
    fn snapshot(&self) -> &Snapshot {
        self.snapshots[&self.number]
    }

    /// The folder of the source.
    fn place(&self, source: &Source) -> Result<Place, RenderError> {
        let snapshot = self.snapshot();
        let wherein = format!("{} at {}", source.repo_url, snapshot.commit().to_hex_with_len(10));
        match snapshot.at(&source.path)? {
            Some(place) if place.node.kind == Kind::Folder => Ok(place),
            Some(_) => Err(missing(format!("{wherein}: path {} is no folder", source.path))),
            None => Err(missing(format!("{wherein} has no folder {}", source.path))),
        }
    }

    fn manifests(
        &self,
        programs: &Programs,
        source: &Source,
        source_type: SourceType,
        place: &Place,
        reads: &mut Reads,
    ) -> Result<Vec<Manifest>, RenderError> {
        let job = || Job {
            snapshot: self.snapshot(),
            number: self.number,
            place,
            references: self.references(),
            name: &self.task.name,
            namespace: &self.task.namespace,
            programs,
            runtime: self.runtime,
        };
        match source_type {
            SourceType::Directory => {
                let directory = source.directory.clone().unwrap_or_default();
                directory::render(self.snapshot(), place, &directory, reads, self.number)
            }
            SourceType::Kustomize => {
                kustomize::render(&job(), &source.kustomize.clone().unwrap_or_default(), reads)
            }
            SourceType::Helm => helm::render(&job(), &source.helm.clone().unwrap_or_default(), reads),
        }
    }

    fn references(&self) -> BTreeMap<&str, (usize, &Snapshot)> {
        let all = self.sources.iter().enumerate().filter(|(_, one)| !one.source.reference.is_empty());
        all.map(|(at, one)| (one.source.reference.as_str(), (at, self.snapshots[&at]))).collect()
    }
}

fn missing(message: String) -> RenderError {
    RenderError::new(Fault::Missing, message)
}

/// What a source is rendered by: what its settings say, else what its files say.
fn detect(snapshot: &Snapshot, source: &Source, place: &Place) -> Result<SourceType, RenderError> {
    if source.helm.is_some() {
        return Ok(SourceType::Helm);
    }
    if source.kustomize.is_some() {
        return Ok(SourceType::Kustomize);
    }
    if source.directory.is_some() {
        return Ok(SourceType::Directory);
    }
    let has = |name: &str| snapshot.at(&join(&place.path, name)).map(|found| found.is_some());
    if has(helm::FILE)? {
        return Ok(SourceType::Helm);
    }
    for name in kustomize::FILES {
        if has(name)? {
            return Ok(SourceType::Kustomize);
        }
    }
    Ok(SourceType::Directory)
}

/// Everything that a render depends on which is known before it: the folder's tree, where it is, and the settings. The
/// names of Applications count only where a program is told them.
fn base(task: &Task, source: &Source, source_type: SourceType, place: &Place) -> Result<String, RenderError> {
    let told = match source_type {
        SourceType::Directory | SourceType::Kustomize => None,
        SourceType::Helm => Some((&task.name, &task.namespace)),
    };
    let refers = task.sources.iter().map(|source| &source.reference).collect::<Vec<_>>();
    let text = json!({
        "type": source_type.as_str(), "path": place.path, "tree": place.node.id.to_string(), "told": told,
        "directory": source.directory, "kustomize": source.kustomize, "helm": source.helm,
        "references": if source_type == SourceType::Helm { refers } else { Vec::new() },
    });
    digest(text.to_string().as_bytes())
}
