//! Programs that render: found once, run with nothing of our environment, and ended when they take too much time, memory
//! or room. Knows not what they render.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process_group, prlimit};
use strata_plan::application::rendered::{Fault, RenderError};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::runtime::Handle;

use super::bounds::{PROGRAM_COMPLAINT, PROGRAM_LIMIT, PROGRAM_MEMORY, PROGRAM_OUTPUT};
use super::tree::broken;

/// Where programs are looked for.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    folders: Vec<PathBuf>,
}

/// A program and the arguments that make it do one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// Arguments before all others.
    pub first: Vec<String>,
}

impl Programs {
    /// Those of this process's `PATH`.
    pub fn from_path() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self { folders: std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect() }
    }

    /// Those of some folders.
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        self.folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// `kustomize build`, else `kubectl kustomize`.
    pub fn kustomize(&self) -> Result<Program, RenderError> {
        let own = self.find("kustomize").map(|path| Program { path, first: vec!["build".to_owned()] });
        let other = || self.find("kubectl").map(|path| Program { path, first: vec!["kustomize".to_owned()] });
        own.or_else(other).ok_or_else(|| {
            missing("the source is a kustomization, and neither kustomize nor kubectl is installed")
        })
    }

    /// `helm`.
    pub fn helm(&self) -> Result<Program, RenderError> {
        let found = self.find("helm").map(|path| Program { path, first: Vec::new() });
        found.ok_or_else(|| missing("the source is a Helm chart, and helm is not installed"))
    }
}

fn missing(what: &str) -> RenderError {
    RenderError::new(Fault::Program, format!("{what} on the machine of the controller"))
}

/// Runs a program in a folder and answers what it printed. `home` is all that it may call its own.
pub fn run(
    program: &Program,
    args: &[String],
    folder: &Path,
    home: &Path,
    runtime: &Handle,
) -> Result<Vec<u8>, RenderError> {
    runtime.block_on(run_within(program, args, folder, home, PROGRAM_LIMIT))
}

async fn run_within(
    program: &Program,
    args: &[String],
    folder: &Path,
    home: &Path,
    limit: Duration,
) -> Result<Vec<u8>, RenderError> {
    let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let fail = |why: String| RenderError::new(Fault::Program, format!("{name} {why}"));
    let mut command = Command::new(&program.path);
    // No PATH: it shall start nothing else, such as git to fetch what no commit says.
    command.args(&program.first).args(args).current_dir(folder).env_clear().env("PATH", home.join("bin"));
    command.env("HOME", home).env("TMPDIR", home).env("LC_ALL", "C").env("GOMEMLIMIT", "1GiB");
    for (variable, below) in [
        ("HELM_CACHE_HOME", "cache"),
        ("HELM_CONFIG_HOME", "config"),
        ("HELM_DATA_HOME", "data"),
        ("HELM_PLUGINS", "plugins"),
        ("KUBECONFIG", "kubeconfig"),
    ] {
        command.env(variable, home.join(below));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true).process_group(0);
    let mut child = command.spawn().map_err(|error| fail(format!("cannot be started: {error}")))?;
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let group = Group(group);
    group.limit().map_err(|error| fail(format!("cannot be limited: {error}")))?;
    let (Some(output), Some(complaint)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(fail("has no output".to_owned()));
    };
    let work = async {
        let (output, complaint) =
            tokio::join!(bounded(output, PROGRAM_OUTPUT), drained(complaint, PROGRAM_COMPLAINT));
        let status = match output {
            Ok(Some(_)) => child.wait().await?,
            // It is not going to stop by itself.
            Ok(None) | Err(_) => ExitStatus::default(),
        };
        output.map(|output| (output, complaint, status))
    };
    let answer = tokio::time::timeout(limit, work).await;
    drop(group);
    match answer {
        Err(_) => Err(fail(format!("did not finish within {limit:?} and was ended"))),
        Ok(Err(error)) => Err(fail(format!("cannot be read from: {error}"))),
        Ok(Ok((None, ..))) => Err(broken(format!("{name} prints more than {PROGRAM_OUTPUT} bytes"))),
        Ok(Ok((Some(output), _, status))) if status.success() => Ok(output),
        Ok(Ok((Some(_), complaint, status))) => Err(complained(&name, &complaint, status)),
    }
}

/// A program that complains has met something in the repository that it cannot take; one that dies without a word ran out
/// of what it was given.
fn complained(name: &str, complaint: &[u8], status: ExitStatus) -> RenderError {
    let text = String::from_utf8_lossy(complaint);
    if text.contains("out of memory") || text.contains("cannot allocate memory") {
        return RenderError::new(
            Fault::Program,
            format!("{name} needs more than {PROGRAM_MEMORY} bytes of memory"),
        );
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() {
        return RenderError::new(Fault::Program, format!("{name} ended without a word: {status}"));
    }
    broken(format!("{name}: {}", lines.join("; ")))
}

/// Reads to the end; none where there is more than allowed.
async fn bounded(from: impl AsyncRead + Unpin, most: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut bytes).await?;
    Ok((bytes.len() <= most).then_some(bytes))
}

/// Reads to the end and keeps the beginning.
async fn drained(mut from: impl AsyncRead + Unpin, keep: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        let room = keep.saturating_sub(kept.len());
        kept.extend_from_slice(&chunk[..count.min(room)]);
    }
    kept
}

/// A program with all that it started: ended together.
struct Group(Option<Pid>);

impl Group {
    fn limit(&self) -> std::io::Result<()> {
        let most = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
        prlimit(self.0, Resource::As, most(PROGRAM_MEMORY))?;
        prlimit(self.0, Resource::Cpu, most(PROGRAM_LIMIT.as_secs()))?;
        prlimit(self.0, Resource::Core, most(0))?;
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(pid) = self.0 else { return };
        match kill_process_group(pid, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(%error, "a program that renders cannot be ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<Vec<u8>, RenderError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let home = tempfile::tempdir().unwrap();
        let program = Program { path: "/bin/sh".into(), first: vec!["-c".into()] };
        runtime.block_on(run_within(&program, &[script.to_owned()], home.path(), home.path(), limit))
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn programs_see_nothing_of_ours_and_are_bounded() {
        let seen = shell("echo $HOME:$USER:$STRATA_CONFIG:$PATH", LONG).unwrap();
        let seen = String::from_utf8(seen).unwrap();
        assert!(seen.contains(":::") && seen.contains("/bin"), "{seen}");
        let error = shell("echo one thing >&2; exit 3", LONG).unwrap_err();
        assert_eq!((error.fault, error.message.as_str()), (Fault::Broken, "sh: one thing"));
        let error = shell("exit 3", LONG).unwrap_err();
        assert!(error.fault == Fault::Program && error.message.contains('3'), "{error}");
        let error = shell("while :; do :; done", Duration::from_millis(200)).unwrap_err();
        assert!(error.fault == Fault::Program && error.message.contains("did not finish"), "{error}");
        let error = shell(
            "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
            LONG,
        )
        .unwrap_err();
        assert!(error.fault == Fault::Broken && error.message.contains("prints more"), "{error}");
    }

    #[test]
    fn programs_that_are_not_there_are_said() {
        let none = Programs::new(Vec::new());
        for error in [none.helm().unwrap_err(), none.kustomize().unwrap_err()] {
            assert!(error.fault == Fault::Program && error.message.contains("installed"), "{error}");
        }
    }
}
