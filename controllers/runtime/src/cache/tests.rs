//! Tests of the cache: what it holds ends as a list says, whatever the watch did on the way.

use proptest::prelude::*;
use serde_json::json;
use strata_model::resource::builtin;

use super::*;

fn pods() -> GroupResource {
    builtin::POD.id.clone()
}

fn pod(name: &str, revision: u64, owner: Option<(&str, bool)>) -> Arc<Object> {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|(uid, controls)| {
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": uid, "controller": controls})
        })
        .collect();
    let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "n",
        "uid": format!("uid-{name}"), "resourceVersion": revision.to_string(), "ownerReferences": owners}});
    Arc::new(Object::from_value(&value).unwrap())
}

fn names(objects: &[Arc<Object>]) -> Vec<&str> {
    objects.iter().map(|o| o.meta().name.as_str()).collect()
}

fn synced(objects: &[Arc<Object>]) -> Cache {
    let mut cache = Cache::new([pods()]);
    cache.apply(&pods(), Event::Restarted);
    for object in objects {
        cache.apply(&pods(), Event::Initial(Arc::clone(object)));
    }
    cache.apply(&pods(), Event::InitialEnd(10));
    cache
}

#[test]
fn is_complete_only_after_the_whole_state_and_knows_how_far_it_is() {
    let mut cache = Cache::new([pods()]);
    cache.apply(&pods(), Event::Restarted);
    cache.apply(&pods(), Event::Initial(pod("a", 3, None)));
    assert!(!cache.is_synced() && cache.revision(&pods()) == 0);
    let end = cache.apply(&pods(), Event::InitialEnd(10));
    assert!(end.synced && cache.is_synced() && cache.revision(&pods()) == 10);
    assert_eq!(cache.apply(&pods(), Event::Progress(12)).seen, Some(12));
    assert!(cache.passed(&Barrier::Revision(pods(), 12)) && !cache.passed(&Barrier::Revision(pods(), 13)));
    assert!(cache.passed(&Barrier::Revision(builtin::NODE.id.clone(), 99)), "nobody watches nodes here");
}

#[test]
fn what_vanished_while_nobody_looked_is_a_deletion_and_what_stayed_is_nothing() {
    let stays = pod("stays", 3, None);
    let mut cache = synced(&[Arc::clone(&stays), pod("goes", 4, None), pod("changes", 5, None)]);
    cache.apply(&pods(), Event::Restarted);
    assert!(cache.apply(&pods(), Event::Initial(pod("stays", 3, None))).deltas.is_empty());
    assert_eq!(cache.apply(&pods(), Event::Initial(pod("changes", 11, None))).deltas[0].how, How::Found);
    assert!(cache.get(&pods(), &ObjectKey::new("n", "goes")).is_some(), "until the whole state is known");
    let end = cache.apply(&pods(), Event::InitialEnd(20));
    assert_eq!((end.deltas.len(), end.deltas[0].how), (1, How::Deleted));
    assert_eq!(end.deltas[0].new.meta().name, "goes");
    assert_eq!(names(&cache.list(&pods(), "")), ["changes", "stays"]);
    let kept = cache.get(&pods(), &ObjectKey::new("n", "stays")).unwrap();
    assert!(Arc::ptr_eq(&kept, &stays), "equal bytes keep the object, and what was parsed of it");
    assert!(!end.synced && !end.went_back);
}

#[test]
fn a_line_of_revisions_that_begins_anew_is_noticed() {
    let mut cache = synced(&[]);
    cache.apply(&pods(), Event::Restarted);
    let end = cache.apply(&pods(), Event::InitialEnd(2));
    assert!(end.went_back && cache.revision(&pods()) == 2);
}

#[test]
fn indexes_follow_owners() {
    let mut cache =
        synced(&[pod("a", 1, Some(("o1", true))), pod("b", 2, Some(("o1", false))), pod("c", 3, None)]);
    assert_eq!(names(&cache.owned_by(&pods(), "o1")), ["a", "b"]);
    assert_eq!(names(&cache.orphans(&pods(), "n")), ["b", "c"]);
    cache.apply(&pods(), Event::Applied(pod("a", 11, Some(("o2", true))), 11));
    assert_eq!(names(&cache.owned_by(&pods(), "o1")), ["b"]);
    cache.apply(&pods(), Event::Deleted(pod("b", 12, Some(("o1", false))), 12));
    assert!(cache.owned_by(&pods(), "o1").is_empty());
    assert_eq!(names(&cache.orphans(&pods(), "")), ["c"]);
    assert!(cache.orphans(&pods(), "m").is_empty());
}

#[test]
fn what_an_object_leaves_is_passed_when_it_has_changed_or_gone() {
    let mut cache = synced(&[pod("a", 1, None)]);
    let left = |version: Option<&str>| Barrier::Left {
        resource: pods(),
        key: ObjectKey::new("n", "a"),
        uid: "uid-a".into(),
        resource_version: version.map(str::to_owned),
    };
    assert!(!cache.passed(&left(Some("1"))) && !cache.passed(&left(None)));
    cache.apply(&pods(), Event::Applied(pod("a", 11, None), 11));
    assert!(cache.passed(&left(Some("1"))) && !cache.passed(&left(None)));
    cache.apply(&pods(), Event::Deleted(pod("a", 12, None), 12));
    assert!(cache.passed(&left(None)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// However the events come, with gaps and whole states in between, the cache and its indexes end as a list says.
    #[test]
    fn ends_as_a_list_says(changes in proptest::collection::vec((0u8..5, 0u8..4, any::<bool>()), 0..60)) {
        let mut cache = synced(&[]);
        let mut truth: BTreeMap<String, Arc<Object>> = BTreeMap::new();
        let mut revision = 10;
        for (name, what, gap) in changes {
            revision += 1;
            let name = name.to_string();
            let owner = [None, Some(("o1", true)), Some(("o2", false))][usize::from(what) % 3];
            let event = match what {
                3 => match truth.remove(&name) {
                    Some(object) => Event::Deleted(object, revision),
                    None => Event::Progress(revision),
                },
                _ => {
                    let object = pod(&name, revision, owner);
                    truth.insert(name, Arc::clone(&object));
                    Event::Applied(object, revision)
                }
            };
            if gap {
                cache.apply(&pods(), Event::Restarted);
                for object in truth.values() {
                    cache.apply(&pods(), Event::Initial(Arc::clone(object)));
                }
                cache.apply(&pods(), Event::InitialEnd(revision));
            } else {
                cache.apply(&pods(), event);
            }
        }
        let all: Vec<Arc<Object>> = truth.into_values().collect();
        prop_assert_eq!(cache.list(&pods(), "n"), all.clone());
        for owner in ["o1", "o2"] {
            let owned: Vec<Arc<Object>> =
                all.iter().filter(|o| o.meta().owner_references.iter().any(|r| r.uid == owner)).cloned().collect();
            prop_assert_eq!(cache.owned_by(&pods(), owner), owned);
        }
        let orphans: Vec<Arc<Object>> =
            all.iter().filter(|o| o.meta().controller().is_none()).cloned().collect();
        prop_assert_eq!(cache.orphans(&pods(), ""), orphans);
    }
}
