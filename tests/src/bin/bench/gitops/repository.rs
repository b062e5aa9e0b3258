//! One repository with a folder for each Application, on this machine, by the git program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::context::Outcome;

/// A repository, read as `file://`.
pub struct Repository {
    folder: PathBuf,
}

impl Repository {
    /// A repository with so many folders of five objects each.
    pub fn new(folder: PathBuf, apps: usize) -> Outcome<Self> {
        std::fs::create_dir_all(&folder)?;
        let repository = Self { folder };
        repository.git(&["init", "-q", "-b", "main"])?;
        for app in 0..apps {
            repository.write(app, "1")?;
        }
        repository.commit("the beginning")?;
        Ok(repository)
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("file://{}", self.folder.display())
    }

    /// The folder of an Application.
    pub fn path(app: usize) -> String {
        format!("apps/app-{app:04}")
    }

    /// Writes the objects of an Application.
    pub fn write(&self, app: usize, value: &str) -> Outcome<()> {
        let folder = self.folder.join(Self::path(app));
        std::fs::create_dir_all(&folder)?;
        let name = format!("app-{app:04}");
        let text = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: {value:?}}}\n\
             ---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{token: t-{app}}}\n\
             ---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}}}\n\
             ---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
             spec: {{selector: {{app: {name}}}, ports: [{{port: 80}}]}}\n\
             ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\n\
             spec:\n  replicas: 0\n  selector: {{matchLabels: {{app: {name}}}}}\n\
             \x20 template:\n    metadata: {{labels: {{app: {name}}}}}\n\
             \x20   spec: {{containers: [{{name: main, image: 'registry.example/bench:1'}}]}}\n"
        );
        std::fs::write(folder.join("all.yaml"), text)?;
        Ok(())
    }

    /// Commits what was written; answers the commit.
    pub fn commit(&self, message: &str) -> Outcome<String> {
        self.git(&["add", "-A"])?;
        self.git(&[
            "-c",
            "user.name=bench",
            "-c",
            "user.email=bench@example.org",
            "commit",
            "-q",
            "-m",
            message,
        ])?;
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, args: &[&str]) -> Outcome<String> {
        run(&self.folder, args)
    }
}

fn run(folder: &Path, args: &[&str]) -> Outcome<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
