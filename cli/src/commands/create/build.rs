//! Objects from flags. The shapes are those that `kubectl create` makes.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::commands::error::{CliResult, usage};
use crate::commands::printing::WriteArgs;

/// A name and nothing else.
#[derive(Debug, Args)]
pub struct NameArgs {
    /// Its name
    pub name: String,
    #[command(flatten)]
    pub write: WriteArgs,
}

/// Arguments of `create deployment`.
#[derive(Debug, Args)]
pub struct DeploymentArgs {
    /// Its name
    pub name: String,

    /// The image of its containers, one a flag; `host` is this machine's own file system
    #[arg(long, value_name = "IMAGE", required = true)]
    pub image: Vec<String>,

    /// How many pods
    #[arg(short = 'r', long, value_name = "N", default_value_t = 1)]
    pub replicas: u32,

    /// The port the container listens on
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,

    /// The command to run in place of the image's own, behind --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,

    #[command(flatten)]
    pub write: WriteArgs,
}

/// Keys and values of a ConfigMap or a Secret.
#[derive(Debug, Default, Args)]
pub struct DataArgs {
    /// KEY=VALUE
    #[arg(long, value_name = "KEY=VALUE")]
    pub from_literal: Vec<String>,

    /// [KEY=]FILE, or a directory: the file's content under its name, or under the key
    #[arg(long, value_name = "[KEY=]FILE|DIR")]
    pub from_file: Vec<String>,

    /// A file with KEY=VALUE lines
    #[arg(long, value_name = "FILE")]
    pub from_env_file: Vec<String>,
}

/// Arguments of `create configmap`.
#[derive(Debug, Args)]
pub struct ConfigMapArgs {
    /// Its name
    pub name: String,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub write: WriteArgs,
}

/// Arguments of `create secret generic`.
#[derive(Debug, Args)]
pub struct SecretArgs {
    /// Its name
    pub name: String,
    /// The type of the secret
    #[arg(long = "type", value_name = "TYPE")]
    pub type_: Option<String>,
    #[command(flatten)]
    pub data: DataArgs,
    #[command(flatten)]
    pub write: WriteArgs,
}

/// A Deployment.
pub fn deployment(args: &DeploymentArgs) -> CliResult<Value> {
    if args.image.len() > 1 && !args.command.is_empty() {
        return Err(usage("cannot specify multiple --image options and command"));
    }
    let name = &args.name;
    let mut containers: Vec<Value> = Vec::new();
    for image in &args.image {
        let mut container = json!({"name": container_name(image), "image": image});
        if !args.command.is_empty() {
            container["command"] = json!(args.command);
        }
        containers.push(container);
    }
    if let (Some(port), Some(first)) = (args.port, containers.first_mut()) {
        first["ports"] = json!([{ "containerPort": port }]);
    }
    Ok(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": args.replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
        },
    }))
}

/// A container's name from its image: the last part of the path, without tag, as a DNS label.
fn container_name(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    let bare = last.split(['@', ':']).next().unwrap_or(last).to_lowercase();
    let clean = bare.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' });
    let name: String = clean.take(63).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "main".to_owned() } else { name.to_owned() }
}

/// A Namespace.
pub fn namespace(args: &NameArgs) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": args.name}})
}

/// A ServiceAccount.
pub fn service_account(args: &NameArgs) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": args.name}})
}

/// A ConfigMap; what is not text goes to `binaryData`.
pub fn config_map(args: &ConfigMapArgs) -> CliResult<Value> {
    let (mut data, mut binary) = (Map::new(), Map::new());
    for (key, bytes) in entries(&args.data)? {
        match String::from_utf8(bytes) {
            Ok(text) => data.insert(key, Value::String(text)),
            Err(error) => binary.insert(key, Value::String(STANDARD.encode(error.as_bytes()))),
        };
    }
    let mut value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": args.name}});
    if !data.is_empty() {
        value["data"] = Value::Object(data);
    }
    if !binary.is_empty() {
        value["binaryData"] = Value::Object(binary);
    }
    Ok(value)
}

/// A Secret.
pub fn secret(args: &SecretArgs) -> CliResult<Value> {
    let data: Map<String, Value> = entries(&args.data)?
        .into_iter()
        .map(|(key, bytes)| (key, Value::String(STANDARD.encode(bytes))))
        .collect();
    let mut value = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": args.name}});
    if !data.is_empty() {
        value["data"] = Value::Object(data);
    }
    if let Some(type_) = &args.type_ {
        value["type"] = json!(type_);
    }
    Ok(value)
}

fn entries(args: &DataArgs) -> CliResult<Vec<(String, Vec<u8>)>> {
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    for literal in &args.from_literal {
        let (key, value) = literal
            .split_once('=')
            .ok_or_else(|| usage(format!("invalid --from-literal {literal:?}: expected KEY=VALUE")))?;
        all.push((key.to_owned(), value.as_bytes().to_vec()));
    }
    for named in &args.from_file {
        let (key, path) = match named.split_once('=') {
            Some((key, path)) => (Some(key.to_owned()), path),
            None => (None, named.as_str()),
        };
        read_files(key, Path::new(path), &mut all)?;
    }
    for path in &args.from_env_file {
        let text = fs::read_to_string(path).map_err(|e| usage(format!("cannot read {path}: {e}")))?;
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| usage(format!("{path}:{}: expected KEY=VALUE", at + 1)))?;
            all.push((key.to_owned(), value.as_bytes().to_vec()));
        }
    }
    let mut keys: Vec<&String> = all.iter().map(|(key, _)| key).collect();
    keys.sort();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(usage(format!("cannot add key {}, another key by that name already exists", pair[0])))
        }
        None => Ok(all),
    }
}

fn read_files(key: Option<String>, path: &Path, out: &mut Vec<(String, Vec<u8>)>) -> CliResult {
    let fail = |e: std::io::Error| usage(format!("cannot read {}: {e}", path.display()));
    let base = |path: &Path| path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if !path.is_dir() {
        out.push((key.unwrap_or_else(|| base(path)), fs::read(path).map_err(fail)?));
        return Ok(());
    }
    if key.is_some() {
        return Err(usage("cannot give a key name for a directory path"));
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_type().map_err(fail)?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    for file in files {
        out.push((base(&file), fs::read(&file).map_err(fail)?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_names_come_from_images() {
        for (image, name) in [
            ("nginx", "nginx"),
            ("nginx:1.27", "nginx"),
            ("ghcr.io/o/My_App:v1", "my-app"),
            ("reg:5000/a@sha256:00", "a"),
            ("___", "main"),
        ] {
            assert_eq!(container_name(image), name);
        }
    }

    #[test]
    fn entries_come_from_literals_and_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("app.conf");
        fs::write(&file, "x").unwrap();
        fs::write(dir.path().join("env"), "# c\nA=1\n\nB=2=3\n").unwrap();
        let args = DataArgs {
            from_literal: vec!["k=v=w".into()],
            from_file: vec![file.display().to_string(), format!("other={}", file.display())],
            from_env_file: vec![dir.path().join("env").display().to_string()],
        };
        let keys: Vec<(String, String)> =
            entries(&args).unwrap().into_iter().map(|(k, v)| (k, String::from_utf8(v).unwrap())).collect();
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(
            keys,
            [pair("k", "v=w"), pair("app.conf", "x"), pair("other", "x"), pair("A", "1"), pair("B", "2=3")]
        );
        let twice = DataArgs { from_literal: vec!["a=1".into(), "a=2".into()], ..Default::default() };
        assert!(entries(&twice).unwrap_err().to_string().contains("already exists"));
        let bad = DataArgs { from_literal: vec!["a".into()], ..Default::default() };
        assert!(entries(&bad).unwrap_err().to_string().contains("KEY=VALUE"));
    }
}
