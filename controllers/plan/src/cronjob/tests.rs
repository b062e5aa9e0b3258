//! Scenarios of CronJobs. Those that settle run with whole plans and with plans cut after every write.

use serde_json::json;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin::{CRON_JOB, JOB};

use super::*;
use crate::testing::{all, at, both_ways, key, names, value};
use crate::world::World;

/// A cron job that runs each minute, made at second 0 (which is a whole minute).
fn minutely(more: Value) -> World {
    let mut spec = json!({"schedule": "* * * * *", "concurrencyPolicy": "Allow", "jobTemplate":
        {"metadata": {"labels": {"a": "b"}}, "spec": {"template": crate::testing::template("c", "i")}}});
    strata_model::merge::apply(&mut spec, &more);
    let mut world = World::new();
    world
        .create(&CRON_JOB, json!({"metadata": {"name": "tick", "namespace": "n"}, "spec": spec}), at(0))
        .unwrap();
    world
}

fn status(world: &World) -> Value {
    value(world, &CRON_JOB, &key("tick"))["status"].take()
}

fn end(world: &mut World, job: &ObjectKey, how: &str, second: i64) {
    let when = rfc3339(at(second));
    let patch = json!({"status": {"startTime": when, "completionTime": when,
        "conditions": [{"type": how, "status": "True", "lastTransitionTime": when}]}});
    world.patch(&JOB, job, &patch).unwrap();
}

#[test]
fn a_job_is_made_at_its_instant_under_its_name_and_once() {
    both_ways(&CronJobs, at(59), || minutely(json!({})), |world| assert!(all(world, &JOB).is_empty()));
    both_ways(
        &CronJobs,
        at(61),
        || minutely(json!({})),
        |world| {
            let minutes = at(60).as_second() / 60;
            assert_eq!(names(world, &JOB), [format!("tick-{minutes}")]);
            let job = &all(world, &JOB)[0];
            assert_eq!(job.meta().label("a"), Some("b"));
            assert_eq!(job.meta().annotation(SCHEDULED), Some(rfc3339(at(60)).as_str()));
            assert_eq!(job.meta().controller().unwrap().kind, "CronJob");
            assert_eq!(status(world)["lastScheduleTime"], rfc3339(at(60)));
            assert_eq!(status(world)["active"][0]["name"], json!(job.meta().name));
        },
    );
}

#[test]
fn the_next_look_is_at_the_next_instant() {
    let world = minutely(json!({}));
    let plan = world.plan(&CronJobs, &Key::new(&CRON_JOB, key("tick")), at(10));
    assert_eq!(plan.next, crate::controller::Next::At(at(60)));
}

#[test]
fn of_missed_runs_only_the_latest_is_made_up_for() {
    let mut world = minutely(json!({}));
    world.settle(&CronJobs, at(601));
    assert_eq!(names(&world, &JOB), [format!("tick-{}", at(600).as_second() / 60)]);
    let mut late = minutely(json!({"schedule": "0 * * * *", "startingDeadlineSeconds": 30}));
    late.settle(&CronJobs, at(3600 + 31));
    assert!(all(&late, &JOB).is_empty(), "its deadline has passed");
    let mut lost = minutely(json!({}));
    lost.settle(&CronJobs, at(200 * 60));
    assert_eq!(all(&lost, &JOB).len(), 1);
    assert!(lost.told.iter().any(|told| told.reason == "TooManyMissedTimes"));
}

#[test]
fn what_still_runs_holds_up_the_next_or_goes_or_neither() {
    let twice = |policy: &str| {
        let mut world = minutely(json!({"concurrencyPolicy": policy}));
        world.settle(&CronJobs, at(61));
        world.settle(&CronJobs, at(121));
        world
    };
    assert_eq!(all(&twice("Allow"), &JOB).len(), 2);
    assert_eq!(names(&twice("Replace"), &JOB), [format!("tick-{}", at(120).as_second() / 60)]);
    let mut forbid = twice("Forbid");
    let first = all(&forbid, &JOB)[0].key();
    assert_eq!(all(&forbid, &JOB).len(), 1);
    end(&mut forbid, &first, "Complete", 130);
    forbid.settle(&CronJobs, at(131));
    assert_eq!(all(&forbid, &JOB).len(), 2, "it is made up for once the first has ended");
}

#[test]
fn a_few_jobs_that_ended_are_kept() {
    let mut world = minutely(json!({"successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1}));
    for minute in 1..=6 {
        world.settle(&CronJobs, at(minute * 60 + 1));
        let active = all(&world, &JOB)
            .into_iter()
            .find(|job| job.to_value().unwrap()["status"]["conditions"].is_null());
        let how = if minute % 2 == 0 { "Failed" } else { "Complete" };
        end(&mut world, &active.unwrap().key(), how, minute * 60 + 2);
    }
    world.settle(&CronJobs, at(6 * 60 + 3));
    assert_eq!(all(&world, &JOB).len(), 3);
    assert_eq!(status(&world)["lastSuccessfulTime"], rfc3339(at(5 * 60 + 2)));
    assert_eq!(status(&world)["active"], json!(null));
    assert!(world.told.iter().any(|told| told.reason == "SawCompletedJob"));
}

#[test]
fn one_that_rests_or_makes_no_sense_runs_nothing_and_says_so() {
    let mut world = minutely(json!({"suspend": true}));
    world.settle(&CronJobs, at(601));
    assert!(all(&world, &JOB).is_empty());
    let world = minutely(json!({"schedule": "no"}));
    let plan = world.plan(&CronJobs, &Key::new(&CRON_JOB, key("tick")), at(61));
    assert!(plan.notes.iter().any(|note| note.reason == "UnparseableSchedule"), "{plan:?}");
}

/// Reasons of the events that a plan at an instant holds, and when it looks again.
fn told(world: &World, second: i64) -> (Vec<&'static str>, crate::controller::Next) {
    let plan = world.plan(&CronJobs, &Key::new(&CRON_JOB, key("tick")), at(second));
    let reasons = plan.actions.iter().filter_map(|action| match action {
        Action::Event { reason, .. } => Some(*reason),
        _ => None,
    });
    (reasons.collect(), plan.next)
}

#[test]
fn a_run_that_is_held_up_and_one_that_is_missed_are_told_at_their_time() {
    let more =
        json!({"concurrencyPolicy": "Forbid", "schedule": "*/10 * * * *", "startingDeadlineSeconds": 30});
    let mut world = minutely(more);
    world.settle(&CronJobs, at(601));
    let (reasons, next) = told(&world, 1200);
    assert_eq!((reasons, next), (vec!["JobAlreadyActive"], crate::controller::Next::At(at(1230))));
    assert!(told(&world, 1210).0.is_empty(), "once is enough");
    assert_eq!(told(&world, 1230).0, ["MissSchedule"]);
    assert!(told(&world, 1300).0.is_empty());
}

#[test]
fn a_job_that_went_missing_is_told() {
    let mut world = minutely(json!({}));
    world.settle(&CronJobs, at(61));
    let job = all(&world, &JOB)[0].key();
    world.vanish(&JOB, &job);
    world.settle(&CronJobs, at(62));
    assert!(world.told.iter().any(|told| told.message == format!("Active job went missing: {}", job.name)));
}
