//! How the layers with effects act: upstream is read, images are built, published and delivered. Decides nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use strata_client::error::Class;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;
use strata_plan::controller::{Action, Key, MapTo, Next, ObserveError, View, Watched};
use strata_plan::typed::Typed;
use strata_runtime::perform::Performer;
use strata_runtime::queue::Job;
use strata_runtime::reconcile::{Context, Outcome, Reconcile, ReconcileError};

use crate::api::{self, DeliverySpec, HeldStatus, ImageBuildSpec, PublicationSpec, ReleaseTrack};
use crate::held::{self, Step};
use crate::layout::{Layout, LayoutError};
use crate::pack::{self, PackError};
use crate::track;

/// Where everything is, and one lock a layout: changes of one must not overlap.
#[derive(Debug)]
pub struct Site {
    root: PathBuf,
    locks: Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>,
}

impl Site {
    /// The site in a folder.
    pub fn new(root: PathBuf) -> Arc<Self> {
        Arc::new(Self { root, locks: Mutex::default() })
    }

    /// Where built images of a name are.
    pub fn workshop(&self, image: &str) -> PathBuf {
        self.root.join("workshop").join(image)
    }

    /// Where published images of a name are.
    pub fn registry(&self, image: &str) -> PathBuf {
        self.root.join("registry").join(image)
    }

    /// Where a customer has the images of a name.
    pub fn customer(&self, customer: &str, image: &str) -> PathBuf {
        self.root.join("customers").join(customer).join(image)
    }

    fn lock(&self, layout: &Path) -> Arc<Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(layout.to_owned()).or_default())
    }
}

/// What a build does; a test puts one of its own here.
pub type Build = Arc<dyn Fn(&Path, &Layout, &str) -> Result<String, PackError> + Send + Sync>;

/// An image at a place: what an object of one of the three lowest layers wishes.
#[derive(Clone)]
struct Wish {
    layout: PathBuf,
    tag: String,
    wanted: Option<String>,
    source: Source,
}

/// Where it comes from.
#[derive(Clone)]
enum Source {
    Sources(PathBuf, Build),
    Layout(PathBuf),
}

/// Which of the three.
#[derive(Clone)]
pub enum Layer {
    /// Builds: expensive.
    Builds(Build),
    /// Publications.
    Publications,
    /// Deliveries.
    Deliveries,
}

/// Holds images where objects of one layer wish them.
pub struct Holder {
    /// Which layer.
    pub layer: Layer,
    /// Where.
    pub site: Arc<Site>,
}

/// The parts of an object that every layer has.
#[derive(serde::Deserialize)]
struct Wished<S> {
    spec: S,
    #[serde(default)]
    status: HeldStatus,
}

fn effect(message: String, class: Class) -> ReconcileError {
    ReconcileError::Effect { message, class }
}

/// An error with all its sources.
fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut at = error.source();
    while let Some(cause) = at {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        at = cause.source();
    }
    text
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PackError> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|error| sentence(&error)),
        Err(error) => Err(error.to_string()),
    }
}

impl Holder {
    fn resource(&self) -> ResourceType {
        match self.layer {
            Layer::Builds(_) => api::builds(),
            Layer::Publications => api::publications(),
            Layer::Deliveries => api::deliveries(),
        }
    }

    fn wish(&self, object: &Object) -> Result<Wish, ReconcileError> {
        fn read<S: DeserializeOwned>(object: &Object) -> Result<Wished<S>, ReconcileError> {
            object.decode().map_err(|error| effect(sentence(&error), Class::Invalid))
        }
        Ok(match &self.layer {
            Layer::Builds(build) => {
                let Wished { spec, status } = read::<ImageBuildSpec>(object)?;
                let source = Source::Sources(PathBuf::from(&spec.source), Arc::clone(build));
                Wish {
                    layout: self.site.workshop(&spec.image),
                    tag: object.meta().name.clone(),
                    wanted: (!status.digest.is_empty()).then_some(status.digest),
                    source,
                }
            }
            Layer::Publications => {
                let Wished { spec, .. } = read::<PublicationSpec>(object)?;
                let source = Source::Layout(self.site.workshop(&spec.image));
                let layout = self.site.registry(&spec.image);
                Wish { layout, tag: spec.version, wanted: Some(spec.digest), source }
            }
            Layer::Deliveries => {
                let Wished { spec, .. } = read::<DeliverySpec>(object)?;
                let source = Source::Layout(self.site.registry(&spec.image));
                let layout = self.site.customer(&spec.customer, &spec.image);
                Wish { layout, tag: spec.version, wanted: Some(spec.digest), source }
            }
        })
    }

    async fn act(&self, wish: &Wish, step: Step) -> Result<Option<String>, String> {
        let (wish, lock) = (wish.clone(), self.site.lock(&wish.layout));
        blocking(move || {
            let layout = Layout::new(wish.layout.clone());
            match (step, &wish.source) {
                (Step::Remove, _) => {
                    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                    layout.remove(&wish.tag)?;
                }
                (Step::Put, Source::Sources(folder, build)) => {
                    // The work is done in a layout of its own; only the result is put where others look.
                    let apart = tempfile::tempdir().map_err(|source| LayoutError::File {
                        doing: "create",
                        path: std::env::temp_dir(),
                        source,
                    })?;
                    let apart = Layout::new(apart.path().to_owned());
                    let digest = build(folder, &apart, &wish.tag)?;
                    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                    layout.copy(&apart, &digest, &wish.tag)?;
                }
                (Step::Put, Source::Layout(from)) => {
                    let _held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                    let digest = wish.wanted.as_deref().unwrap_or_default();
                    layout.copy(&Layout::new(from.clone()), digest, &wish.tag)?;
                }
            }
            Ok(layout.find(&wish.tag)?)
        })
        .await
    }

    async fn hold(
        &self,
        object: Arc<Object>,
        job: &Job,
        context: &Context,
    ) -> Result<Outcome, ReconcileError> {
        let resource = self.resource();
        let wish = self.wish(&object)?;
        let (layout, tag) = (Layout::new(wish.layout.clone()), wish.tag.clone());
        let mut there = blocking(move || Ok(layout.find(&tag)?)).await;
        let actual = there.clone().ok().flatten();
        let plan =
            held::plan(&resource, &object, wish.wanted.as_deref(), actual.as_deref(), Timestamp::now());
        let mut outcome = Outcome::settled(plan.next);
        perform(plan.before, job, context, self.name(), &mut outcome).await;
        if outcome.error.is_some() || outcome.writes > 0 {
            return Ok(outcome);
        }
        if let Some(step) = plan.step {
            there = self.act(&wish, step).await;
        }
        let said = there.as_ref().map(Option::as_deref).map_err(String::as_str);
        let after = held::reported(&resource, &object, said, Timestamp::now());
        perform(after, job, context, self.name(), &mut outcome).await;
        if let Err(why) = there {
            outcome.error.get_or_insert(effect(why, Class::Transient));
        }
        Ok(outcome)
    }
}

/// Performs what a plan wants of the server.
async fn perform(actions: Vec<Action>, job: &Job, context: &Context, name: &str, outcome: &mut Outcome) {
    let performer = Performer::new(&context.client, &context.recorder, name, job);
    let done = performer.all(actions, context.deadline()).await;
    outcome.barriers.extend(done.barriers);
    outcome.unsure.extend(done.unsure);
    outcome.writes += done.writes;
    outcome.error = outcome.error.take().or(done.error);
}

impl Reconcile for Holder {
    fn name(&self) -> &'static str {
        match self.layer {
            Layer::Builds(_) => "imagebuild",
            Layer::Publications => "publication",
            Layer::Deliveries => "delivery",
        }
    }

    fn watches(&self) -> Vec<Watched> {
        vec![Watched::all(&self.resource(), MapTo::Itself)]
    }

    async fn reconcile(&self, job: &Job, context: &Context) -> Outcome {
        let found = context.view(|view| view.get(&job.key.resource, &job.key.object));
        let Some(object) = found else { return Outcome::settled(Next::OnChange) };
        self.hold(object, job, context).await.unwrap_or_else(Outcome::failed)
    }
}

/// The key of what a track has made: the track that its label names.
fn track_of(_: &dyn View, object: &Object) -> Vec<Key> {
    let meta = object.meta();
    let key = meta.label(api::TRACK).map(|track| ObjectKey::new(meta.namespace.clone(), track));
    key.map(|key| Key::new(&api::tracks(), key)).into_iter().collect()
}

/// Holds ReleaseTracks: looks at upstream, and does what [`track::plan`] says.
pub struct Tracks;

impl Tracks {
    async fn observe(&self, key: &Key, context: &Context) -> Result<Option<track::Observed>, ReconcileError> {
        let seen = context.view(|view| {
            let Some(object) = view.get(&key.resource, &key.object) else { return Ok(None) };
            let builds = view.owned_by(&api::builds().id, &object.meta().uid);
            let publications = view.owned_by(&api::publications().id, &object.meta().uid);
            Ok(Some((
                Typed::<ReleaseTrack>::new(object).map_err(ObserveError::at(key))?,
                Typed::all(builds).map_err(ObserveError::at(key))?,
                Typed::all(publications).map_err(ObserveError::at(key))?,
            )))
        });
        let Some((track, builds, publications)) = seen.map_err(ReconcileError::Observe)? else {
            return Ok(None);
        };
        let upstream = PathBuf::from(&track.spec.upstream);
        let upstream = blocking(move || pack::versions(&upstream)).await;
        Ok(Some(track::Observed { track, upstream, builds, publications }))
    }
}

impl Reconcile for Tracks {
    fn name(&self) -> &'static str {
        "releasetrack"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&api::tracks(), MapTo::Itself),
            Watched::all(&api::builds(), MapTo::With(track_of)),
            Watched::all(&api::publications(), MapTo::With(track_of)),
        ]
    }

    async fn reconcile(&self, job: &Job, context: &Context) -> Outcome {
        let observed = match self.observe(&job.key, context).await {
            Ok(Some(observed)) => observed,
            Ok(None) => return Outcome::settled(Next::OnChange),
            Err(error) => return Outcome::failed(error),
        };
        let plan = track::plan(&observed, Timestamp::now());
        let mut outcome = Outcome::settled(plan.next);
        perform(plan.actions, job, context, self.name(), &mut outcome).await;
        outcome
    }
}
