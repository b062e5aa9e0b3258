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
