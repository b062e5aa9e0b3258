//! `strata up` as a process: what it prints, whom it lets in, what it restarts, and that nothing outlives it. Looks at
//! processes from outside; knows nothing of what the roles do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The most that anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A `strata up` of this test.
struct Up {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Up {
    /// Starts it on a free port, and waits for the line that says it is ready.
    fn start(dir: &Path) -> (Up, String) {
        Up::start_with(dir, &[])
    }

    fn start_with(dir: &Path, flags: &[&str]) -> (Up, String) {
        let mut child = command(dir, &[&["--listen", ":0"], flags].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (send, lines) = mpsc::sync_channel(1024);
        for stream in [
            Box::new(child.stdout.take().expect("piped")) as Box<dyn Read + Send>,
            Box::new(child.stderr.take().expect("piped")),
        ] {
            let send = send.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    if send.try_send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let mut up = Up { child, lines };
        let ready = up.line("ready in");
        (up, ready)
    }

    /// The next line that holds `word`.
    fn line(&mut self, word: &str) -> String {
        let end = Instant::now() + LIMIT;
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) if line.contains(word) => return line,
                Ok(line) => seen.push(line),
                Err(error) => panic!("no line with `{word}` ({error}); there were {seen:#?}"),
            }
        }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// Waits for its end.
    fn end(&mut self) -> ExitStatus {
        let mut ended = None;
        until("`strata up` to end", || {
            ended = self.child.try_wait().expect("its own child");
            ended.is_some()
        });
        ended.expect("it ended")
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(self.pid(), Signal::TERM);
            self.end();
        }
    }
}

fn command(dir: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strata"));
    command.args(["up", "--data-dir"]).arg(dir).args(flags).stdin(Stdio::null());
    command.env("STRATA_RUNTIME", "simulated").env_remove("RUST_LOG");
    command
}

/// Runs it where it is expected to end by itself.
fn refused(dir: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command(dir, flags).output().expect("it starts");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process id"), signal).expect("it is ours");
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Its children: process id and command line.
fn children(up: &Up) -> Vec<(i32, String)> {
    let pid = up.pid();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    let line = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.map(|pid| (pid, line(pid).replace('\0', " "))).filter(|(pid, _)| is_alive(*pid)).collect()
}

/// The words by which each role's process is known.
const ROLES: [&str; 9] = [
    "strata apiserver ",
    "strata controller deployment ",
    "strata controller replicaset ",
    "strata controller scheduler ",
    "strata controller garbage ",
    "strata controller namespace ",
    "strata controller nodelifecycle,",
    "strata controller application ",
    "strata node ",
];

#[test]
fn one_line_when_ready_one_process_a_role_and_nothing_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (mut up, ready) = Up::start(dir.path());
    let kubeconfig = dir.path().join("kubeconfig");
    assert!(ready.contains("https://127.0.0.1:") && !ready.contains(":0 "), "{ready}");
    assert!(ready.contains(kubeconfig.to_str().unwrap()) && ready.contains("get pods"), "{ready}");
    assert_eq!(std::fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
    let children = children(&up);
    for role in ROLES {
        let count = children.iter().filter(|(_, line)| line.starts_with(role)).count();
        assert_eq!(count, 1, "{role}: {children:#?}");
    }
    assert_eq!(children.len(), ROLES.len(), "{children:#?}");

    signal(up.pid(), Signal::TERM);
    assert_eq!(up.end().code(), Some(0));
    for (pid, line) in children {
        assert!(!is_alive(pid), "{line} is left behind");
    }
}

#[test]
fn the_second_on_a_directory_is_told_who_the_first_is() {
    let dir = tempfile::tempdir().unwrap();
    let (up, _) = Up::start(dir.path());
    let (code, text) = refused(dir.path(), &["--listen", ":0"]);
    assert_eq!(code, Some(75), "{text}");
    assert!(text.contains(&format!("process {}", up.pid())) && text.contains("--data-dir"), "{text}");
}

#[test]
fn children_follow_a_killed_supervisor_and_the_next_one_starts() {
    let dir = tempfile::tempdir().unwrap();
    let (mut up, _) = Up::start(dir.path());
    let children = children(&up);
    assert_eq!(children.len(), ROLES.len(), "{children:#?}");
    signal(up.pid(), Signal::KILL);
    up.end();
    let (mut next, _) = Up::start(dir.path());
    for (pid, line) in children {
        until(&format!("the end of {line}"), || !is_alive(pid));
    }
    signal(next.pid(), Signal::INT);
    assert_eq!(next.end().code(), Some(0));
}

#[test]
fn each_killed_child_is_started_again_and_the_reason_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (mut up, ready) = Up::start(dir.path());
    for role in ROLES {
        let find = |up: &Up| children(up).into_iter().find(|(_, line)| line.starts_with(role));
        let (old, _) = find(&up).expect(role);
        // Several controllers in one process are told under the process's name.
        let shared = role.ends_with(',');
        let name = if shared { "controllers" } else { role.trim_end().rsplit(' ').next().unwrap() };
        signal(old, Signal::KILL);
        let told = up.line(&format!("{name} was ended by signal 9 (SIGKILL)"));
        assert!(told.contains("again"), "{told}");
        up.line(&format!("{name} is ready again"));
        let (new, line) = find(&up).expect(role);
        assert_ne!(new, old);
        if role.contains("apiserver") {
            let address = line.split(' ').find(|word| word.starts_with("127.0.0.1:")).unwrap();
            assert!(ready.contains(address), "it serves where it did: {line}");
        }
    }
    signal(up.pid(), Signal::TERM);
    assert_eq!(up.end().code(), Some(0));
}

#[test]
fn the_example_comes_up_serves_and_goes_with_the_platform() {
    let dir = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hello.yaml");
    let (mut up, _) = Up::start_with(dir.path(), &["--runtime", "process", "-f", example]);
    up.line("deployment.apps/hello created");
    up.line("Deployment/hello: 3 pods, 3 available");
    up.line("all is as declared");
    let logs = Command::new(env!("CARGO_BIN_EXE_strata"))
        .args(["logs", "-l", "app=hello", "--kubeconfig"])
        .arg(dir.path().join("kubeconfig"))
        .output()
        .unwrap();
    let logs = String::from_utf8_lossy(&logs.stdout).into_owned();
    let addresses: Vec<&str> =
        logs.lines().filter_map(|line| line.split("http://").nth(1)?.strip_suffix('/')).collect();
    assert_eq!(addresses.len(), 3, "{logs}");
    for address in &addresses {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /there HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("hello from hello-") && answer.contains("at /there"), "{answer}");
    }
    signal(up.pid(), Signal::TERM);
    assert_eq!(up.end().code(), Some(0));
    for address in addresses {
        assert!(TcpStream::connect(address).is_err(), "{address} is still served");
    }

    // Applied again on the same directory, everything is there already.
    let (mut up, _) =
        Up::start_with(dir.path(), &["--runtime", "process", "--log-format", "json", "-f", example]);
    up.line("deployment.apps/hello unchanged");
    up.line("all is as declared");
    signal(up.pid(), Signal::TERM);
    let line = up.line("stopping");
    assert!(line.starts_with('{') && line.contains("\"role\":\"up\""), "{line}");
    assert_eq!(up.end().code(), Some(0));
}

#[test]
fn a_manifest_with_a_fault_is_told_and_the_platform_stays() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = dir.path().join("bad.yaml");
    std::fs::write(&manifest, "apiVersion: v1\nkind: Nonsense\nmetadata: {name: x}\n").unwrap();
    let (mut up, _) = Up::start_with(dir.path(), &["-f", manifest.to_str().unwrap()]);
    up.line("Nonsense");
    up.line("stays up");
    assert_eq!(children(&up).len(), ROLES.len());
    signal(up.pid(), Signal::TERM);
    assert_eq!(up.end().code(), Some(0));
}

#[test]
fn what_cannot_work_is_said_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, text) = refused(dir.path(), &["--listen", &address]);
    assert_eq!(code, Some(78), "{text}");
    assert!(text.contains(&address) && text.contains("taken") && text.contains("--listen"), "{text}");

    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (code, text) = refused(&file.join("data"), &["--listen", ":0"]);
    assert_eq!(code, Some(78), "{text}");
    assert!(text.contains("--data-dir"), "{text}");

    let data = dir.path().join("not-begun");
    let broken = dir.path().join("broken.yaml");
    std::fs::write(&broken, "kind: Pod\n  metadata: {}\n").unwrap();
    for (manifest, part) in [(dir.path().join("no-such.yaml"), "no such file"), (broken, "broken.yaml:2")] {
        let (code, text) = refused(&data, &["--listen", ":0", "-f", manifest.to_str().unwrap()]);
        assert_eq!(code, Some(78), "{text}");
        assert!(text.contains(part) && !data.exists(), "{text}");
    }

    let tokens = dir.path().join("no-such-tokens");
    let flags = ["--listen", ":0", "--token-auth-file", tokens.to_str().unwrap()];
    let (code, text) = refused(dir.path(), &flags);
    assert_eq!(code, Some(78), "{text}");
    assert!(text.contains("apiserver cannot start") && text.contains("no-such-tokens"), "{text}");
}
