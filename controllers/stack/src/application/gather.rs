//! Puts the objects of an Application side by side, as wished and as they are in the cache, and with what this turn knows
//! beyond the cache: its own writes. Asks nobody.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use strata_model::object::{Object, ObjectKey};
use strata_model::resource::{Registry, ResourceType, Verb};
use strata_plan::application::compare::Item;
use strata_plan::application::desired::{Desired, Wish};
use strata_plan::application::identity::{ObjectId, owner};
use strata_plan::application::permit;
use strata_plan::application::project::ProjectSpec;
use strata_plan::application::types::APPLICATION;
use strata_plan::controller::View;

use super::memory::{App, Memory, Spot};

/// Types that come and go by the thousand and that nobody holds to a wish, as with Argo CD: group, plural.
const LEFT_OUT: [(&str, &str); 6] = [
    ("", "events"),
    ("events.k8s.io", "events"),
    ("coordination.k8s.io", "leases"),
    ("", "endpoints"),
    ("discovery.k8s.io", "endpointslices"),
    ("", "bindings"),
];

/// Whether objects of a type can be part of an Application.
pub fn is_watched(resource: &ResourceType) -> bool {
    let left_out = LEFT_OUT.iter().any(|(g, r)| *g == resource.id.group && *r == resource.id.resource);
    let all = [Verb::List, Verb::Watch, Verb::Patch].iter().all(|v| resource.verbs.contains(v));
    !left_out && all
}

/// What this turn wrote: newer than the cache. `None`: it is gone.
pub type Overlay = HashMap<Spot, Option<Arc<Object>>>;

/// All that types are needed for.
#[derive(Clone)]
pub struct Types {
    /// Every version of every type.
    pub all: Arc<Registry>,
    /// The version of each that is watched.
    pub watched: Arc<Vec<Arc<ResourceType>>>,
}

impl Types {
    /// The type as it is watched.
    pub fn watched(&self, of: &ResourceType) -> Option<&Arc<ResourceType>> {
        self.watched.iter().find(|t| t.id == of.id)
    }
}

/// Where objects are found.
pub struct Places<'a> {
    /// The cache.
    pub view: &'a dyn View,
    /// This turn's writes.
    pub overlay: &'a Overlay,
}

impl Places<'_> {
    /// A live object.
    pub fn live(&self, spot: &Spot) -> Option<Arc<Object>> {
        match self.overlay.get(spot) {
            Some(written) => written.clone(),
            None => self.view.get(&spot.0, &spot.1),
        }
    }
}

/// The objects of an Application.
#[derive(Default)]
pub struct Gathered {
    /// Side by side.
    pub items: Vec<Item>,
    /// What is wrong with single manifests.
    pub faults: Vec<String>,
}

/// Which Application, and by what it goes.
pub struct Whose<'a> {
    /// The Application.
    pub app: &'a ObjectKey,
    /// What it wishes for.
    pub wish: &'a Wish,
    /// The namespace that is made for it.
    pub scaffold: Option<&'a Arc<Desired>>,
    /// Its project, by name.
    pub project: (&'a str, &'a ProjectSpec),
}

/// Gathers them.
pub fn gather(
    whose: &Whose<'_>,
    places: &Places<'_>,
    memory: &Memory,
    own: &mut App,
    types: &Types,
) -> Gathered {
    let mut found = Gathered { faults: whose.wish.faults.clone(), ..Gathered::default() };
    let mut spots: BTreeSet<Spot> = BTreeSet::new();
    let has_scaffold = |s: &Arc<Desired>| whose.wish.objects.iter().any(|d| d.id == s.id);
    let scaffold = whose.scaffold.filter(|s| !has_scaffold(s));
    for desired in scaffold.into_iter().chain(&whose.wish.objects) {
        let mut item = Item {
            id: desired.id.clone(),
            desired: Some(Arc::clone(desired)),
            resource: desired.resource.clone(),
            ..Item::default()
        };
        if let Some(resource) = &desired.resource {
            let Some(watched) = types.watched(resource) else {
                found
                    .faults
                    .push(format!("{}: {} is of a type that no source can hold", desired.place, desired.id));
                continue;
            };
            let (name, project) = whose.project;
            let why = permit::forbids_object(project, name, &desired.id, resource.is_namespaced());
            if let Some(why) = why.filter(|_| !desired.is_scaffold) {
                found.faults.push(format!("{}: {why}", desired.place));
                continue;
            }
            item.resource = Some(Arc::clone(watched));
            let spot = (watched.id.clone(), desired.id.key());
            item.live = places.live(&spot);
            spots.insert(spot);
        }
        if let Some(live) = &item.live {
            item.seen = own.seen(&item.id, live);
            item.holder = holder(whose.app, live, places.view);
        }
        found.items.push(item);
    }
    let held = memory.index().held(whose.app);
    for spot in held.iter().filter(|s| !spots.contains(s)) {
        found.items.extend(extra(whose.app, spot, places, own, types));
    }
    // Wishes for what is not there yet lead here as well.
    memory.index().wish(whose.app, spots);
    let ids: BTreeSet<&ObjectId> = found.items.iter().map(|i| &i.id).collect();
    own.keep(&ids);
    found
}

/// What belongs to the Application and is in its source no longer.
fn extra(app: &ObjectKey, spot: &Spot, places: &Places<'_>, own: &mut App, types: &Types) -> Option<Item> {
    let live = places.live(spot).filter(|o| owner(o).as_ref() == Some(app))?;
    let resource = types.watched.iter().find(|t| t.id == spot.0).cloned();
    let id = ObjectId::of(&live);
    let seen = own.seen(&id, &live);
    Some(Item { id, resource, live: Some(live), seen, ..Item::default() })
}

/// Another Application, where there is such a one, that an object says it belongs to.
fn holder(app: &ObjectKey, live: &Object, view: &dyn View) -> Option<ObjectKey> {
    let owner = owner(live).filter(|owner| owner != app)?;
    view.get(&APPLICATION.id, &owner).map(|_| owner)
}
