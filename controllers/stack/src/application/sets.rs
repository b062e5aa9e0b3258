//! ApplicationSets as keys of a work queue of their own: asks repositories what generators need, and holds the Applications
//! that come of it. What is generated is the plan's; faults are conditions, and never a deletion.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_client::options::{DeleteOptions, Patch, WriteOptions};
use strata_model::condition::{self, Condition};
use strata_model::merge;
use strata_model::object::{Object, ObjectKey};
use strata_plan::application::generate::{Answers, Found, GenerateError, Question, generate};
use strata_plan::application::ignore::glob;
use strata_plan::application::set::{ApplicationSet, SetSpec};
use strata_plan::application::types::{APPLICATION, APPLICATION_SET, FINALIZER, GROUP, VERSION};
use strata_plan::controller::{MapTo, Next, ObserveError, Watched};
use strata_runtime::barrier::Barrier;
use strata_runtime::queue::Job;
use strata_runtime::reconcile::{Context, Outcome, Reconcile, ReconcileError};
use tokio::time::Instant;

use super::repositories::{Fresh, Repositories};

/// Name of the controller, its lease and its field manager.
const NAME: &str = "applicationset";
/// Annotation of a set that asks for a look at its repositories.
const REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
/// Between looks at a repository, unless a generator says.
const POLL: i64 = 180;
/// Most rounds of questions: a matrix asks at most twice, one in another three times.
const MOST_ROUNDS: usize = 4;

/// What was found, or why nothing, and when it was asked.
type Answer = (Instant, Result<Found, String>);

/// Holds ApplicationSets.
pub struct ApplicationSets<R> {
    repositories: Arc<R>,
    answers: Mutex<BTreeMap<Question, Answer>>,
}

impl<R: Repositories> ApplicationSets<R> {
    /// Reads by these.
    pub fn new(repositories: Arc<R>) -> Self {
        Self { repositories, answers: Mutex::default() }
    }

    /// An answer, as it is known for not too long.
    async fn answer(&self, question: &Question, oldest: Instant) -> Result<Found, String> {
        let known = |answers: &BTreeMap<Question, (Instant, Result<Found, String>)>| {
            answers.get(question).filter(|(at, _)| *at >= oldest).map(|(_, answer)| answer.clone())
        };
        if let Some(found) = known(&self.answers.lock().unwrap_or_else(PoisonError::into_inner)) {
            return found;
        }
        let now = Instant::now();
        let answer = self.ask(question).await;
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(question.clone(), (now, answer.clone()));
        answer
    }

    async fn ask(&self, question: &Question) -> Result<Found, String> {
        let (files, asked) = (question.files, question.clone());
        let chosen = move |path: &str| files && matches(&asked, path);
        let listing =
            self.repositories.list(&question.repo_url, &question.revision, Fresh::Now, chosen).await;
        let (folders, texts) = listing.map_err(|error| error.message)?;
        let mut found = Found::new();
        if !files {
            found.extend(folders.into_iter().filter(|f| matches(question, f)).map(|f| (f, Value::Null)));
            return Ok(found);
        }
        for (path, text) in texts {
            let read: Value = serde_saphyr::from_str(&text).map_err(|error| format!("{path}: {error}"))?;
            found.insert(path, read);
        }
        Ok(found)
    }

    /// What a set makes now.
    async fn generated(&self, spec: &SetSpec, oldest: Instant) -> Result<BTreeMap<String, Value>, String> {
        let mut answers = Answers::new();
        for _ in 0..MOST_ROUNDS {
            match generate(spec, &answers) {
                Ok(apps) => return Ok(apps),
                Err(GenerateError::Invalid(why)) => return Err(why),
                Err(GenerateError::Unanswered(questions)) => {
                    for question in questions {
                        let answer = self.answer(&question, oldest).await;
                        answers.insert(question, answer);
                    }
                }
            }
        }
        // A matrix may ask for each set of the other generator.
        Err("its generators ask too many questions".to_owned())
    }
}

/// Whether a path is asked for: each `*` stays within a folder, `**` does not.
fn matches(question: &Question, path: &str) -> bool {
    let any = |globs: &[String]| globs.iter().any(|g| by_folder(g, path));
    any(&question.include) && !any(&question.exclude)
}

fn by_folder(pattern: &str, path: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        text.split('/').filter(|p| !p.is_empty() && *p != ".").map(str::to_owned).collect()
    };
    fn same(pattern: &[String], path: &[String]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((first, rest)), _) if first == "**" => {
                same(rest, path) || path.split_first().is_some_and(|(_, below)| same(pattern, below))
            }
            (Some((first, rest)), Some((name, below))) => glob(first, name) && same(rest, below),
            _ => false,
        }
    }
    same(&parts(pattern), &parts(path))
}

impl<R: Repositories> Reconcile for ApplicationSets<R> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn watches(&self) -> Vec<Watched> {
        vec![
            Watched::all(&APPLICATION_SET, MapTo::Itself),
            Watched::all(&APPLICATION, MapTo::Controller(&APPLICATION_SET)),
        ]
    }

    async fn reconcile(&self, job: &Job, context: &Context) -> Outcome {
        let (found, apps) = context.view(|view| {
            let set = view.get(&APPLICATION_SET.id, &job.key.object);
            (set, view.list(&APPLICATION.id, &job.key.object.namespace))
        });
        // Its Applications go by their owner references.
        let Some(object) = found.filter(|o| !o.meta().is_deleting()) else { return Outcome::default() };
        let set: ApplicationSet = match object.decode() {
            Ok(set) => set,
            Err(error) => return Outcome::failed(ObserveError::at(&job.key)(error).into()),
        };
        let polls = set.spec.generators.iter().filter_map(|g| g.git.as_ref()?.requeue_after_seconds);
        let poll = polls.filter(|s| *s > 0).min().unwrap_or(POLL);
        let asked = object.meta().annotation(REFRESH).is_some();
        let age = if asked { Duration::ZERO } else { Duration::from_secs(poll.unsigned_abs()) };
        let oldest = Instant::now().checked_sub(age).unwrap_or_else(Instant::now);
        let generated = self.generated(&set.spec, oldest).await;
        let mut turn = Turn { context, job, object: &object, set: &set, outcome: Outcome::default() };
        let said = match generated {
            Ok(wished) => turn.hold(wished, &apps).await,
            Err(why) => Err(why),
        };
        turn.tell(said, asked).await;
        let again = Timestamp::now().checked_add(SignedDuration::from_secs(poll));
        turn.outcome.next = again.map_or(Next::OnChange, Next::At);
        turn.outcome
    }
}

struct Turn<'a> {
    context: &'a Context,
    job: &'a Job,
    object: &'a Object,
    set: &'a ApplicationSet,
    outcome: Outcome,
}

impl Turn<'_> {
    fn options(&self) -> WriteOptions {
        let cause = format!("{}: {}", self.job.key, self.job.reasons);
        WriteOptions { field_manager: NAME.to_owned(), cause, ..WriteOptions::default() }
    }

    fn is_mine(&self, app: &Object) -> bool {
        app.meta().controller().is_some_and(|owner| owner.uid == self.object.meta().uid)
    }

    /// Holds the Applications; a sentence where something is in the way.
    async fn hold(&mut self, wished: BTreeMap<String, Value>, apps: &[Arc<Object>]) -> Result<(), String> {
        let policy = self.set.spec.sync_policy.clone().unwrap_or_default();
        let may = |words: &[&str]| {
            policy.applications_sync.is_empty() || words.contains(&policy.applications_sync.as_str())
        };
        let mut faults = Vec::new();
        for (name, template) in &wished {
            let live = apps.iter().find(|a| a.meta().name == *name);
            let app = self.application(name, template, policy.preserve_resources_on_deletion);
            match live {
                Some(live) if !self.is_mine(live) => {
                    faults.push(format!("the Application {name} is there already, and not of this set"));
                }
                Some(live) if is_as_wished(live, &app) || !may(&["create-update", "sync"]) => {}
                _ => self.apply(name, app).await,
            }
        }
        let mine: Vec<&Arc<Object>> = apps.iter().filter(|a| self.is_mine(a)).collect();
        if wished.is_empty() && !mine.is_empty() {
            return Err(format!(
                "nothing is generated any more, and {} Applications would go; they stay",
                mine.len()
            ));
        }
        for gone in mine.iter().filter(|a| !wished.contains_key(&a.meta().name) && !a.meta().is_deleting()) {
            if may(&["create-delete", "sync"]) {
                self.delete(gone).await;
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    }

    fn application(&self, name: &str, template: &Value, preserve: bool) -> Value {
        let meta = self.object.meta();
        let mut app = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": "Application",
            "metadata": {
                "name": name,
                "namespace": meta.namespace,
                "ownerReferences": [{"apiVersion": format!("{GROUP}/{VERSION}"), "kind": "ApplicationSet",
                    "name": meta.name, "uid": meta.uid, "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": template["spec"],
        });
        for member in ["labels", "annotations", "finalizers"] {
            if !template["metadata"][member].is_null() {
                app["metadata"][member] = template["metadata"][member].clone();
            }
        }
        if app["metadata"]["finalizers"].is_null() && !preserve {
            app["metadata"]["finalizers"] = json!([FINALIZER]);
        }
        app
    }

    async fn apply(&mut self, name: &str, app: Value) {
        let key = ObjectKey::new(self.object.meta().namespace.clone(), name);
        let patch = Patch::Apply { object: app.to_string().into(), force: true };
        match self.context.client.patch(&APPLICATION, &key, "", &patch, &self.options()).await {
            Ok(written) => {
                self.outcome.writes += usize::from(written.changed);
                let revision = written.object.meta().revision().filter(|_| written.changed);
                self.outcome
                    .barriers
                    .extend(revision.map(|at| Barrier::Revision(APPLICATION.id.clone(), at)));
            }
            Err(source) => self.fail(format!("apply the Application {name}"), source),
        }
    }

    async fn delete(&mut self, app: &Object) {
        let options = DeleteOptions { uid: app.meta().uid.clone(), ..DeleteOptions::default() };
        match self.context.client.delete(&APPLICATION, &app.key(), &options).await {
            Ok(_) => self.outcome.writes += 1,
            Err(source) => self.fail(format!("delete the Application {}", app.meta().name), source),
        }
    }

    fn fail(&mut self, doing: String, source: strata_client::error::ClientError) {
        self.outcome.error.get_or_insert(ReconcileError::Request { doing, source });
    }

    /// Writes conditions, and takes away what asked for a look.
    async fn tell(&mut self, said: Result<(), String>, asked: bool) {
        let now = Timestamp::now();
        let mut list: Vec<Condition> =
            serde_json::from_value(self.set.status["conditions"].clone()).unwrap_or_default();
        let (fault, message) = match &said {
            Ok(()) => ("False", "All applications have been generated successfully".to_owned()),
            Err(why) => ("True", why.clone()),
        };
        let well = if said.is_ok() { "True" } else { "False" };
        let mut changed = false;
        for (type_, status, reason) in [
            (
                "ErrorOccurred",
                fault,
                if said.is_ok() { "ApplicationSetUpToDate" } else { "ApplicationGenerationError" },
            ),
            (
                "ResourcesUpToDate",
                well,
                if said.is_ok() { "ApplicationSetUpToDate" } else { "ErrorOccurred" },
            ),
        ] {
            let new = Condition {
                type_: type_.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: message.clone(),
                ..Condition::default()
            };
            changed |= condition::set(&mut list, new, now);
        }
        let uid = json!(self.object.meta().uid);
        let key = self.object.key();
        if changed {
            let patch = Patch::Merge(json!({"metadata": {"uid": uid}, "status": {"conditions": list}}));
            match self.context.client.patch(&APPLICATION_SET, &key, "status", &patch, &self.options()).await {
                Ok(_) => self.outcome.writes += 1,
                Err(source) => self.fail(format!("write the status of {key}"), source),
            }
        }
        if asked {
            let patch = Patch::Merge(json!({"metadata": {"uid": uid, "annotations": {REFRESH: null}}}));
            match self.context.client.patch(&APPLICATION_SET, &key, "", &patch, &self.options()).await {
                Ok(_) => self.outcome.writes += 1,
                Err(source) => self.fail(format!("answer the refresh of {key}"), source),
            }
        }
    }
}

/// Whether an Application has everything that is wished of it.
fn is_as_wished(live: &Object, wished: &Value) -> bool {
    let Ok(live) = live.to_value() else { return false };
    let mut with = live.clone();
    let meta =
        json!({"labels": wished["metadata"]["labels"], "annotations": wished["metadata"]["annotations"]});
    merge::apply(
        &mut with,
        &json!({"metadata": meta.as_object().map(|m| {
            m.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect::<serde_json::Map<_, _>>()
        })}),
    );
    with == live
        && live["spec"] == wished["spec"]
        && live["metadata"]["finalizers"] == wished["metadata"]["finalizers"]
}
