//! The board answers what it should, and refuses the rest.

use std::time::Duration;

use http_body_util::BodyExt as _;
use strata_client::event::Event;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::builtin;
use strata_plan::controller::{Key, MapTo, Watched};

use super::*;
use crate::core::Core;
use crate::queue::{End, Priority};
use crate::reason::{Reason, Why};

async fn ask(board: &Board, method: Method, path: &str, rights: Rights) -> (u16, String) {
    let response = board.answer(&method, &path.parse().unwrap(), rights);
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn get(board: &Board, path: &str) -> (u16, String) {
    ask(board, Method::GET, path, Rights::Look).await
}

fn enter(board: &Board, name: &'static str) -> Arc<Shared> {
    let shared = Arc::new(Shared::new(Core::new(vec![Watched::all(&builtin::POD, MapTo::Itself)])));
    let (leading, leads) = watch::channel(true);
    drop(leading);
    board.enter(name, Entry { shared: Arc::clone(&shared), metrics: Arc::new(Metrics::new(name)), leads });
    shared
}

fn fill(shared: &Shared) {
    let now = shared.now();
    let mut core = shared.core();
    core.apply(&builtin::POD.id, Event::Restarted, now);
    core.apply(&builtin::POD.id, Event::InitialEnd(1), now);
}

#[tokio::test]
async fn shows_what_it_waits_for_and_what_it_has_to_do() {
    let board = Board::default();
    let shared = enter(&board, "test");
    assert_eq!(get(&board, "/livez").await, (200, "ok".to_owned()));
    assert_eq!(get(&board, "/readyz").await, (503, "waiting for pods\n".to_owned()));
    fill(&shared);
    let key = Key::new(&builtin::POD, ObjectKey::new("n", "p"));
    let reason = Reason::plain(Why::Other("person"));
    shared.core().queue.add(key, Priority::Live, reason, shared.now());
    assert_eq!(get(&board, "/readyz").await.0, 200);
    let queues: Value = serde_json::from_str(&get(&board, "/debug/queue").await.1).unwrap();
    let queue = &queues["controllers"][0];
    assert_eq!((&queue["name"], &queue["depth"], &queue["leads"]), (&json!("test"), &json!(1), &json!(true)));
    assert_eq!(queue["keys"][0]["key"], "pods/n/p");
    assert_eq!(queue["keys"][0]["reasons"], "person");
    let metrics = get(&board, "/metrics").await.1;
    assert!(metrics.contains("workqueue_depth{name=\"test\"} 1"), "{metrics}");
    assert!(metrics.contains("strata_cache_objects{controller=\"test\",resource=\"pods\"} 0"), "{metrics}");
    assert_eq!(ask(&board, Method::POST, "/livez", Rights::Act).await.0, 405);
    assert_eq!(get(&board, "/").await.0, 404);
}

#[tokio::test]
async fn one_port_shows_all_controllers_of_a_process() {
    let board = Board::default();
    let (one, _other) = (enter(&board, "one"), enter(&board, "other"));
    fill(&one);
    assert_eq!(get(&board, "/readyz").await.0, 503, "the other waits still");
    let queues: Value = serde_json::from_str(&get(&board, "/debug/queue").await.1).unwrap();
    assert_eq!(queues["controllers"].as_array().unwrap().len(), 2);
    let queues: Value = serde_json::from_str(&get(&board, "/debug/queue?controller=other").await.1).unwrap();
    assert_eq!(queues["controllers"][0]["name"], "other");
    let (code, says) = get(&board, "/debug/queue?controller=third").await;
    assert_eq!((code, says.as_str()), (404, "no controller \"third\" runs here; there are: one, other\n"));
    let metrics = get(&board, "/metrics").await.1;
    assert_eq!(metrics.matches("# TYPE workqueue_depth ").count(), 1, "{metrics}");
    assert!(
        metrics.contains("workqueue_depth{name=\"one\"} 0\nworkqueue_depth{name=\"other\"} 0\n"),
        "{metrics}"
    );
    assert!(metrics.ends_with("# EOF\n") && metrics.matches("# EOF").count() == 1, "{metrics}");
}

#[tokio::test]
async fn a_key_that_failed_for_good_runs_again_when_somebody_with_rights_says_so() {
    let board = Board::default();
    let shared = enter(&board, "test");
    fill(&shared);
    let key = Key::new(&builtin::POD, ObjectKey::new("n", "p"));
    let now = shared.now();
    {
        let mut core = shared.core();
        core.queue.add(key.clone(), Priority::Live, Reason::plain(Why::Other("person")), now);
        let job = core.queue.pop(now).unwrap();
        core.queue.done(job, End::Terminal("bad".to_owned()), Vec::new(), now, 0.5);
        assert!(core.queue.pop(now + Duration::from_secs(1)).is_none());
    }
    let path = "/debug/retry?controller=test&key=pods/n/p";
    assert_eq!(ask(&board, Method::POST, path, Rights::Look).await.0, 403);
    assert!(shared.core().queue.pop(shared.now()).is_none());
    assert_eq!(ask(&board, Method::POST, path, Rights::Act).await, (200, "ok".to_owned()));
    let job = shared.core().queue.pop(shared.now()).unwrap();
    assert_eq!(job.key, key);
    assert!(job.reasons.to_string().contains("asked for by hand"), "{}", job.reasons);
    for wrong in ["", "?controller=test", "?key=pods/n/p"] {
        assert_eq!(
            ask(&board, Method::POST, &format!("/debug/retry{wrong}"), Rights::Act).await.0,
            400,
            "{wrong}"
        );
    }
    for missing in ["controller=test&key=nodes/n", "controller=test&key=pods/", "controller=no&key=pods/n/p"]
    {
        assert_eq!(
            ask(&board, Method::POST, &format!("/debug/retry?{missing}"), Rights::Act).await.0,
            404,
            "{missing}"
        );
    }
}

#[tokio::test]
async fn all_keys_are_looked_at_when_somebody_with_rights_says_so() {
    let board = Board::default();
    let shared = enter(&board, "test");
    let now = shared.now();
    let pods = ["a", "b"].map(|name| {
        let value =
            json!({"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"}});
        Event::Initial(Arc::new(Object::from_value(&value).unwrap()))
    });
    for event in [Event::Restarted].into_iter().chain(pods).chain([Event::InitialEnd(1)]) {
        shared.core().apply(&builtin::POD.id, event, now);
    }
    let run = || {
        let mut core = shared.core();
        let job = core.queue.pop(shared.now())?;
        let (key, reasons) = (job.key.to_string(), job.reasons.to_string());
        core.queue.done(job, End::Settled(None), Vec::new(), shared.now(), 0.5);
        Some((key, reasons))
    };
    while run().is_some() {}
    assert_eq!(ask(&board, Method::POST, "/debug/resync?controller=test", Rights::Look).await.0, 403);
    assert_eq!(ask(&board, Method::POST, "/debug/resync", Rights::Act).await.0, 400);
    assert_eq!(ask(&board, Method::POST, "/debug/resync?controller=no", Rights::Act).await.0, 404);
    assert_eq!(run(), None);
    let said = ask(&board, Method::POST, "/debug/resync?controller=test", Rights::Act).await;
    assert_eq!(said, (200, "2".to_owned()));
    let mut looked: Vec<_> = std::iter::from_fn(run).collect();
    looked.sort();
    let expected = |key: &str| (format!("pods/n/{key}"), "resync".to_owned());
    assert_eq!(looked, [expected("a"), expected("b")]);
}
