//! Tests of the reconcile core: queue, cache and barrier together.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use strata_model::object::Object;
use strata_model::resource::builtin;
use strata_plan::controller::MapTo;

use super::*;

const NOW: Moment = Duration::from_secs(1);

fn core() -> Core {
    Core::new(vec![
        Watched::all(&builtin::REPLICA_SET, MapTo::Itself),
        Watched::all(&builtin::POD, MapTo::Controller(&builtin::REPLICA_SET)),
    ])
}

fn pod(owner: Option<&str>, revision: u64) -> Arc<Object> {
    let owners: Vec<_> = owner
        .into_iter()
        .map(|o| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": o, "uid": o, "controller": true}))
        .collect();
    let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n",
        "uid": "u", "resourceVersion": revision.to_string(), "ownerReferences": owners}});
    Arc::new(Object::from_value(&value).unwrap())
}

fn sync(core: &mut Core) {
    for resource in [&builtin::REPLICA_SET.id, &builtin::POD.id] {
        core.apply(resource, Event::Restarted, NOW);
        assert!(core.apply(resource, Event::InitialEnd(1), NOW));
    }
    assert!(core.cache.is_synced());
}

fn keys(core: &mut Core) -> Vec<String> {
    let mut keys = Vec::new();
    while let Some(job) = core.queue.pop(NOW) {
        keys.push(job.key.object.name.clone());
        core.done(job, End::Settled(None), Vec::new(), NOW, 0.5);
    }
    keys
}

#[test]
fn both_the_owner_that_lost_an_object_and_the_one_that_got_it_look() {
    let mut core = core();
    sync(&mut core);
    core.apply(&builtin::POD.id, Event::Applied(pod(Some("a"), 2), 2), NOW);
    assert_eq!(keys(&mut core), ["a"]);
    core.apply(&builtin::POD.id, Event::Applied(pod(Some("b"), 3), 3), NOW);
    assert_eq!(keys(&mut core), ["a", "b"]);
    core.apply(&builtin::POD.id, Event::Applied(pod(None, 4), 4), NOW);
    assert_eq!(keys(&mut core), ["b"]);
    core.apply(&builtin::POD.id, Event::Deleted(pod(Some("b"), 5), 5), NOW);
    assert_eq!(keys(&mut core), ["b"]);
}

#[test]
fn a_resync_of_what_did_not_change_leads_to_no_key() {
    let mut core = core();
    core.apply(&builtin::POD.id, Event::Restarted, NOW);
    core.apply(&builtin::POD.id, Event::Initial(pod(Some("a"), 2)), NOW);
    core.apply(&builtin::POD.id, Event::InitialEnd(2), NOW);
    assert_eq!(keys(&mut core), ["a"]);
    core.apply(&builtin::POD.id, Event::Restarted, NOW);
    core.apply(&builtin::POD.id, Event::Initial(pod(Some("a"), 2)), NOW);
    core.apply(&builtin::POD.id, Event::InitialEnd(2), NOW);
    assert!(keys(&mut core).is_empty());
}

#[test]
fn a_write_that_the_cache_has_seen_already_bars_nothing() {
    let mut core = core();
    sync(&mut core);
    core.apply(&builtin::POD.id, Event::Applied(pod(Some("a"), 2), 2), NOW);
    let job = core.queue.pop(NOW).unwrap();
    let barriers = |at| vec![Barrier::Revision(builtin::POD.id.clone(), at)];
    core.done(job, End::Settled(None), barriers(2), NOW, 0.5);
    core.apply(&builtin::POD.id, Event::Applied(pod(Some("a"), 3), 3), NOW);
    let job = core.queue.pop(NOW).unwrap();
    core.done(job, End::Settled(None), barriers(5), NOW, 0.5);
    core.apply(&builtin::POD.id, Event::Applied(pod(Some("a"), 4), 4), NOW);
    assert!(core.queue.pop(NOW).is_none(), "revision 5 is its own, and not seen yet");
    core.apply(&builtin::POD.id, Event::Applied(pod(Some("a"), 5), 5), NOW);
    assert!(core.queue.pop(NOW).is_some());
}

#[test]
fn the_time_to_converge_runs_from_the_change_of_the_wish_until_the_root_is_ready() {
    let mut core = core();
    sync(&mut core);
    let set = |generation: i64, ready: i64, revision: u64| {
        let value = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "a", "namespace": "n",
            "uid": "a", "generation": generation, "resourceVersion": revision.to_string()}, "spec": {"replicas": 1},
            "status": {"replicas": 1, "readyReplicas": ready, "observedGeneration": generation}});
        Event::Applied(Arc::new(Object::from_value(&value).unwrap()), revision)
    };
    let key = Key::new(&builtin::REPLICA_SET, strata_model::object::ObjectKey::new("n", "a"));
    let at = |seconds| NOW + Duration::from_secs(seconds);
    core.apply(&builtin::REPLICA_SET.id, set(1, 0, 2), NOW);
    assert_eq!(core.converged(&key, at(1)), None, "not ready");
    core.apply(&builtin::REPLICA_SET.id, set(1, 1, 3), at(2));
    assert_eq!(core.converged(&key, at(2)), Some(Duration::from_secs(2)));
    assert_eq!(core.converged(&key, at(3)), None, "told once");
    core.apply(&builtin::REPLICA_SET.id, set(1, 0, 4), at(4));
    core.apply(&builtin::REPLICA_SET.id, set(1, 1, 5), at(5));
    assert_eq!(core.converged(&key, at(5)), None, "the wish did not change");
    core.apply(&builtin::REPLICA_SET.id, set(2, 0, 6), at(6));
    assert!(core.converging.contains_key(&key));
    let gone = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "a", "namespace": "n", "uid": "a"}});
    core.apply(
        &builtin::REPLICA_SET.id,
        Event::Deleted(Arc::new(Object::from_value(&gone).unwrap()), 7),
        at(7),
    );
    assert!(core.converging.is_empty());
}
