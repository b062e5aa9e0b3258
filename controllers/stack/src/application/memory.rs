//! What the loop remembers between turns, all of it only to spare work: which objects lead to which Application, what was
//! read of live objects, and verdicts. Losing it costs requests, never the truth.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{GroupResource, Registry};
use strata_plan::application::compare::Seen;
use strata_plan::application::desired::Wish;
use strata_plan::application::difference::Verdict;
use strata_plan::application::identity::{ObjectId, owner};
use strata_plan::application::spec::Spec;
use strata_plan::controller::View;
use tokio::time::Instant;

use super::layer::{Purpose, Renders};

/// An object by type, namespace and name.
pub type Spot = (GroupResource, ObjectKey);

/// Which objects lead to which Application.
#[derive(Default)]
pub struct Index {
    /// Objects that say that they belong to an Application.
    held: HashMap<ObjectKey, BTreeSet<Spot>>,
    /// Objects that Applications wish for.
    wished: HashMap<Spot, BTreeSet<ObjectKey>>,
    /// The other way round.
    wishes: HashMap<ObjectKey, BTreeSet<Spot>>,
}

impl Index {
    /// Takes a change of an object, in its old or its new state. Answers the Applications that must look.
    pub fn changed(&mut self, view: &dyn View, type_: &GroupResource, object: &Object) -> Vec<ObjectKey> {
        let spot = (type_.clone(), object.key());
        let now = view.get(type_, &spot.1).and_then(|o| owner(&o));
        let then = owner(object);
        if let Some(then) = then.as_ref().filter(|then| now.as_ref() != Some(then))
            && let Some(spots) = self.held.get_mut(then)
        {
            spots.remove(&spot);
            if spots.is_empty() {
                self.held.remove(then);
            }
        }
        if let Some(now) = &now {
            self.held.entry(now.clone()).or_default().insert(spot.clone());
        }
        let mut apps: BTreeSet<ObjectKey> = self.wished.get(&spot).cloned().unwrap_or_default();
        apps.extend(now);
        apps.extend(then);
        apps.into_iter().collect()
    }

    /// Objects that say that they belong to an Application.
    pub fn held(&self, app: &ObjectKey) -> Vec<Spot> {
        self.held.get(app).into_iter().flatten().cloned().collect()
    }

    /// An Application wishes for these objects from now on.
    pub fn wish(&mut self, app: &ObjectKey, spots: BTreeSet<Spot>) {
        let old = self.wishes.remove(app).unwrap_or_default();
        for gone in old.difference(&spots) {
            if let Some(apps) = self.wished.get_mut(gone) {
                apps.remove(app);
                if apps.is_empty() {
                    self.wished.remove(gone);
                }
            }
        }
        for spot in &spots {
            self.wished.entry(spot.clone()).or_default().insert(app.clone());
        }
        if !spots.is_empty() {
            self.wishes.insert(app.clone(), spots);
        }
    }
}

/// A verdict, and what it is about.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Hash of the wish.
    pub desired: u64,
    /// Of the live object; 0 where it was missing.
    pub live: u64,
    /// What was found.
    pub verdict: Verdict,
    /// When.
    pub at: Instant,
}

/// A wish, and what it was made of.
pub struct Made {
    renders: Renders,
    spec: Spec,
    types: Arc<Registry>,
    /// The wish.
    pub wish: Arc<Wish>,
}

/// What is remembered of one Application.
#[derive(Default)]
pub struct App {
    wishes: HashMap<Purpose, Made>,
    seen: HashMap<ObjectId, (String, String, Seen)>,
    /// Verdicts.
    pub judged: HashMap<ObjectId, Judged>,
    /// A refresh was asked for, and this is when that was seen.
    pub refresh: Option<Instant>,
}

impl App {
    /// The wish that these renders make, by `make` where it is not known yet.
    pub fn wish(
        &mut self,
        purpose: Purpose,
        renders: &Renders,
        spec: &Spec,
        types: &Arc<Registry>,
        make: impl FnOnce() -> Wish,
    ) -> Arc<Wish> {
        if let Some(made) = self.wishes.get(&purpose)
            && Arc::ptr_eq(&made.renders, renders)
            && Arc::ptr_eq(&made.types, types)
            && made.spec == *spec
        {
            return Arc::clone(&made.wish);
        }
        let wish = Arc::new(make());
        let (renders, types) = (Arc::clone(renders), Arc::clone(types));
        self.wishes.insert(purpose, Made { renders, spec: spec.clone(), types, wish: Arc::clone(&wish) });
        wish
    }

    /// What is read of a live object, at most once for each of its states.
    pub fn seen(&mut self, id: &ObjectId, live: &Object) -> Seen {
        let meta = live.meta();
        if let Some((uid, version, seen)) = self.seen.get(id)
            && (uid, version) == (&meta.uid, &meta.resource_version)
        {
            return seen.clone();
        }
        let seen = live.to_value().map(Seen::of).unwrap_or_default();
        self.seen.insert(id.clone(), (meta.uid.clone(), meta.resource_version.clone(), seen.clone()));
        seen
    }

    /// Forgets what is read of objects that are no longer any of its own.
    pub fn keep(&mut self, ids: &BTreeSet<&ObjectId>) {
        self.seen.retain(|id, _| ids.contains(id));
        self.judged.retain(|id, _| ids.contains(id));
    }
}

/// All of it.
#[derive(Default)]
pub struct Memory {
    index: Mutex<Index>,
    apps: Mutex<HashMap<ObjectKey, App>>,
}

impl Memory {
    /// The index, for a moment.
    pub fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apps(&self) -> MutexGuard<'_, HashMap<ObjectKey, App>> {
        self.apps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out what is remembered of an Application, to be put back after the turn.
    pub fn take(&self, app: &ObjectKey) -> App {
        self.apps().remove(app).unwrap_or_default()
    }

    /// Puts it back.
    pub fn put(&self, app: &ObjectKey, of: App) {
        self.apps().insert(app.clone(), of);
    }

    /// An Application is gone.
    pub fn forget(&self, app: &ObjectKey) {
        self.apps().remove(app);
        self.index().wish(app, BTreeSet::new());
    }
}
