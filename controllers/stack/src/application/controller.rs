//! Applications as keys of a work queue: which objects lead to which, and a turn for each.

use std::sync::Arc;

use strata_model::object::{Object, ObjectKey};
use strata_plan::application::operation::Application;
use strata_plan::application::project::{AppProject, ProjectSpec};
use strata_plan::application::spec::Spec;
use strata_plan::application::status::Status;
use strata_plan::application::types::{APP_PROJECT, APPLICATION, DEFAULT_PROJECT, MANAGER, NAMESPACE};
use strata_plan::controller::{Key, MapTo, ObserveError, View, Watched};
use strata_runtime::queue::Job;
use strata_runtime::reconcile::{Context, Outcome, Reconcile};

use super::cascade;
use super::gather::{Overlay, Types};
use super::layer::{Layer, Purpose};
use super::memory::{App, Memory};
use super::repositories::Repositories;
use super::turn::Turn;

/// Holds Applications.
pub struct Applications<R> {
    /// Renders.
    pub layer: Arc<Layer<R>>,
    /// What is remembered.
    pub memory: Arc<Memory>,
    /// All types.
    pub types: Types,
}

impl<R: Repositories> Reconcile for Applications<R> {
    fn name(&self) -> &'static str {
        MANAGER
    }

    fn watches(&self) -> Vec<Watched> {
        let mut all = vec![
            Watched::all(&APPLICATION, MapTo::Itself),
            Watched::all(&APP_PROJECT, MapTo::With(of_project)),
        ];
        for resource in self.types.watched.iter() {
            let (memory, id) = (Arc::clone(&self.memory), resource.id.clone());
            let map = move |view: &dyn View, object: &Object| {
                let apps = memory.index().changed(view, &id, object);
                apps.into_iter().map(|app| Key::new(&APPLICATION, app)).collect()
            };
            let map = MapTo::By(Arc::new(map));
            let resource = Arc::clone(resource);
            all.push(Watched { resource, map, metadata_only: false, field_selector: String::new() });
        }
        all
    }

    fn started(&self, context: &Context) {
        let context = context.clone();
        self.layer.tell(Arc::new(move |app: &ObjectKey| {
            context.wake(Key::new(&APPLICATION, app.clone()), "rendered");
        }));
    }

    async fn reconcile(&self, job: &Job, context: &Context) -> Outcome {
        let key = &job.key.object;
        let Some(object) = context.view(|view| view.get(&APPLICATION.id, key)) else {
            self.forget(key);
            return Outcome::default();
        };
        if object.meta().is_deleting() {
            self.forget(key);
            return match cascade::is_asked(&object) {
                true => cascade::step(context, job, &object, &self.memory, &self.types).await,
                false => Outcome::default(),
            };
        }
        let app: Application = match object.decode() {
            Ok(app) => app,
            Err(error) => return Outcome::failed(ObserveError::at(&job.key)(error).into()),
        };
        let mut own = self.memory.take(key);
        let outcome = self.turn(job, context, object, app, &mut own).await;
        self.memory.put(key, own);
        outcome
    }
}

impl<R: Repositories> Applications<R> {
    fn forget(&self, app: &ObjectKey) {
        self.memory.forget(app);
        self.layer.forget(&(app.clone(), Purpose::Wish));
        self.layer.forget(&(app.clone(), Purpose::Operation));
    }

    async fn turn(
        &self,
        job: &Job,
        context: &Context,
        object: Arc<Object>,
        app: Application,
        own: &mut App,
    ) -> Outcome {
        let project = context.view(|view| project(view, &app.spec));
        let status = Status::read(&app.status);
        let turn = Turn {
            context,
            job,
            layer: &self.layer,
            memory: &self.memory,
            own,
            types: &self.types,
            object,
            app,
            status,
            project,
            overlay: Overlay::new(),
            outcome: Outcome::default(),
        };
        Box::pin(turn.run()).await
    }
}

/// The project of an Application, or why there is none.
fn project(view: &dyn View, spec: &Spec) -> Result<ProjectSpec, String> {
    let name = spec.project();
    let Some(object) = view.get(&APP_PROJECT.id, &ObjectKey::new(NAMESPACE, name)) else {
        return Err(format!(
            "Application referencing project {name} which does not exist; create the AppProject in namespace {NAMESPACE}"
        ));
    };
    let read = object.decode::<AppProject>();
    read.map(|p| p.spec).map_err(|error| format!("the AppProject {name} cannot be read: {}", error.source))
}

/// A project leads to its Applications.
fn of_project(view: &dyn View, object: &Object) -> Vec<Key> {
    if object.meta().namespace != NAMESPACE {
        return Vec::new();
    }
    let is_of = |app: &Arc<Object>| {
        let spec = app.typed::<Application>().map(|a| a.spec.project().to_owned());
        spec.unwrap_or_else(|_| DEFAULT_PROJECT.to_owned()) == object.meta().name
    };
    let apps = view.list(&APPLICATION.id, "");
    apps.iter().filter(|app| is_of(app)).map(|app| Key::new(&APPLICATION, app.key())).collect()
}
