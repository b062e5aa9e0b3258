//! The ssh transport: git's protocol through the `ssh` program, which asks nobody anything, within the limits of a
//! conversation. Knows nothing of packs or branches.

use std::io::{Read, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gix::protocol::transport::Protocol;
use gix_transport::client::blocking_io::Transport;
use gix_transport::client::git::ConnectMode;
use gix_transport::client::git::blocking_io::Connection;
use strata_plan::application::rendered::{Fault, RenderError};

use super::address::Shell;
use super::bounds::CONNECT_LIMIT;
use super::transport::{Line, Means};

/// Most bytes of what ssh complains that are kept.
const MAX_COMPLAINT: usize = 4096;

/// Starts ssh and hands its ends to git's protocol.
pub fn connect(shell: &Shell, means: &Means, line: &Line) -> Result<Box<dyn Transport>, RenderError> {
    let fail = |error: std::io::Error| {
        let message = match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("{} needs the program ssh, which is not installed", means.url)
            }
            _ => format!("{}: ssh cannot be started: {error}", means.url),
        };
        RenderError::new(Fault::Program, message)
    };
    let files = Files::new(means).map_err(fail)?;
    let mut child = command(shell, means, &files).spawn().map_err(fail)?;
    let (Some(input), Some(output), Some(complaints)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(fail(std::io::Error::other("its ends are missing")));
    };
    let complaint = Arc::new(Mutex::new(Vec::new()));
    let listener = {
        let complaint = Arc::clone(&complaint);
        std::thread::Builder::new().name("ssh-stderr".into()).spawn(move || listen(complaints, &complaint))
    };
    let listener = listener.map_err(fail)?;
    let guard = Guard::start(child, line, means).map_err(fail)?;
    let reader = Reader {
        output,
        line: line.clone(),
        url: means.url.clone(),
        complaint,
        listener: Some(listener),
        began: false,
        _guard: guard,
        _files: files,
    };
    let transport = Connection::<Reader, ChildStdin>::new(
        reader,
        input,
        Protocol::V2,
        shell.path.as_str(),
        None::<(&str, _)>,
        ConnectMode::Process,
        false,
    );
    Ok(Box::new(transport.custom_url(Some(means.plain_url().into()))))
}

fn command(shell: &Shell, means: &Means, files: &Files) -> Command {
    let mut command = Command::new("ssh");
    let mut option = |text: String| {
        command.arg("-o").arg(text);
    };
    option("BatchMode=yes".to_owned());
    option(format!("ConnectTimeout={}", CONNECT_LIMIT.as_secs()));
    option("ServerAliveInterval=10".to_owned());
    option("ServerAliveCountMax=3".to_owned());
    option("SendEnv=GIT_PROTOCOL".to_owned());
    option("ClearAllForwardings=yes".to_owned());
    option("ControlMaster=no".to_owned());
    option("ControlPath=none".to_owned());
    if means.credential.insecure {
        option("StrictHostKeyChecking=no".to_owned());
        option("UserKnownHostsFile=/dev/null".to_owned());
    } else {
        option("StrictHostKeyChecking=yes".to_owned());
        if let Some(path) = &files.known_hosts {
            option(format!("UserKnownHostsFile=\"{path}\""));
            option("GlobalKnownHostsFile=/dev/null".to_owned());
        }
    }
    if let Some(path) = &files.key {
        option("IdentitiesOnly=yes".to_owned());
        option("IdentityAgent=none".to_owned());
        option(format!("IdentityFile=\"{path}\""));
    }
    if let Some(port) = shell.port {
        command.arg("-p").arg(port.to_string());
    }
    if !shell.user.is_empty() {
        command.arg("-l").arg(&shell.user);
    }
    command.arg("--").arg(&shell.host).arg(format!("git-upload-pack {}", quoted(&shell.path)));
    command.env("GIT_PROTOCOL", "version=2").env("LC_ALL", "C");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// One word for the far shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The key and the known hosts, for as long as ssh may read them, readable for nobody else.
struct Files {
    key: Option<String>,
    known_hosts: Option<String>,
    _folder: Option<tempfile::TempDir>,
}

impl Files {
    fn new(means: &Means) -> std::io::Result<Self> {
        let key = &means.credential.ssh_private_key;
        let hosts = &means.known_hosts;
        if key.is_empty() && hosts.is_empty() {
            return Ok(Self { key: None, known_hosts: None, _folder: None });
        }
        let folder = tempfile::Builder::new().prefix("strata-ssh-").tempdir()?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700))?;
        let write = |name: &str, text: &str| -> std::io::Result<Option<String>> {
            if text.is_empty() {
                return Ok(None);
            }
            let path = folder.path().join(name);
            let mut file =
                std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(text.as_bytes())?;
            // ssh takes a key without a last newline for no key at all.
            if !text.ends_with('\n') {
                file.write_all(b"\n")?;
            }
            Ok(Some(path.display().to_string()))
        };
        let (key, known_hosts) = (write("key", key)?, write("known_hosts", hosts)?);
        Ok(Self { key, known_hosts, _folder: Some(folder) })
    }
}

fn listen(mut from: impl Read, into: &Mutex<Vec<u8>>) {
    let mut chunk = [0; 512];
    while let Ok(count) = from.read(&mut chunk) {
        if count == 0 {
            return;
        }
        let mut text = into.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_COMPLAINT.saturating_sub(text.len());
        text.extend_from_slice(&chunk[..count.min(room)]);
    }
}

/// Ends ssh when the conversation is over, or its time is.
struct Guard {
    over: Sender<()>,
    watcher: Option<std::thread::JoinHandle<()>>,
}

impl Guard {
    fn start(mut child: Child, line: &Line, means: &Means) -> std::io::Result<Self> {
        let (over, wait) = channel::<()>();
        let (line, url) = (line.clone(), means.url.clone());
        let watch = move || {
            let left = line.deadline().saturating_duration_since(Instant::now());
            if wait.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                line.fail(
                    Fault::Unreachable,
                    format!("{url} is too slow: not done within {:?}", line.limit()),
                );
            }
            if let Err(error) = child.kill() {
                tracing::debug!(%error, "ssh cannot be ended");
            }
            if let Err(error) = child.wait() {
                tracing::debug!(%error, "ssh cannot be waited for");
            }
        };
        let watcher = std::thread::Builder::new().name("ssh-watch".into()).spawn(watch)?;
        Ok(Self { over, watcher: Some(watcher) })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Nobody listens only where its time is over, and then it ends ssh all the same.
        if self.over.send(()).is_err() {
            tracing::debug!("ssh ended before its conversation did");
        }
        if let Some(Err(_)) = self.watcher.take().map(std::thread::JoinHandle::join) {
            tracing::warn!("the thread that watches ssh panicked");
        }
    }
}

struct Reader {
    output: ChildStdout,
    line: Line,
    url: String,
    complaint: Arc<Mutex<Vec<u8>>>,
    listener: Option<std::thread::JoinHandle<()>>,
    began: bool,
    _guard: Guard,
    _files: Files,
}

impl Read for Reader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.output.read(out)?;
        self.line.received(count)?;
        if count > 0 {
            self.began = true;
        } else if !self.began && !out.is_empty() {
            self.explain();
        }
        Ok(count)
    }
}

impl Reader {
    /// ssh ended before the far git said anything: its complaint tells why.
    fn explain(&mut self) {
        if self.line.fault().is_none() {
            // Its errors end where its output did.
            if let Some(Err(_)) = self.listener.take().map(std::thread::JoinHandle::join) {
                tracing::warn!("the thread that reads what ssh says panicked");
            }
        }
        let said = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        let (fault, message) = diagnose(&self.url, &String::from_utf8_lossy(&said));
        drop(said);
        self.line.fail(fault, message);
    }
}

/// ssh's and the far git's complaints in our words.
fn diagnose(url: &str, said: &str) -> (Fault, String) {
    let noise = |line: &&str| line.starts_with("Warning: Permanently added") || line.trim().is_empty();
    let said: Vec<&str> = said.lines().filter(|line| !noise(line)).collect();
    let said = said.join("; ");
    let has = |texts: &[&str]| texts.iter().any(|text| said.contains(text));
    if has(&["Host key verification failed", "REMOTE HOST IDENTIFICATION", "host key is known"]) {
        let changed = has(&["REMOTE HOST IDENTIFICATION"]);
        let why = if changed { "is another than the one that is known" } else { "is not known" };
        let message =
            format!("{url}: the key of the host {why}: put it into ConfigMap argocd-ssh-known-hosts-cm");
        return (Fault::Refused, message);
    }
    if has(&["Permission denied", "Load key", "invalid format", "Too many authentication failures"]) {
        return (Fault::Refused, format!("{url} refuses our key: {said}"));
    }
    if has(&["does not appear to be a git repository", "not found", "does not exist", "No such file"]) {
        return (Fault::Missing, format!("{url}: there is no such repository: {said}"));
    }
    if said.is_empty() {
        return (Fault::Unreachable, format!("{url}: the connection ended before anything was said"));
    }
    (Fault::Unreachable, format!("{url} cannot be reached: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_told_apart() {
        for (said, fault) in [
            ("Host key verification failed.\n", Fault::Refused),
            ("git@h: Permission denied (publickey).", Fault::Refused),
            ("Load key \"/tmp/k\": error in libcrypto", Fault::Refused),
            ("fatal: '/x' does not appear to be a git repository", Fault::Missing),
            ("ssh: connect to host h port 22: Connection refused", Fault::Unreachable),
            ("ssh: Could not resolve hostname h: Name or service not known", Fault::Unreachable),
            ("", Fault::Unreachable),
        ] {
            assert_eq!(diagnose("u", said).0, fault, "{said}");
        }
    }

    #[test]
    fn paths_are_one_word() {
        assert_eq!(quoted("a'; rm -rf /"), "'a'\\''; rm -rf /'");
    }
}
