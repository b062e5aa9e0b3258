//! Scenarios of Jobs. Those that settle run with whole plans and with plans cut after every write.

use serde_json::json;
use strata_model::object::ObjectKey;
use strata_model::resource::builtin::{JOB, POD};

use super::*;
use crate::testing::{all, at, both_ways, key, value};
use crate::world::World;

fn job(spec: serde_json::Value) -> World {
    let mut spec = spec;
    spec["template"] = json!({"metadata": {"labels": {"job": "work"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    spec["selector"] = json!({"matchLabels": {"job": "work"}});
    let mut world = World::new();
    world.create(&JOB, json!({"metadata": {"name": "work", "namespace": "n"}, "spec": spec}), at(0)).unwrap();
    world
}

fn status(world: &World) -> serde_json::Value {
    value(world, &JOB, &key("work"))["status"].take()
}

fn running(world: &World) -> Vec<ObjectKey> {
    let active = all(world, &POD).into_iter().filter(|pod| {
        let phase = pod.to_value().unwrap()["status"]["phase"].as_str().unwrap_or("Pending").to_owned();
        !pod.meta().is_deleting() && !matches!(phase.as_str(), "Succeeded" | "Failed")
    });
    active.map(|pod| pod.key()).collect()
}

/// Ends a pod at an instant.
fn end(world: &mut World, pod: &ObjectKey, phase: &str, code: i32, when: Timestamp) {
    let finished = strata_model::condition::rfc3339(when);
    let patch = json!({"status": {"phase": phase, "containerStatuses": [{"name": "c", "image": "i", "imageID": "",
        "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": code, "finishedAt": finished}}}]}});
    world.patch(&POD, pod, &patch).unwrap();
}

fn condition(world: &World, type_: &str) -> Option<String> {
    let status = status(world);
    let conditions = status["conditions"].as_array()?.clone();
    let found = conditions.into_iter().find(|c| c["type"] == type_ && c["status"] == "True")?;
    found["reason"].as_str().map(str::to_owned)
}

/// Lets every pod that runs succeed until none is made any more.
fn succeed_all(world: &mut World, mut second: i64) -> i64 {
    loop {
        world.settle(&Jobs, at(second));
        let pods = running(world);
        if pods.is_empty() {
            return second;
        }
        second += 1;
        pods.iter().for_each(|pod| end(world, pod, "Succeeded", 0, at(second)));
    }
}

#[test]
fn as_many_pods_run_as_may_each_held_until_it_is_counted() {
    let build = || job(json!({"completions": 5, "parallelism": 2, "backoffLimit": 6}));
    both_ways(&Jobs, at(1), build, |world| {
        let pods = all(world, &POD);
        assert_eq!(pods.len(), 2);
        for pod in &pods {
            assert!(pod.meta().name.starts_with("work-"));
            assert_eq!(pod.meta().finalizers, [TRACKING]);
        }
        assert_eq!(status(world)["active"], 2);
    });
}

#[test]
fn every_success_is_counted_once_and_the_job_completes() {
    let mut world = job(json!({"completions": 5, "parallelism": 2, "backoffLimit": 6}));
    let end = succeed_all(&mut world, 1);
    assert_eq!(all(&world, &POD).len(), 5);
    let done = status(&world);
    assert_eq!(
        (&done["succeeded"], &done["active"], &done["failed"]),
        (&json!(5), &json!(null), &json!(null))
    );
    assert_eq!(done["uncountedTerminatedPods"], json!({}));
    assert_eq!(condition(&world, "Complete").as_deref(), Some("CompletionsReached"));
    assert_eq!(condition(&world, "SuccessCriteriaMet").as_deref(), Some("CompletionsReached"));
    assert!(done["completionTime"].is_string());
    assert!(all(&world, &POD).iter().all(|pod| pod.meta().finalizers.is_empty()), "pods are let go");
    world.settle(&Jobs, at(end + 1));
    assert_eq!(status(&world), done, "a job that ended stays as it ended");
}

#[test]
fn a_count_survives_a_death_after_every_write() {
    let mut world = job(json!({"completions": 6, "parallelism": 3, "backoffLimit": 6}));
    for second in 1..40 {
        world.settle_in_part(&Jobs, at(second * 700));
        let Some(pod) = running(&world).first().cloned() else { break };
        let phase = if second == 2 { "Failed" } else { "Succeeded" };
        end(&mut world, &pod, phase, 1, at(second * 700));
    }
    world.settle_in_part(&Jobs, at(40_000));
    let done = status(&world);
    assert_eq!((&done["succeeded"], &done["failed"]), (&json!(6), &json!(1)));
    assert_eq!(condition(&world, "Complete").as_deref(), Some("CompletionsReached"));
}

#[test]
fn a_pod_that_is_deleted_before_it_is_counted_still_counts() {
    let mut world = job(json!({"completions": 1, "backoffLimit": 6}));
    world.settle(&Jobs, at(1));
    let pod = running(&world)[0].clone();
    end(&mut world, &pod, "Succeeded", 0, at(2));
    world.delete(&POD, &pod, Some(0), at(2)).unwrap();
    world.settle(&Jobs, at(3));
    assert_eq!(status(&world)["succeeded"], 1);
    assert!(all(&world, &POD).is_empty(), "it is gone once it is counted");
}

#[test]
fn failures_wait_longer_and_longer_and_end_the_job_at_the_limit() {
    let mut world = job(json!({"completions": 1, "backoffLimit": 2}));
    world.settle(&Jobs, at(0));
    let mut now = 0;
    for (failures, pause) in [(1, 10), (2, 20)] {
        let pod = running(&world)[0].clone();
        end(&mut world, &pod, "Failed", 1, at(now));
        world.settle(&Jobs, at(now + pause - 1));
        assert!(running(&world).is_empty(), "made up for too soon after failure {failures}");
        now += pause;
        world.settle(&Jobs, at(now));
        assert_eq!(running(&world).len(), 1, "not made up for after failure {failures}");
    }
    let pod = running(&world)[0].clone();
    end(&mut world, &pod, "Failed", 1, at(now));
    world.settle(&Jobs, at(now + 1000));
    assert_eq!(condition(&world, "Failed").as_deref(), Some("BackoffLimitExceeded"));
    assert_eq!(status(&world)["failed"], 3);
    assert!(running(&world).is_empty());
}

#[test]
fn an_indexed_job_runs_each_index_until_it_succeeds() {
    let mut world =
        job(json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed", "backoffLimit": 6}));
    world.settle(&Jobs, at(1));
    let pods = all(&world, &POD);
    let indexes: Vec<&str> = pods.iter().filter_map(|pod| pod.meta().annotation(observed::INDEX)).collect();
    assert_eq!(indexes, ["0", "1", "2"]);
    let spec = pods[1].to_value().unwrap()["spec"].take();
    assert_eq!(spec["hostname"], "work-1");
    assert_eq!(spec["containers"][0]["env"][0]["name"], "JOB_COMPLETION_INDEX");
    end(&mut world, &pods[0].key(), "Succeeded", 0, at(2));
    end(&mut world, &pods[2].key(), "Succeeded", 0, at(2));
    end(&mut world, &pods[1].key(), "Failed", 1, at(3));
    world.settle(&Jobs, at(30));
    assert_eq!(status(&world)["completedIndexes"], "0,2");
    let again = running(&world);
    assert_eq!(again.len(), 1);
    assert!(again[0].name.starts_with("work-1-"), "{again:?}");
    end(&mut world, &again[0], "Succeeded", 0, at(31));
    world.settle(&Jobs, at(32));
    assert_eq!(status(&world)["completedIndexes"], "0-2");
    assert_eq!(condition(&world, "Complete").as_deref(), Some("CompletionsReached"));
}

#[test]
fn indexes_have_limits_of_their_own_where_asked_for() {
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimitPerIndex": 0,
        "backoffLimit": 2_147_483_647});
    let mut world = job(spec);
    world.settle(&Jobs, at(1));
    let pods = running(&world);
    end(&mut world, &pods[0], "Failed", 1, at(2));
    end(&mut world, &pods[1], "Succeeded", 0, at(2));
    world.settle(&Jobs, at(1000));
    assert_eq!(status(&world)["failedIndexes"], "0");
    assert_eq!(condition(&world, "Failed").as_deref(), Some("FailedIndexes"));
}

#[test]
fn a_failure_policy_decides_what_a_failure_means() {
    let rules = json!({"rules": [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]});
    let mut world = job(json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": rules}));
    world.settle(&Jobs, at(1));
    let pod = running(&world)[0].clone();
    world
        .patch(
            &POD,
            &pod,
            &json!({"status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}}),
        )
        .unwrap();
    end(&mut world, &pod, "Failed", 137, at(2));
    world.settle(&Jobs, at(3));
    assert_eq!(status(&world)["failed"], json!(null), "an ignored failure counts for nothing");
    let pod = running(&world)[0].clone();
    end(&mut world, &pod, "Failed", 42, at(4));
    world.settle(&Jobs, at(5));
    assert_eq!(condition(&world, "Failed").as_deref(), Some("PodFailurePolicy"));
}

#[test]
fn a_job_that_rests_has_no_pods_and_goes_on_when_told() {
    let mut world = job(json!({"completions": 2, "parallelism": 2, "backoffLimit": 6, "suspend": true}));
    world.settle(&Jobs, at(1));
    assert!(all(&world, &POD).is_empty());
    assert_eq!(condition(&world, "Suspended").as_deref(), Some("JobSuspended"));
    assert_eq!(status(&world)["startTime"], json!(null));
    world.patch(&JOB, &key("work"), &json!({"spec": {"suspend": false}})).unwrap();
    world.settle(&Jobs, at(2));
    assert_eq!(running(&world).len(), 2);
    assert_eq!(condition(&world, "Suspended"), None);
    assert!(status(&world)["startTime"].is_string());
}

#[test]
fn a_deadline_ends_a_job_and_its_pods() {
    let mut world =
        job(json!({"completions": 2, "parallelism": 2, "backoffLimit": 6, "activeDeadlineSeconds": 60}));
    world.settle(&Jobs, at(1));
    world.settle(&Jobs, at(60));
    assert_eq!(condition(&world, "FailureTarget"), None);
    world.settle(&Jobs, at(61));
    assert_eq!(condition(&world, "FailureTarget").as_deref(), Some("DeadlineExceeded"));
    assert!(running(&world).is_empty());
}

#[test]
fn a_job_that_ended_goes_after_its_time_and_its_pods_are_let_go() {
    let mut world = job(json!({"completions": 1, "backoffLimit": 6, "ttlSecondsAfterFinished": 100}));
    let end = succeed_all(&mut world, 1);
    world.settle(&Jobs, at(end + 90));
    assert_eq!(all(&world, &JOB).iter().filter(|job| !job.meta().is_deleting()).count(), 1);
    world.settle(&Jobs, at(end + 110));
    assert_eq!(all(&world, &JOB).iter().filter(|job| !job.meta().is_deleting()).count(), 0);
}

#[test]
fn pods_of_a_job_that_is_gone_are_let_go() {
    let mut world = job(json!({"completions": 1, "backoffLimit": 6}));
    world.settle(&Jobs, at(1));
    world.vanish(&JOB, &key("work")).unwrap();
    world.settle(&Jobs, at(2));
    assert!(all(&world, &POD).iter().all(|pod| pod.meta().finalizers.is_empty()));
}

#[test]
fn without_a_number_one_success_is_enough() {
    let mut world = job(json!({"parallelism": 3, "backoffLimit": 6}));
    world.settle(&Jobs, at(1));
    let pods = running(&world);
    assert_eq!(pods.len(), 3);
    end(&mut world, &pods[0], "Succeeded", 0, at(2));
    world.settle(&Jobs, at(3));
    assert_eq!(running(&world).len(), 2, "those that work may end");
    assert_eq!(condition(&world, "Complete"), None);
    end(&mut world, &pods[1], "Succeeded", 0, at(4));
    end(&mut world, &pods[2], "Succeeded", 0, at(4));
    world.settle(&Jobs, at(5));
    assert_eq!(status(&world)["succeeded"], 3);
    assert_eq!(condition(&world, "Complete").as_deref(), Some("CompletionsReached"));
}

#[test]
fn sets_of_indexes_are_written_as_runs() {
    for text in ["", "0", "0,1", "0-2", "0-2,5,7,8"] {
        assert_eq!(indexes::text(&indexes::parse(text)), text);
    }
    assert!(indexes::parse("a-b,x").is_empty());
}

#[test]
fn failures_of_an_index_are_not_forgotten_with_its_pods() {
    let spec = json!({"completions": 1, "parallelism": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 2,
        "backoffLimit": 2_147_483_647});
    let mut world = job(spec);
    for (round, second) in [(0, 1000), (1, 2000), (2, 3000)] {
        world.settle_in_part(&Jobs, at(second));
        let [pod] = &running(&world)[..] else { panic!("one pod in round {round}") };
        let made = value(&world, &POD, pod);
        assert_eq!(made["metadata"]["annotations"][super::observed::FAILURES], round.to_string());
        end(&mut world, pod, "Failed", 1, at(second + 1));
        // Before it is made up for, the pod is held although it is counted: nobody else knows of its failure.
        world.settle(&Jobs, at(second + 2));
        let held = value(&world, &POD, pod)["metadata"]["finalizers"] == json!([TRACKING]);
        assert_eq!(held, round < 2, "round {round}");
        // Once there is another one it may go for good, and its failure still counts.
        world.settle(&Jobs, at(second + 900));
        assert!(value(&world, &POD, pod)["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty));
        world.vanish(&POD, pod);
    }
    world.settle(&Jobs, at(9000));
    assert_eq!((&status(&world)["failedIndexes"], &status(&world)["failed"]), (&json!("0"), &json!(3)));
    assert_eq!(condition(&world, "Failed").as_deref(), Some("FailedIndexes"));
}

#[test]
fn pods_of_a_job_that_had_the_name_before_are_let_go_uncounted() {
    let mut world = job(json!({"completions": 1, "backoffLimit": 6}));
    world.settle(&Jobs, at(1));
    let old = running(&world)[0].clone();
    let spec = value(&world, &JOB, &key("work"))["spec"].take();
    world.vanish(&JOB, &key("work"));
    end(&mut world, &old, "Succeeded", 0, at(2));
    world.create(&JOB, json!({"metadata": {"name": "work", "namespace": "n"}, "spec": spec}), at(3)).unwrap();
    world.settle_in_part(&Jobs, at(3));
    assert!(View::get(&world, &POD.id, &old).unwrap().meta().finalizers.is_empty());
    let status = status(&world);
    assert_eq!((&status["succeeded"], &status["active"]), (&json!(null), &json!(1)));
}
