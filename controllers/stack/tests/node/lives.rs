//! Ordinary lives of containers: start, output, end, stop, exec, logs.

use std::time::Duration;

use strata_plan::pod::observed::{ContainerState, ExitReason, StopCause};
use strata_stack::node::runtime::Runtime;
use strata_stack::node::runtime::logs::{LogOptions, LogStream};
use strata_stack::node::shim::log::Limits;

use crate::harness::{Bench, LIMIT, Test, launch, processes, until, zombies};

pub const TESTS: &[Test] = &[
    ("output_and_exit_code_are_recorded", || Box::pin(output_and_exit_code_are_recorded())),
    ("a_command_that_cannot_start_says_why", || Box::pin(a_command_that_cannot_start_says_why())),
    ("starting_twice_is_starting_once", || Box::pin(starting_twice_is_starting_once())),
    ("a_polite_process_ends_itself", || Box::pin(a_polite_process_ends_itself())),
    ("a_deaf_process_and_all_it_started_are_killed", || {
        Box::pin(a_deaf_process_and_all_it_started_are_killed())
    }),
    ("what_the_main_process_leaves_behind_ends", || Box::pin(what_the_main_process_leaves_behind_ends())),
    ("a_command_runs_beside_the_container", || Box::pin(a_command_runs_beside_the_container())),
    ("logs_are_followed_to_the_end", || Box::pin(logs_are_followed_to_the_end())),
    ("logs_are_bounded", || Box::pin(logs_are_bounded())),
    ("only_an_ended_attempt_is_removed", || Box::pin(only_an_ended_attempt_is_removed())),
    ("secrets_do_not_reach_the_disk", || Box::pin(secrets_do_not_reach_the_disk())),
];

async fn output_and_exit_code_are_recorded() {
    let bench = Bench::new();
    let key = bench.sh("echo $GREETING $HOSTNAME; echo bad >&2; pwd; exit 3");
    let exit = bench.exit(&key).await;
    assert_eq!((exit.code, exit.signal, exit.reason), (3, None, ExitReason::Error));
    assert!(exit.started_at.unwrap() <= exit.finished_at);
    let mut log = bench.log(&key);
    log.sort();
    let work = bench.dir(&key).work();
    assert_eq!(
        log,
        ["stderr F bad".to_owned(), format!("stdout F {}", work.display()), "stdout F hello web-0".into()]
    );
    assert_eq!(bench.exit(&bench.start(&["true"])).await.reason, ExitReason::Completed);
    bench.reaped(&key).await;
}

async fn a_command_that_cannot_start_says_why() {
    let bench = Bench::new();
    let exit = bench.exit(&bench.start(&["no-such-program-here"])).await;
    assert_eq!((exit.code, exit.reason), (128, ExitReason::StartError));
    assert_eq!(exit.message, "exec: \"no-such-program-here\": executable file not found in $PATH");
    let mut lost = launch(&["true"]);
    lost.working_dir = Some("/no/such/place".into());
    bench.runtime.start(&lost).unwrap();
    assert_eq!(bench.exit(&lost.key).await.message, "workingDir /no/such/place: no such file or directory");
    bench.reaped(&lost.key).await;
}

async fn starting_twice_is_starting_once() {
    let bench = Bench::new();
    let launch = launch(&["sleep", "600"]);
    bench.runtime.start(&launch).unwrap();
    let first = bench.running(&launch.key).await;
    bench.runtime.start(&launch).unwrap();
    assert_eq!(bench.running(&launch.key).await, first);
    assert_eq!(processes(&launch.key), [first]);
}

async fn a_polite_process_ends_itself() {
    let bench = Bench::new();
    let key = bench.sh("trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.05; done");
    bench.logged(&key, "up").await;
    bench.runtime.stop(&key, Duration::from_secs(600), StopCause::Pod).unwrap();
    let exit = bench.exit(&key).await;
    assert_eq!((exit.code, exit.signal), (7, None));
    let mut log = bench.log(&key);
    log.retain(|line| line.starts_with("stdout"));
    assert_eq!(log, ["stdout F up", "stdout F bye"]);
}

async fn a_deaf_process_and_all_it_started_are_killed() {
    let bench = Bench::new();
    let key = bench.sh("trap '' TERM; setsid sleep 600 & sleep 600 & echo up; while :; do sleep 600; done");
    bench.logged(&key, "up").await;
    until(|| processes(&key).len() >= 4).await;
    bench.runtime.stop(&key, Duration::from_secs(600), StopCause::Pod).unwrap();
    assert!(matches!(bench.state(&key), Some(ContainerState::Running { .. })));
    // A second order brings the end nearer.
    bench.runtime.stop(&key, Duration::from_millis(10), StopCause::Pod).unwrap();
    assert_eq!(bench.exit(&key).await.code, 137);
    assert_eq!(processes(&key), []);
}

async fn what_the_main_process_leaves_behind_ends() {
    let bench = Bench::new();
    let key = bench.sh("(setsid sleep 600 &) ; sleep 600 & exit 0");
    assert_eq!(bench.exit(&key).await.code, 0);
    assert_eq!(processes(&key), []);
}

async fn a_command_runs_beside_the_container() {
    let bench = Bench::new();
    let key = bench.start(&["sleep", "600"]);
    bench.running(&key).await;
    let exec = async |script: &str, limit| {
        let command = ["sh", "-c", script].map(str::to_owned);
        bench.runtime.exec(&key, &command, limit).await.unwrap()
    };
    let done = exec("echo $GREETING; pwd; exit 4", LIMIT).await;
    assert_eq!(done.code, Some(4));
    assert_eq!(done.output, format!("hello\n{}\n", bench.dir(&key).work().display()));
    let before = zombies();
    let late = exec("sleep 600 & sleep 600", Duration::from_millis(50)).await;
    assert_eq!(late.code, None);
    until(|| processes(&key).len() == 1 && zombies() <= before).await;
}

async fn logs_are_followed_to_the_end() {
    let bench = Bench::new();
    let key = bench.sh("mkfifo gate; echo one; read line < gate; echo two; printf three");
    let gate = bench.dir(&key).work().join("gate");
    bench.logged(&key, "one").await;
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let mut log = LogStream::open(bench.runtime.log(&key), options).await.unwrap();
    assert_eq!(log.next().await.unwrap().unwrap(), "one\n");
    std::fs::write(gate, "go\n").unwrap();
    assert_eq!(bench.exit(&key).await.code, 0);
    let mut rest = String::new();
    while let Some(piece) = log.next().await {
        rest.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    assert_eq!(rest, "two\nthree\n");
    let options = LogOptions { tail_lines: Some(2), limit_bytes: Some(6), ..LogOptions::default() };
    let mut log = LogStream::open(bench.runtime.log(&key), options).await.unwrap();
    assert_eq!(log.next().await.unwrap().unwrap(), "two\nth");
    assert!(log.next().await.is_none());
}

async fn logs_are_bounded() {
    let bench = Bench::with_log(Limits { file_bytes: 100_000, files: 3 });
    let key = bench.sh("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done");
    assert_eq!(bench.exit(&key).await.code, 0);
    let files = std::fs::read_dir(bench.dir(&key).path()).unwrap().flatten();
    let logs: Vec<_> = files.filter(|file| file.file_name().to_string_lossy().starts_with("log")).collect();
    assert_eq!(logs.len(), 3);
    assert!(bench.log(&key).last().unwrap().ends_with("line 19999"));
    // A chunk may pass the limit, but only one.
    assert!(logs.iter().all(|file| file.metadata().unwrap().len() < 100_000 + 1_000_000));
}

async fn only_an_ended_attempt_is_removed() {
    let bench = Bench::new();
    let key = bench.start(&["sleep", "600"]);
    bench.running(&key).await;
    assert!(bench.runtime.remove(&key).is_err());
    bench.runtime.stop(&key, LIMIT, StopCause::Pod).unwrap();
    assert_eq!(bench.exit(&key).await.signal, Some(15));
    bench.runtime.remove(&key).unwrap();
    assert_eq!(bench.state(&key), None);
    bench.runtime.remove(&key).unwrap();
    bench.runtime.remove_pod(key.pod()).unwrap();
    assert!(bench.runtime.pods().unwrap().is_empty());
}

async fn secrets_do_not_reach_the_disk() {
    let bench = Bench::new();
    let mut launch = launch(&["sleep", "600"]);
    launch.env.push(("TOKEN".into(), "s3cr3t-value".into()));
    bench.runtime.start(&launch).unwrap();
    bench.running(&launch.key).await;
    for file in std::fs::read_dir(bench.dir(&launch.key).path()).unwrap().flatten() {
        if file.file_type().unwrap().is_file() {
            let text = std::fs::read(file.path()).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains("s3cr3t-value"), "{:?}", file.path());
        }
    }
}
