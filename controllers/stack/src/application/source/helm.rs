//! Charts: which files one needs, how the source's settings are said to helm, and which file an object is from.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use strata_plan::application::rendered::{Fault, Manifest, RenderError};
use strata_plan::application::spec::Helm;

use super::bounds::MAX_FILE;
use super::export::{Export, failed};
use super::job::Job;
use super::manifests;
use super::program::{self, Program};
use super::reads::Reads;
use super::tree::{Kind, join};

/// The file that makes a folder a chart.
pub const FILE: &str = "Chart.yaml";
/// Longest name of a release, as helm has it.
const MAX_RELEASE: usize = 53;

/// Renders the chart in a folder.
pub fn render(job: &Job<'_>, settings: &Helm, reads: &mut Reads) -> Result<Vec<Manifest>, RenderError> {
    let program = job.programs.helm()?;
    let scratch = tempfile::Builder::new().prefix("strata-helm-").tempdir().map_err(|e| failed(&e))?;
    let desk = Desk::new(scratch.path())?;
    let mut export = Export::new(job.snapshot, job.number, Some(job.place), desk.root(job.number))?;
    export.add(&job.place.path, reads)?;
    let local = local_dependencies(job)?;
    for dependency in &local {
        export.add(&join(&job.place.path, dependency), reads)?;
    }
    let args = desk.arguments(job, settings, &mut export, reads)?;
    let chart = export.on_disk(&job.place.path);
    if !local.is_empty() {
        let build = ["dependency", "build", "--skip-refresh", "."].map(str::to_owned);
        desk.run(&program, &build, &chart, job)?;
    }
    let printed = desk.run(&program, &args, &chart, job)?;
    objects(&job.place.path, &printed, settings.skip_tests)
}

/// Folders and files of one run.
struct Desk {
    scratch: PathBuf,
    home: PathBuf,
}

impl Desk {
    fn new(scratch: &Path) -> Result<Self, RenderError> {
        let home = scratch.join("home");
        fs::create_dir_all(&home).map_err(|error| failed(&error))?;
        Ok(Self { scratch: scratch.to_owned(), home })
    }

    fn root(&self, number: usize) -> PathBuf {
        self.scratch.join(format!("source-{number}"))
    }

    fn run(
        &self,
        program: &Program,
        args: &[String],
        folder: &Path,
        job: &Job<'_>,
    ) -> Result<Vec<u8>, RenderError> {
        let own = format!("{}/", self.root(job.number).display());
        program::run(program, args, folder, &self.home, job.runtime)
            .map_err(|error| RenderError::new(error.fault, error.message.replace(&own, "")))
    }

    fn arguments(
        &self,
        job: &Job<'_>,
        settings: &Helm,
        export: &mut Export<'_>,
        reads: &mut Reads,
    ) -> Result<Vec<String>, RenderError> {
        let release = if settings.release_name.is_empty() { job.name } else { &settings.release_name };
        if release.len() > MAX_RELEASE {
            return Err(wrong(format!("helm.releaseName {release}: may have {MAX_RELEASE} characters")));
        }
        let namespace = if settings.namespace.is_empty() { job.namespace } else { &settings.namespace };
        let mut args: Vec<String> = ["template", ".", "--name-template", release].map(str::to_owned).to_vec();
        let mut add = |flag: &str, value: String| args.extend([format!("{flag}={value}")]);
        if !namespace.is_empty() {
            add("--namespace", namespace.to_owned());
        }
        if !settings.kube_version.is_empty() {
            add("--kube-version", settings.kube_version.clone());
        }
        for version in &settings.api_versions {
            add("--api-versions", version.clone());
        }
        for file in &settings.value_files {
            match self.file(job, export, reads, file)? {
                Some(path) => add("--values", path.display().to_string()),
                None if settings.ignore_missing_value_files => {}
                None => {
                    let message = format!("helm.valueFiles: there is no file {file} in this commit");
                    return Err(RenderError::new(Fault::Missing, message));
                }
            }
        }
        let own = match &settings.values_object {
            Some(values) if !values.is_null() => Some(values.to_string()),
            _ if !settings.values.is_empty() => Some(settings.values.clone()),
            _ => None,
        };
        if let Some(values) = own {
            let path = self.scratch.join("values.yaml");
            fs::write(&path, values).map_err(|error| failed(&error))?;
            add("--values", path.display().to_string());
        }
        for parameter in &settings.parameters {
            let flag = if parameter.force_string { "--set-string" } else { "--set" };
            add(flag, format!("{}={}", parameter.name, escaped(&parameter.value)));
        }
        for parameter in &settings.file_parameters {
            let Some(path) = self.file(job, export, reads, &parameter.path)? else {
                let message = format!("helm.fileParameters: there is no file {}", parameter.path);
                return Err(RenderError::new(Fault::Missing, message));
            };
            add("--set-file", format!("{}={}", parameter.name, path.display()));
        }
        if !settings.skip_crds {
            args.push("--include-crds".to_owned());
        }
        if settings.skip_schema_validation {
            args.push("--skip-schema-validation".to_owned());
        }
        Ok(args)
    }

    /// A file with values: relative to the chart, to the root of the repository behind `/`, to that of another source
    /// behind `$name/`.
    fn file(
        &self,
        job: &Job<'_>,
        export: &mut Export<'_>,
        reads: &mut Reads,
        path: &str,
    ) -> Result<Option<PathBuf>, RenderError> {
        if path.contains("://") {
            return Err(wrong(format!("{path} is elsewhere: values must be in the commit of a source")));
        }
        let Some(rest) = path.strip_prefix('$') else {
            let path = match path.strip_prefix('/') {
                Some(path) => path.to_owned(),
                None => join(&job.place.path, path),
            };
            let place = export.add(&path, reads)?;
            return Ok(place.filter(|p| p.node.kind != Kind::Folder).map(|p| export.on_disk(&p.path)));
        };
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        let Some((number, snapshot)) = job.references.get(name) else {
            return Err(wrong(format!("${rest}: no source has ref: {name}")));
        };
        let mut other =
            Export::new(snapshot, *number, None, self.scratch.join(format!("reference-{number}")))?;
        let place = other.add(path, reads)?;
        Ok(place.filter(|p| p.node.kind != Kind::Folder).map(|p| other.on_disk(&p.path)))
    }
}

fn wrong(message: String) -> RenderError {
    RenderError::new(Fault::Settings, message)
}

/// A value of `--set`: commas separate values there, unless they are within braces.
fn escaped(value: &str) -> String {
    if value.starts_with('{') && value.ends_with('}') { value.to_owned() } else { value.replace(',', "\\,") }
}

/// Folders of charts that this one needs and that are in the repository beside it.
fn local_dependencies(job: &Job<'_>) -> Result<Vec<String>, RenderError> {
    let path = join(&job.place.path, FILE);
    let Some(place) = job.snapshot.at(&path)? else { return Ok(Vec::new()) };
    let bytes = job.snapshot.read(place.node.id, &path, MAX_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    let options = serde_saphyr::options! { with_snippet: false };
    // What is wrong with it is helm's to say.
    let chart: Value = serde_saphyr::from_str_with_options(&text, options).unwrap_or_default();
    let dependencies = chart["dependencies"].as_array().cloned().unwrap_or_default();
    let local = dependencies.iter().filter_map(|one| one["repository"].as_str()?.strip_prefix("file://"));
    Ok(local.map(str::to_owned).collect())
}

/// The objects that helm printed; each document says which template it is from.
fn objects(folder: &str, printed: &[u8], skip_tests: bool) -> Result<Vec<Manifest>, RenderError> {
    let text = String::from_utf8_lossy(printed);
    let mut parts: Vec<(String, String)> = vec![(join(folder, FILE), String::new())];
    for line in text.lines() {
        if line == "---" {
            let file = parts.last().map(|(file, _)| file.clone()).unwrap_or_default();
            parts.push((file, String::new()));
        }
        let Some((file, part)) = parts.last_mut() else { continue };
        let template = line.strip_prefix("# Source: ").and_then(|source| source.split_once('/'));
        if let Some((_, template)) = template.filter(|_| part.trim().is_empty() || part.trim() == "---") {
            *file = join(folder, template);
        }
        part.push_str(line);
        part.push('\n');
    }
    let mut out = Vec::new();
    for (file, part) in parts {
        manifests::add(&file, part.as_bytes(), &mut out)?;
    }
    let is_test = |manifest: &Manifest| {
        let hook = manifest.object["metadata"]["annotations"]["helm.sh/hook"].as_str().unwrap_or_default();
        hook.split(',').any(|one| matches!(one.trim(), "test" | "test-success" | "test-failure"))
    };
    out.retain(|manifest| !(skip_tests && is_test(manifest)));
    for manifest in &mut out {
        manifest.line = 0;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_know_their_templates() {
        let printed = "---\n# Source: c/templates/a.yaml\napiVersion: v1\nkind: A\nmetadata: {name: a}\n---\n# Source: c/charts/d/templates/b.yaml\napiVersion: v1\nkind: B\nmetadata:\n  name: b\n  annotations: {helm.sh/hook: test}\n";
        let all = objects("app", printed.as_bytes(), false).unwrap();
        let files: Vec<&str> = all.iter().map(|m| &*m.file).collect();
        assert_eq!(files, ["app/templates/a.yaml", "app/charts/d/templates/b.yaml"]);
        assert_eq!(objects("app", printed.as_bytes(), true).unwrap().len(), 1);
    }

    #[test]
    fn commas_in_values_are_kept() {
        assert_eq!(escaped("a,b"), "a\\,b");
        assert_eq!(escaped("{a,b}"), "{a,b}");
    }
}
