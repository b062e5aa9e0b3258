//! What happens next to an Application, and what its status says. The rules of automation stand here: a new commit is
//! synced once; what others change after that is put back, object by object, whatever became of the sync.

use jiff::Timestamp;
use strata_model::condition::rfc3339;
use strata_model::object::ObjectKey;

use super::compare::{Comparison, Item};
use super::desired::{Phase, Wish};
use super::difference::Verdict;
use super::health::HealthWord;
use super::operation::{Application, InitiatedBy, Operation, SyncOperation};
use super::order::{applied, pruned};
use super::permit::Allowed;
use super::rendered::RenderError;
use super::retry::AUTOMATED_LIMIT;
use super::spec::{Retry, Source, Spec};
use super::status::{
    AppCondition, AppHealth, ComparedTo, Deployed, OperationPhase, OperationState, Status, Summary,
    SyncResult, SyncStatus, SyncWord,
};
use super::sync::budget;
use super::sync::task::Task;

/// Member of a sync's result: what the renders depended on.
pub const RENDER_KEY: &str = "renderKey";
/// Member of a sync's result: the revision of the store before it, for undo.
pub const BEFORE: &str = "before";

/// An Application and what is known about it.
pub struct Situation<'a> {
    /// Which one.
    pub key: &'a ObjectKey,
    /// As it is written.
    pub app: &'a Application,
    /// Its status so far.
    pub status: &'a Status,
    /// Why it cannot be held at all.
    pub invalid: Option<&'a str>,
    /// Why its sources could not be rendered now.
    pub render_error: Option<&'a RenderError>,
    /// What it wishes for: by the newest render, or where that failed by the last good one.
    pub wish: Option<&'a Wish>,
    /// What is wrong with single manifests.
    pub faults: &'a [String],
    /// Its objects.
    pub items: &'a [Item],
    /// What they come to.
    pub comparison: &'a Comparison,
    /// What the windows of its project say.
    pub allowed: Allowed,
    /// The annotation about pruning.
    pub max_prune: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// What happens next.
#[derive(Clone, Debug)]
pub enum Next {
    /// Nothing.
    Nothing,
    /// Nothing, though something should: why.
    Held(String),
    /// An operation begins or goes on.
    Operate(Box<OperationState>),
    /// These are put back, in this order.
    Heal(Vec<Task>),
}

/// The operation that runs or is asked for.
pub fn operation(app: &Application, status: &Status, now: Timestamp) -> Option<OperationState> {
    if let Some(running) = status.operation_state.as_ref().filter(|s| !s.phase.is_over()) {
        return Some(running.clone());
    }
    let operation = app.operation.clone().filter(|o| o.sync.is_some())?;
    let operation = with_retry(operation, &app.spec);
    Some(begin(operation, now))
}

fn with_retry(mut operation: Operation, spec: &Spec) -> Operation {
    if operation.retry.is_none() {
        operation.retry = spec.sync_policy.as_ref().and_then(|p| p.retry.clone());
    }
    operation
}

fn begin(operation: Operation, now: Timestamp) -> OperationState {
    OperationState {
        operation,
        phase: OperationPhase::Running,
        started_at: rfc3339(now),
        ..OperationState::default()
    }
}

/// The sources of an operation, each at its commit where it names one.
pub fn pinned(sources: &[Source], sync: &SyncOperation) -> Vec<Source> {
    let own = match (&sync.source, sync.sources.as_slice()) {
        (Some(one), []) => std::slice::from_ref(one),
        (_, many) => many,
    };
    let mut pinned = if own.is_empty() { sources.to_vec() } else { own.to_vec() };
    for (at, source) in pinned.iter_mut().enumerate() {
        let said = match sync.revisions.get(at) {
            Some(revision) => revision,
            None if at == 0 => &sync.revision,
            None => continue,
        };
        if !said.is_empty() {
            source.target_revision.clone_from(said);
        }
    }
    pinned
}

/// The sync of an operation goes by this render.
pub fn bind(state: &mut OperationState, wish: &Wish, sources: &[Source], before: Option<&str>) {
    let result = state.sync_result.get_or_insert_with(SyncResult::default);
    let many = sources.len() > 1;
    result.revision = wish.revisions.first().cloned().unwrap_or_default();
    result.revisions = if many { wish.revisions.clone() } else { Vec::new() };
    result.source = sources.first().filter(|_| !many).cloned();
    result.sources = if many { sources.to_vec() } else { Vec::new() };
    result.other.insert(RENDER_KEY.to_owned(), wish.key.clone().into());
    if let Some(before) = before {
        result.other.entry(BEFORE.to_owned()).or_insert_with(|| before.into());
    }
}

/// What happens next, where no operation runs or is asked for.
pub fn next(s: &Situation<'_>) -> Next {
    let Some(automated) = s.app.spec.automated() else { return Next::Nothing };
    let Some(wish) = s.wish.filter(|_| s.invalid.is_none()) else { return Next::Nothing };
    let only_extra =
        s.items.iter().filter(|i| i.sync() == SyncWord::OutOfSync && !is_hook(i)).all(Item::is_extra);
    if s.comparison.sync != SyncWord::OutOfSync || (only_extra && !automated.prune) {
        return Next::Nothing;
    }
    if !s.allowed.automated {
        return Next::Held("a sync window of the project does not allow it now".to_owned());
    }
    if s.render_error.is_none() && !was_tried(s, wish) {
        return Next::Operate(Box::new(begin(automatic(s, wish), s.now)));
    }
    let heals = if automated.self_heal { heals(s) } else { Vec::new() };
    let failed = s
        .status
        .operation_state
        .as_ref()
        .filter(|o| was_tried(s, wish) && o.phase != OperationPhase::Succeeded);
    match (heals.is_empty(), failed) {
        (false, _) => Next::Heal(heals),
        (true, Some(failed)) => Next::Held(format!(
            "the sync to {} failed, and is not tried again before something changes: {}",
            wish.revisions.join(", "),
            failed.message
        )),
        (true, None) => Next::Nothing,
    }
}

fn is_hook(item: &Item) -> bool {
    item.desired.as_ref().is_some_and(|d| d.is_hook())
}

/// Whether the last operation went for this very wish.
fn was_tried(s: &Situation<'_>, wish: &Wish) -> bool {
    let Some(result) = s.status.operation_state.as_ref().and_then(|o| o.sync_result.as_ref()) else {
        return false;
    };
    let is_dry = s.status.operation_state.as_ref().is_some_and(|o| {
        o.operation.sync.as_ref().is_some_and(|sync| sync.dry_run || !sync.resources.is_empty())
    });
    !is_dry && result.other.get(RENDER_KEY).and_then(|k| k.as_str()) == Some(wish.key.as_str())
}

fn automatic(s: &Situation<'_>, wish: &Wish) -> Operation {
    let many = wish.revisions.len() > 1;
    let sync = SyncOperation {
        revision: wish.revisions.first().filter(|_| !many).cloned().unwrap_or_default(),
        revisions: if many { wish.revisions.clone() } else { Vec::new() },
        prune: s.app.spec.automated().is_some_and(|a| a.prune),
        ..SyncOperation::default()
    };
    let initiated_by = InitiatedBy { automated: true, ..InitiatedBy::default() };
    let operation = Operation { sync: Some(sync), initiated_by, ..Operation::default() };
    let mut operation = with_retry(operation, &s.app.spec);
    if operation.retry.is_none() {
        operation.retry = Some(Retry { limit: Some(AUTOMATED_LIMIT), ..Retry::default() });
    }
    operation
}

/// What is not as it is wished, in the order in which it is put back. What the server refuses is left: it is looked at
/// again when it changes, or when its verdict grows old.
fn heals(s: &Situation<'_>) -> Vec<Task> {
    let mut tasks = Vec::new();
    for item in s.items {
        let going = item.live.as_ref().is_some_and(|o| o.meta().is_deleting());
        if going || item.holder.is_some() {
            continue;
        }
        match (&item.desired, &item.live, &item.verdict) {
            (Some(_), None, Some(Verdict::Refused(_))) => {}
            (Some(desired), None, _) if is_put_back(item) && desired.resource.is_some() => {
                let phase = if desired.is_scaffold { Phase::PreSync } else { Phase::Sync };
                let stage = applied(desired, phase);
                tasks.push(Task { stage, item: item.clone(), is_hook: false });
            }
            (Some(desired), Some(_), Some(Verdict::Differs(_))) if is_put_back(item) => {
                let phase = if desired.is_scaffold { Phase::PreSync } else { Phase::Sync };
                let stage = applied(desired, phase);
                tasks.push(Task { stage, item: item.clone(), is_hook: false });
            }
            _ => {}
        }
    }
    tasks.extend(strays(s));
    tasks.sort_by_key(|t| t.stage);
    tasks
}

fn is_put_back(item: &Item) -> bool {
    item.is_held() || item.is_scaffold()
}

/// What says that it belongs to the Application, came after its last sync, and is in its source not at all.
fn strays(s: &Situation<'_>) -> Vec<Task> {
    let prune = s.render_error.is_none() && s.app.spec.automated().is_some_and(|a| a.prune);
    let goes = |i: &&Item| i.is_extra() && !i.has("Prune=false") && i.sync() == SyncWord::OutOfSync;
    let extras: Vec<&Item> = s.items.iter().filter(goes).collect();
    let allow_empty = s.app.spec.automated().is_some_and(|a| a.allow_empty);
    if !prune || budget::forbids(&extras, s.items, s.max_prune, allow_empty).is_some() {
        return Vec::new();
    }
    let task = |i: &&Item| Task { stage: pruned(&i.id, i.wave()), item: (*i).clone(), is_hook: false };
    let going = |i: &&&Item| !i.live.as_ref().is_some_and(|o| o.meta().is_deleting());
    extras.iter().filter(going).map(task).collect()
}

/// The status that an Application has now.
pub fn status(s: &Situation<'_>, operation: Option<OperationState>, held: Option<&str>) -> Status {
    let mut new = s.status.clone();
    compared(s, &mut new);
    if let Some(state) = operation {
        // Two operations may begin and end within the same second.
        let is_new = s.status.operation_state.as_ref() != Some(&state);
        if state.phase == OperationPhase::Succeeded && is_new {
            remember(&mut new, &state, &s.app.spec);
        }
        new.operation_state = Some(state);
    }
    new.conditions = conditions(s, &new, held);
    if new != *s.status {
        new.reconciled_at = rfc3339(s.now);
    }
    new
}

fn compared(s: &Situation<'_>, new: &mut Status) {
    let mut health = s.comparison.health;
    if s.invalid.is_some() || (s.wish.is_none() && s.render_error.is_some()) {
        new.sync.status = SyncWord::Unknown;
        health = HealthWord::Unknown;
    }
    if let Some(wish) = s.wish.filter(|_| s.invalid.is_none()) {
        let sources = s.app.spec.all_sources();
        let many = sources.len() > 1;
        let compared_to = ComparedTo {
            source: sources.first().filter(|_| !many).cloned(),
            sources: if many { sources.to_vec() } else { Vec::new() },
            destination: s.app.spec.destination.clone(),
            ignore_differences: s.app.spec.ignore_differences.clone(),
        };
        new.sync = SyncStatus {
            status: if s.render_error.is_some() { SyncWord::Unknown } else { s.comparison.sync },
            compared_to: Some(compared_to),
            revision: wish.revisions.first().filter(|_| !many).cloned().unwrap_or_default(),
            revisions: if many { wish.revisions.clone() } else { Vec::new() },
        };
        new.source_type =
            wish.source_types.first().filter(|_| !many).map(|t| (*t).to_owned()).unwrap_or_default();
        new.source_types =
            if many { wish.source_types.iter().map(|t| (*t).to_owned()).collect() } else { Vec::new() };
        new.resources.clone_from(&s.comparison.resources);
        new.summary = Summary { images: s.comparison.images.clone(), ..new.summary.clone() };
    } else if s.invalid.is_none() && s.render_error.is_none() {
        // Nobody has looked yet: what was known stands.
        return;
    }
    if new.health.status != health || new.health.last_transition_time.is_empty() {
        new.health = AppHealth { status: health, last_transition_time: rfc3339(s.now) };
    }
}

fn remember(new: &mut Status, state: &OperationState, spec: &Spec) {
    let (Some(sync), Some(result)) = (&state.operation.sync, &state.sync_result) else { return };
    if sync.dry_run || !sync.resources.is_empty() {
        return;
    }
    let id = new.history.last().map_or(0, |h| h.id + 1);
    let mut deployed = Deployed {
        id,
        revision: result.revision.clone(),
        revisions: result.revisions.clone(),
        deployed_at: state.finished_at.clone(),
        deploy_started_at: state.started_at.clone(),
        source: result.source.clone(),
        sources: result.sources.clone(),
        initiated_by: state.operation.initiated_by.clone(),
        ..Deployed::default()
    };
    if let Some(before) = result.other.get(BEFORE) {
        deployed.other.insert(BEFORE.to_owned(), before.clone());
    }
    new.history.push(deployed);
    let over = new.history.len().saturating_sub(spec.history_limit());
    new.history.drain(..over);
}

/// Most sentences of one kind.
const MOST_SENTENCES: usize = 5;

fn conditions(s: &Situation<'_>, new: &Status, held: Option<&str>) -> Vec<AppCondition> {
    let mut found: Vec<(&str, String)> = Vec::new();
    if let Some(why) = s.invalid {
        found.push(("InvalidSpecError", why.to_owned()));
    }
    if let Some(error) = s.render_error {
        found.push(("ComparisonError", error.message.clone()));
    }
    if let Some(wish) = s.wish.filter(|_| s.invalid.is_none()) {
        for fault in s.faults.iter().take(MOST_SENTENCES) {
            found.push(("ComparisonError", fault.clone()));
        }
        for id in wish.repeated.iter().take(MOST_SENTENCES) {
            found.push((
                "RepeatedResourceWarning",
                format!("{id} is in the source more than once; the last one counts"),
            ));
        }
    }
    for item in s.items {
        if let Some(holder) = &item.holder {
            found.push((
                "SharedResourceWarning",
                format!("{} is part of the Application {holder} as well", item.id),
            ));
        }
        if let (Some(Verdict::Refused(why)), true) = (&item.verdict, item.is_held()) {
            found.push(("ComparisonError", format!("{}: {why}", item.id)));
        }
    }
    if let Some(held) = held {
        found.push(("SyncError", held.to_owned()));
    } else if let Some(failed) = new
        .operation_state
        .as_ref()
        .filter(|o| matches!(o.phase, OperationPhase::Failed | OperationPhase::Error))
    {
        let automated = failed.operation.initiated_by.automated;
        if automated && new.sync.status == SyncWord::OutOfSync {
            found.push(("SyncError", failed.message.clone()));
        }
    }
    let mut list: Vec<AppCondition> = Vec::new();
    for (type_, message) in found {
        let since = s.status.conditions.iter().find(|c| c.type_ == type_ && c.message == message);
        let last_transition_time = since.map_or_else(|| rfc3339(s.now), |c| c.last_transition_time.clone());
        if list.iter().filter(|c| c.type_ == type_).count() < MOST_SENTENCES {
            list.push(AppCondition { type_: type_.to_owned(), message, last_transition_time });
        }
    }
    list
}
