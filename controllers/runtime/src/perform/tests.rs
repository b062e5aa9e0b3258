//! What may be under way together, how much of it, and what a failure stops.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use serde_json::json;
use strata_model::object::ObjectKey;
use strata_model::resource::{ResourceType, builtin};
use strata_plan::controller::{Action, EventType, Fact, Key, Propagation, Target};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::abreast::{self, AT_ONCE, Begin, Ended};
use super::stages;

fn target(resource: &ResourceType, name: &str) -> Target {
    Target {
        resource: resource.clone(),
        key: ObjectKey::new("n", name),
        uid: format!("uid-{name}"),
        resource_version: Some("1".to_owned()),
    }
}

fn create() -> Action {
    let object = json!({"metadata": {"generateName": "web-", "namespace": "n"}});
    Action::Create { resource: builtin::POD.clone(), object }
}

fn create_named(name: &str) -> Action {
    let object = json!({"metadata": {"name": name, "namespace": "n"}});
    Action::Create { resource: builtin::POD.clone(), object }
}

fn patch(resource: &ResourceType, name: &str) -> Action {
    Action::Patch { target: target(resource, name), patch: json!({}) }
}

fn status(resource: &ResourceType, name: &str) -> Action {
    Action::Status { target: target(resource, name), status: json!({}) }
}

fn delete(name: &str) -> Action {
    let target = target(&builtin::POD, name);
    Action::Delete { target, propagation: Propagation::Background, grace_seconds: None }
}

fn alive(name: &str) -> Action {
    Action::Confirm { target: target(&builtin::REPLICA_SET, name), fact: Fact::Alive }
}

fn event(message: &str) -> Action {
    let about = target(&builtin::REPLICA_SET, "web");
    Action::Event { about, type_: EventType::Normal, reason: "Told", message: message.to_owned() }
}

/// The stages of a plan for the replica set `web`: how many actions each has, and what is told with which.
fn shape(actions: Vec<Action>) -> String {
    let root = Key::new(&builtin::REPLICA_SET, ObjectKey::new("n", "web"));
    let told = |told: &[crate::events::Told]| -> String {
        told.iter().map(|t| format!("({})", t.message)).collect()
    };
    let (first, stages) = stages::of(actions, &root);
    let steps =
        |stage: &stages::Stage| stage.iter().map(|s| format!("*{}", told(&s.told))).collect::<String>();
    let words = std::iter::once(told(&first)).chain(stages.iter().map(steps));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn neighbours_of_one_kind_about_different_objects_go_together() {
    assert_eq!(shape(vec![create(), create(), create()]), "***");
    assert_eq!(shape(vec![delete("a"), delete("b"), status(&builtin::REPLICA_SET, "web")]), "** *");
    assert_eq!(shape(vec![patch(&builtin::POD, "a"), delete("a"), delete("b"), create()]), "* ** *");
    assert_eq!(shape(vec![alive("other"), patch(&builtin::POD, "a"), patch(&builtin::POD, "b")]), "* **");
}

#[test]
fn two_writes_of_one_object_keep_their_order() {
    assert_eq!(shape(vec![patch(&builtin::POD, "a"), patch(&builtin::POD, "a")]), "* *");
    assert_eq!(shape(vec![create_named("a"), create_named("b"), create_named("a")]), "** *");
}

#[test]
fn a_write_to_the_key_itself_waits_for_all_before_it_and_is_waited_for() {
    let (set, own) = (&builtin::REPLICA_SET, "web");
    assert_eq!(shape(vec![patch(set, "a"), patch(set, "b"), patch(set, own), patch(set, "c")]), "** * *");
}

#[test]
fn events_are_told_with_what_they_follow() {
    let actions = vec![event("first"), create(), event("1"), create(), event("2"), event("3"), delete("a")];
    assert_eq!(shape(actions), "(first) *(1)*(2)(3) *");
}

/// Runs `count` calls of which those in `failing` fail, and answers how it ended, how many were begun, and the most
/// that were under way.
async fn runs(count: usize, begin: Begin, failing: &[usize]) -> (Ended, usize, usize) {
    let (begun, under_way, most) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let (begun, under_way, most) = (&begun, &under_way, &most);
    let calls = (0..count).map(|i| async move {
        begun.set(begun.get() + 1);
        under_way.set(under_way.get() + 1);
        most.set(most.get().max(under_way.get()));
        // Virtual time: the clock is paused, and moves when all that was begun waits.
        tokio::time::sleep_until(Instant::now() + Duration::from_millis(10)).await;
        under_way.set(under_way.get() - 1);
        if failing.contains(&i) { Err(i) } else { Ok(i) }
    });
    let deadline = Instant::now() + Duration::from_secs(3600);
    let over = RefCell::new(0);
    let ended = abreast::run(calls, begin, deadline, |place, result: Result<usize, usize>| {
        assert_eq!(Ok(place), result.or_else(Ok::<_, usize>));
        *over.borrow_mut() += 1;
    })
    .await;
    assert_eq!(*over.borrow(), begun.get(), "what was begun is waited for");
    (ended, begun.get(), most.get())
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_bound_are_under_way() {
    assert_eq!(runs(100, Begin::AtOnce, &[]).await, (Ended::Done, 100, AT_ONCE));
    assert_eq!(runs(5, Begin::AtOnce, &[]).await, (Ended::Done, 5, 5));
    assert_eq!(runs(200, Begin::Slowly, &[]).await, (Ended::Done, 200, AT_ONCE));
    assert_eq!(runs(0, Begin::Slowly, &[]).await, (Ended::Done, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_failure_stops_what_is_not_begun() {
    assert_eq!(runs(100, Begin::AtOnce, &[3]).await, (Ended::Failed, AT_ONCE + 3, AT_ONCE));
    let (ended, begun, _) = runs(500, Begin::Slowly, &[0]).await;
    assert_eq!((ended, begun), (Ended::Failed, 1), "what is refused is tried once");
    let (ended, begun, _) = runs(500, Begin::Slowly, &[2]).await;
    assert_eq!(ended, Ended::Failed);
    assert!(begun <= 7, "{begun} were begun");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_after_the_deadline() {
    let gate = Semaphore::new(0);
    let calls = (0..AT_ONCE + 10).map(|_| async { gate.acquire().await.map(drop).map_err(|_| ()) });
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut over = 0;
    let work = abreast::run(calls, Begin::AtOnce, deadline, |_, _| over += 1);
    let open = async {
        tokio::time::sleep_until(deadline).await;
        gate.add_permits(1000);
    };
    let (ended, ()) = tokio::join!(work, open);
    assert_eq!((ended, over), (Ended::Late, AT_ONCE));
}
