//! Who may die without whom: the workload, its group, its supervisor, the agent.

use rustix::process::{Pid, Signal, kill_process_group};
use strata_plan::pod::observed::{ContainerState, ExitReason, StopCause};
use strata_stack::node::attempt::{AttemptDir, Facts, mark};
use strata_stack::node::runtime::Runtime;

use crate::harness::{Bench, LIMIT, Test, launch, processes, until};

pub const TESTS: &[Test] = &[
    ("a_killed_workload_is_recorded", || Box::pin(a_killed_workload_is_recorded())),
    ("a_killed_group_leaves_the_supervisor", || Box::pin(a_killed_group_leaves_the_supervisor())),
    ("a_killed_supervisor_takes_everything_with_it", || {
        Box::pin(a_killed_supervisor_takes_everything_with_it())
    }),
    ("a_supervisor_told_to_end_ends_politely", || Box::pin(a_supervisor_told_to_end_ends_politely())),
    ("another_agent_adopts_what_runs", || Box::pin(another_agent_adopts_what_runs())),
    ("an_end_without_an_agent_is_found_later", || Box::pin(an_end_without_an_agent_is_found_later())),
    ("a_supervisor_lost_without_an_agent_is_found_later", || {
        Box::pin(a_supervisor_lost_without_an_agent_is_found_later())
    }),
    ("an_attempt_that_never_came_up_is_written_off_once", || {
        Box::pin(an_attempt_that_never_came_up_is_written_off_once())
    }),
];

async fn a_killed_workload_is_recorded() {
    let bench = Bench::new();
    let key = bench.start(&["sleep", "600"]);
    bench.running(&key).await.signal(Signal::KILL).unwrap();
    let exit = bench.exit(&key).await;
    assert_eq!((exit.code, exit.signal, exit.reason), (137, Some(9), ExitReason::Error));
    bench.reaped(&key).await;
}

async fn a_killed_group_leaves_the_supervisor() {
    let bench = Bench::new();
    let key = bench.sh("sleep 600 & setsid sleep 600 & echo up; wait");
    let main = bench.running(&key).await;
    bench.logged(&key, "up").await;
    until(|| processes(&key).len() == 3).await;
    kill_process_group(Pid::from_raw(main.pid).unwrap(), Signal::KILL).unwrap();
    let exit = bench.exit(&key).await;
    assert_eq!((exit.code, exit.signal), (137, Some(9)));
    assert_eq!(processes(&key), []);
}

async fn a_killed_supervisor_takes_everything_with_it() {
    let bench = Bench::new();
    let key = bench.sh("sleep 600 & setsid sleep 600 & echo up; wait");
    bench.running(&key).await;
    bench.logged(&key, "up").await;
    until(|| processes(&key).len() == 3).await;
    bench.shim(&key).signal(Signal::KILL).unwrap();
    let exit = bench.exit(&key).await;
    assert_eq!((exit.code, exit.reason), (137, ExitReason::ContainerStatusUnknown));
    until(|| processes(&key).is_empty()).await;
    // The record of the end does not change any more.
    assert_eq!(bench.exit(&key).await, exit);
    bench.reaped(&key).await;
}

async fn a_supervisor_told_to_end_ends_politely() {
    let bench = Bench::new();
    let key = bench.sh("trap 'exit 5' TERM; echo up; while :; do sleep 0.05; done");
    bench.logged(&key, "up").await;
    bench.shim(&key).signal(Signal::HUP).unwrap();
    bench.shim(&key).signal(Signal::TERM).unwrap();
    let exit = bench.exit(&key).await;
    assert_eq!((exit.code, exit.interrupted), (5, true));
}

async fn another_agent_adopts_what_runs() {
    let mut bench = Bench::new();
    let key = bench.start(&["sleep", "600"]);
    let main = bench.running(&key).await;
    let state = bench.state(&key);
    bench.reopen();
    assert_eq!(bench.state(&key), state);
    assert_eq!(bench.running(&key).await, main);
    assert!(main.is_alive());
    // It is announced to the new one, and obeys it.
    bench.runtime.stop(&key, LIMIT, StopCause::Shutdown).unwrap();
    let exit = bench.exit(&key).await;
    assert_eq!((exit.signal, exit.interrupted), (Some(15), true));
}

async fn an_end_without_an_agent_is_found_later() {
    let mut bench = Bench::new();
    let key = bench.start(&["sleep", "600"]);
    let (main, shim) = (bench.running(&key).await, bench.shim(&key));
    bench.reopen();
    main.signal(Signal::KILL).unwrap();
    until(|| !shim.is_alive()).await;
    bench.reopen();
    assert_eq!(bench.exit(&key).await.signal, Some(9));
}

async fn a_supervisor_lost_without_an_agent_is_found_later() {
    let mut bench = Bench::new();
    let key = bench.sh("setsid sleep 600 & setsid env -i sleep 600 & sleep 600");
    bench.running(&key).await;
    let shim = bench.shim(&key);
    let dir = bench.dir(&key);
    let all = || strata_stack::node::procfs::marked(&mark(&key), dir.path()).len();
    until(|| all() == 4).await;
    bench.reopen();
    shim.signal(Signal::KILL).unwrap();
    until(|| !shim.is_alive()).await;
    bench.reopen();
    assert_eq!(bench.exit(&key).await.reason, ExitReason::ContainerStatusUnknown);
    until(|| all() == 0).await;
}

async fn an_attempt_that_never_came_up_is_written_off_once() {
    let bench = Bench::new();
    let key = launch(&[]).key;
    let dir: AttemptDir = bench.dir(&key);
    let facts = Facts {
        namespace: "default".into(),
        pod_name: "web-0".into(),
        grace_seconds: 1,
        backoff_seconds: 0,
        created_at: jiff::Timestamp::now(),
    };
    dir.create(&facts).unwrap();
    let Some(ContainerState::Exited(exit)) = bench.state(&key) else { panic!("not written off") };
    assert_eq!(exit.reason, ExitReason::ContainerStatusUnknown);
    // The shim that comes too late finds that out and starts nothing.
    let order =
        br#"{"command":["sleep","600"],"env":[["STRATA_LATE","1"]],"working_dir":null,"grace_seconds":1,
        "log_file_bytes":1000,"log_files":1}"#;
    let mut late = std::process::Command::new("/proc/self/exe")
        .args(["shim", "run"])
        .arg(dir.path())
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut late.stdin.take().unwrap(), order).unwrap();
    assert!(late.wait().unwrap().success());
    assert_eq!(bench.state(&key), Some(ContainerState::Exited(exit)));
    assert!(strata_stack::node::procfs::marked("STRATA_LATE=1", dir.path()).is_empty());
}
