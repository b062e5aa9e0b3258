//! Scenarios of templates kept, called back, pruned, and of names that are taken.

use serde_json::json;
use strata_model::resource::builtin::{CONTROLLER_REVISION, STATEFUL_SET};

use super::*;
use crate::testing::{all, at, key, names, template, value};
use crate::world::World;

fn world() -> World {
    let mut world = World::new();
    let set = json!({"metadata": {"name": "web", "namespace": "n", "annotations": {LAST_APPLIED: "{}", "kubernetes.io/change-cause": "first"}},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("web", "i:1")}});
    world.create(&STATEFUL_SET, set, at(0)).unwrap();
    world
}

fn history(world: &World) -> History {
    let root = Key::new(&STATEFUL_SET, key("web"));
    let owner = View::get(world, &STATEFUL_SET.id, &key("web")).unwrap();
    let selector = Selector::parse("app=web").unwrap();
    History::observe(world, (&STATEFUL_SET, &owner), "hash", Some(&selector), &root).unwrap()
}

/// Turns until the present template has its revision; answers its name and number.
fn hold(world: &mut World) -> (String, i64) {
    for _ in 0..20 {
        let mut plan = Plan::settled();
        let history = history(world);
        if let Some(present) = history.hold(&mut plan) {
            assert!(plan.is_settled());
            return (present.object().meta().name.clone(), present.revision);
        }
        for action in &plan.actions {
            world.apply(action, at(1)).unwrap();
        }
    }
    panic!("never held: {:?}", all(world, &CONTROLLER_REVISION));
}

fn set_image(world: &mut World, image: &str) {
    let patch = json!({"spec": {"template": template("web", image)}});
    world.patch(&STATEFUL_SET, &key("web"), &patch).unwrap();
}

#[test]
fn each_template_has_one_revision_and_the_present_one_is_the_newest() {
    let mut world = world();
    let (first, number) = hold(&mut world);
    assert!(first.starts_with("web-") && number == 1);
    let kept = value(&world, &CONTROLLER_REVISION, &key(&first));
    assert_eq!(kept["data"]["spec"]["template"]["$patch"], "replace");
    assert_eq!(kept["metadata"]["annotations"], json!({"kubernetes.io/change-cause": "first"}));
    assert_eq!(kept["metadata"]["labels"]["app"], "web");
    assert_eq!(template_of(&history(&world).all[0]), template("web", "i:1"));
    set_image(&mut world, "i:2");
    let (second, number) = hold(&mut world);
    assert!(second != first && number == 2);
    // Called back, it is the same revision with a new number.
    set_image(&mut world, "i:1");
    assert_eq!(hold(&mut world), (first, 3));
    assert_eq!(names(&world, &CONTROLLER_REVISION).len(), 2);
}

#[test]
fn a_taken_name_is_evaded_and_orphans_are_taken_over() {
    let mut world = world();
    let name = history(&world).candidate();
    let alien = json!({"metadata": {"name": name, "namespace": "n"}, "data": {"x": 1}, "revision": 7});
    world.create(&CONTROLLER_REVISION, alien, at(0)).unwrap();
    assert_ne!(hold(&mut world).0, name);
    assert_eq!(value(&world, &STATEFUL_SET, &key("web"))["status"]["collisionCount"], 1);
    let mine = history(&world).all[0].object().key();
    world.patch(&CONTROLLER_REVISION, &mine, &json!({"metadata": {"ownerReferences": null}})).unwrap();
    assert_eq!(hold(&mut world).0, mine.name);
}

#[test]
fn the_oldest_that_nobody_uses_go() {
    let mut world = world();
    let made: Vec<String> = (1..=5)
        .map(|n| {
            set_image(&mut world, &format!("i:{n}"));
            hold(&mut world).0
        })
        .collect();
    let mut plan = Plan::settled();
    history(&world).prune(|r| r.object().meta().name == made[0], 1, &mut plan);
    for action in &plan.actions {
        world.apply(action, at(2)).unwrap();
    }
    let mut left = vec![made[0].clone(), made[3].clone(), made[4].clone()];
    left.sort();
    assert_eq!(names(&world, &CONTROLLER_REVISION), left);
}
