//! One turn of one Application: what it wishes for, what is there, what is done about it, and what its status says then.
//! Decisions are the plan's; this carries values between it, the layer of renders, and the server.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_client::options::{Patch, WriteOptions};
use strata_model::merge;
use strata_model::object::{Object, ObjectKey};
use strata_plan::application::compare::{Comparison, compare};
use strata_plan::application::decide::{self, Next as Doing, Situation};
use strata_plan::application::desired::{Desired, Wish, scaffold, wish};
use strata_plan::application::difference::Verdict;
use strata_plan::application::operation::Application;
use strata_plan::application::permit::{self, Allowed};
use strata_plan::application::project::ProjectSpec;
use strata_plan::application::spec::Source;
use strata_plan::application::status::{OperationState, Status};
use strata_plan::application::types::{APPLICATION, MANAGER, MAX_PRUNE, NAMESPACE, REFRESH};
use strata_runtime::barrier::Barrier;
use strata_runtime::queue;
use strata_runtime::reconcile::{Context, Outcome, ReconcileError};
use tokio::time::Instant;

use super::gather::{Gathered, Overlay, Places, Types, Whose, gather};
use super::judge::{REFUSED_AGAIN, judge};
use super::layer::{Known, Layer, Purpose, Renders};
use super::memory::{App, Memory};
use super::repositories::{Ask, Fresh, Repositories};

/// Everything a turn works with.
pub struct Turn<'a, R> {
    /// What the process shares.
    pub context: &'a Context,
    /// Why the key runs.
    pub job: &'a queue::Job,
    /// Renders.
    pub layer: &'a Layer<R>,
    /// What is remembered.
    pub memory: &'a Memory,
    /// What is remembered of this Application.
    pub own: &'a mut App,
    /// All types.
    pub types: &'a Types,
    /// The Application.
    pub object: Arc<Object>,
    /// The same, read.
    pub app: Application,
    /// Its status so far.
    pub status: Status,
    /// Its project, or why there is none.
    pub project: Result<ProjectSpec, String>,
    /// What this turn wrote.
    pub overlay: Overlay,
    /// What came of it.
    pub outcome: Outcome,
}

impl<R: Repositories> Turn<'_, R> {
    /// Which Application.
    pub fn key(&self) -> &ObjectKey {
        &self.job.key.object
    }

    /// The whole turn.
    pub async fn run(mut self) -> Outcome {
        let now = Timestamp::now();
        let invalid = self.invalid();
        let project = self.project.clone().unwrap_or_default();
        let allowed = permit::windows(&project, &self.key().name, &self.app.spec, now);
        self.look_at(allowed.until);
        let known = if invalid.is_none() { self.known() } else { None };
        let mut operation = decide::operation(&self.app, &self.status, now);
        let mut held = None;
        let mut healed = false;
        loop {
            if let Some(state) = operation.as_mut().filter(|s| !s.phase.is_over()) {
                self.operate(state, known.as_ref(), invalid.as_deref(), allowed, &project).await;
            }
            let runs = operation.as_ref().is_some_and(|s| !s.phase.is_over());
            let Some(view) = self.observe(known.as_ref(), &project).await else { break };
            let situation = self.situation(&view, invalid.as_deref(), known.as_ref(), allowed, now);
            let next = match runs || healed || self.outcome.error.is_some() {
                true => Doing::Nothing,
                false => decide::next(&Situation { status: &self.with(&operation), ..situation }),
            };
            match next {
                Doing::Operate(state) if operation.is_none() => {
                    operation = Some(*state);
                    continue;
                }
                Doing::Heal(tasks) => {
                    healed = true;
                    self.heal(tasks).await;
                    continue;
                }
                Doing::Held(why) => held = Some(why),
                Doing::Operate(_) | Doing::Nothing => {}
            }
            let situation = self.situation(&view, invalid.as_deref(), known.as_ref(), allowed, now);
            let status = decide::status(&situation, operation.clone(), held.as_deref());
            let refreshed = self.is_refreshed(known.as_ref()) || invalid.is_some();
            self.write(&status, operation.as_ref(), refreshed).await;
            break;
        }
        self.outcome
    }

    /// The status as it is once the operation's state is written.
    fn with(&self, operation: &Option<OperationState>) -> Status {
        let mut status = self.status.clone();
        if let Some(state) = operation {
            status.operation_state = Some(state.clone());
        }
        status
    }

    fn situation<'b>(
        &'b self,
        view: &'b Look,
        invalid: Option<&'b str>,
        known: Option<&'b Known>,
        allowed: Allowed,
        now: Timestamp,
    ) -> Situation<'b> {
        Situation {
            key: self.key(),
            app: &self.app,
            status: &self.status,
            invalid,
            render_error: known.and_then(|k| k.answer.as_ref().err()),
            wish: view.wish.as_deref(),
            faults: &view.found.faults,
            items: &view.found.items,
            comparison: &view.comparison,
            allowed,
            max_prune: self.object.meta().annotation(MAX_PRUNE),
            now,
        }
    }

    /// The key is looked at again at this instant, at the latest.
    pub fn look_at(&mut self, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.outcome.next = self.outcome.next.or_at(at);
        }
    }

    fn invalid(&self) -> Option<String> {
        let project = match &self.project {
            Ok(project) => project,
            Err(why) => return Some(why.clone()),
        };
        permit::forbids(&self.app.spec, project, &self.key().namespace, NAMESPACE)
    }

    /// The question that sources are.
    pub fn question(&self, sources: &[Source]) -> Ask {
        Ask {
            app: self.key().clone(),
            namespace: self.app.spec.destination.namespace.clone(),
            sources: sources.to_vec(),
        }
    }

    /// What is known of the Application's own sources.
    fn known(&mut self) -> Option<Known> {
        let place = (self.key().clone(), Purpose::Wish);
        let known = self.layer.ask(place.clone(), self.question(self.app.spec.all_sources()));
        match self.object.meta().annotation(REFRESH) {
            Some(word) if self.own.refresh.is_none() => {
                self.own.refresh = Some(Instant::now());
                self.layer.refresh(&place, if word == "hard" { Fresh::Hard } else { Fresh::Now });
            }
            Some(_) => {}
            None => self.own.refresh = None,
        }
        known
    }

    /// Whether the look that was asked for is done.
    fn is_refreshed(&self, known: Option<&Known>) -> bool {
        self.own.refresh.is_some_and(|asked| known.is_some_and(|k| k.begun >= asked))
    }

    /// The wish that renders make.
    pub fn made(&mut self, purpose: Purpose, renders: &Renders) -> Arc<Wish> {
        let (key, spec) = (self.job.key.object.clone(), self.app.spec.clone());
        let types = Arc::clone(&self.types.all);
        let make = || wish(&key, &spec.destination.namespace, renders, &types);
        self.own.wish(purpose, renders, &spec, &types, make)
    }

    fn scaffold(&self) -> Option<Arc<Desired>> {
        scaffold(&self.app.spec, &self.types.all).map(Arc::new)
    }

    fn gathered(&mut self, wish: &Wish, project: &ProjectSpec) -> Gathered {
        let scaffold = self.scaffold();
        let whose = Whose {
            app: &self.job.key.object,
            wish,
            scaffold: scaffold.as_ref(),
            project: (self.app.spec.project(), project),
        };
        let Self { context, overlay, memory, own, types, .. } = self;
        context.view(|view| gather(&whose, &Places { view, overlay }, memory, own, types))
    }

    /// The objects of a wish, with verdicts where those are wanted.
    pub async fn judged(&mut self, wish: &Wish, project: &ProjectSpec) -> Option<Gathered> {
        let mut found = self.gathered(wish, project);
        let (client, deadline) = (&self.context.client, self.context.deadline());
        match judge(client, &self.app.spec, &mut found.items, self.own, deadline).await {
            Ok(()) => Some(found),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Something did not work; the first such thing counts.
    pub fn fail(&mut self, error: ReconcileError) {
        self.outcome.error.get_or_insert(error);
    }

    /// The Application as it is now.
    async fn observe(&mut self, known: Option<&Known>, project: &ProjectSpec) -> Option<Look> {
        if self.outcome.error.is_some() {
            return None;
        }
        let renders = known.and_then(|k| k.answer.as_ref().ok().or(k.good.as_ref()));
        let Some(renders) = renders else { return Some(Look::default()) };
        let wish = self.made(Purpose::Wish, renders);
        let found = self.judged(&wish, project).await?;
        let comparison = compare(&found.items);
        if found.items.iter().any(|i| matches!(i.verdict, Some(Verdict::Refused(_)))) {
            let again = Timestamp::now() + REFUSED_AGAIN;
            self.look_at(Some(again));
        }
        Some(Look { wish: Some(wish), found, comparison })
    }

    /// What is kept with each write.
    pub fn cause(&self, why: &str) -> String {
        format!("{}: {why}: {}", self.job.key, self.job.reasons)
    }

    /// Writes the status, where it is another one; takes away what was asked for and is done.
    async fn write(&mut self, status: &Status, operation: Option<&OperationState>, refreshed: bool) {
        let old = self.app.status.clone();
        let new = serde_json::to_value(status).unwrap_or_default();
        let mut patch = json!({});
        let old = if old.is_object() { old } else { json!({}) };
        if let Some(change) = merge::diff(&old, &new) {
            patch["status"] = change;
        }
        if self.app.operation.is_some() && operation.is_some_and(|o| o.phase.is_over()) {
            patch["operation"] = Value::Null;
        }
        if refreshed && self.object.meta().annotation(REFRESH).is_some() {
            patch["metadata"]["annotations"][REFRESH] = Value::Null;
        }
        if patch == json!({}) {
            return;
        }
        patch["metadata"]["uid"] = json!(self.object.meta().uid);
        if patch.get("operation").is_some() {
            patch["metadata"]["resourceVersion"] = json!(self.object.meta().resource_version);
        }
        let options = WriteOptions {
            field_manager: MANAGER.to_owned(),
            cause: self.cause("status"),
            ..WriteOptions::default()
        };
        let patch = Patch::Merge(patch);
        match self.context.client.patch(&APPLICATION, self.key(), "", &patch, &options).await {
            Ok(written) => {
                let revision = written.object.meta().revision().filter(|_| written.changed);
                self.outcome.writes += usize::from(written.changed);
                let barrier = revision.map(|at| Barrier::Revision(APPLICATION.id.clone(), at));
                self.outcome.barriers.extend(barrier);
                if refreshed {
                    self.own.refresh = None;
                }
            }
            Err(source) => {
                let doing = format!("write the status of {}", self.key());
                self.fail(ReconcileError::Request { doing, source });
            }
        }
    }
}

/// What is there, and what it comes to.
#[derive(Default)]
struct Look {
    wish: Option<Arc<Wish>>,
    found: Gathered,
    comparison: Comparison,
}
