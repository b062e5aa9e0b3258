//! Repositories to read from, made by git.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use strata_plan::application::rendered::{RenderError, Rendered};
use strata_plan::application::spec::Source;
use strata_stack::application::source::access::Access;
use strata_stack::application::source::cache::Newness;
use strata_stack::application::source::program::Programs;
use strata_stack::application::source::render::{Sources, Task};

/// A repository with a working tree.
pub struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    pub fn new() -> Self {
        let repository = Self { folder: tempfile::tempdir().unwrap() };
        repository.git(&["init", "--quiet", "--initial-branch=main", "."]);
        repository
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    /// Runs git and answers what it prints.
    pub fn git(&self, args: &[&str]) -> String {
        git(self.path(), args)
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn link(&self, path: &str, target: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Commits everything and answers the commit.
    pub fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A reader with a cache of its own.
pub struct Reader {
    pub sources: Arc<Sources>,
    pub access: Access,
    pub cache: PathBuf,
    _folder: tempfile::TempDir,
}

impl Reader {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("repositories");
        let programs = Programs::new(tools());
        let sources = Arc::new(Sources::new(cache.clone(), programs).unwrap());
        Self { sources, access: Access::default(), cache, _folder: folder }
    }

    /// Renders one source, asking the repository anew.
    pub async fn one(&self, source: Source) -> Result<Rendered, RenderError> {
        self.all(vec![source]).await.map(|mut all| all.remove(0))
    }

    pub async fn all(&self, sources: Vec<Source>) -> Result<Vec<Rendered>, RenderError> {
        let task = Task { name: "app".into(), namespace: "there".into(), sources, anew: false };
        self.sources.render(&task, &self.access, Newness { again: true, ..Newness::now() }).await
    }

    pub async fn fault(&self, source: Source) -> RenderError {
        self.one(source).await.unwrap_err()
    }
}

pub fn source(url: impl Into<String>, path: &str) -> Source {
    Source { repo_url: url.into(), path: path.into(), ..Source::default() }
}

pub fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

pub fn names(rendered: &Rendered) -> Vec<&str> {
    rendered.manifests.iter().map(|m| m.object["metadata"]["name"].as_str().unwrap()).collect()
}

/// Where helm and kubectl are: where the variables of the suites say, and on the `PATH`.
pub fn tools() -> Vec<PathBuf> {
    let said = ["STRATA_TEST_HELM", "STRATA_TEST_KUBECTL"].into_iter().filter_map(std::env::var_os);
    let said = said.flat_map(|paths| std::env::split_paths(&paths).collect::<Vec<_>>());
    let folders = said.filter_map(|path| Some(path.parent()?.to_owned()));
    folders.chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())).collect()
}

/// Whether a program that a test needs is there. In continuous integration it must be.
pub fn has(program: &str) -> bool {
    let found = tools().iter().any(|folder| folder.join(program).is_file());
    assert!(found || std::env::var_os("CI").is_none(), "{program} is missing");
    if !found {
        eprintln!("{program} is missing: nothing is looked at");
    }
    found
}
