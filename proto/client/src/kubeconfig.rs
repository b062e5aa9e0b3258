//! Kubeconfig files: reading, merging, choosing a context. Every error names the file and what to do.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::config::{ClientConfig, Identity, Token};

/// Longest kubeconfig that is read, bytes.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// A kubeconfig that does not lead to a server.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is not YAML of the right shape.
    #[error("{} is no kubeconfig: {message}", path.display())]
    Parse {
        /// Which.
        path: PathBuf,
        /// With line and column.
        message: String,
    },
    /// None of the files exists.
    #[error("no kubeconfig: {} not found; start a server with `strata up`, or name a file with --kubeconfig", paths(.0))]
    Missing(Vec<PathBuf>),
    /// No context is chosen.
    #[error("{}: no current-context; choose one with --context ({known})", file.display())]
    NoContext {
        /// First file.
        file: PathBuf,
        /// The known ones.
        known: String,
    },
    /// A name leads nowhere.
    #[error("{}: there is no {what} \"{name}\" (known: {known})", file.display())]
    Unknown {
        /// Where it is named.
        file: PathBuf,
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// The name.
        name: String,
        /// The known ones.
        known: String,
    },
    /// A field's value is of no use.
    #[error("{}: {field}: {message}", file.display())]
    Field {
        /// Where.
        file: PathBuf,
        /// Path of the field.
        field: String,
        /// What is wrong and what would be right.
        message: String,
    },
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct File {
    current_context: Option<String>,
    clusters: Option<Vec<NamedCluster>>,
    users: Option<Vec<NamedUser>>,
    contexts: Option<Vec<NamedContext>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    insecure_skip_tls_verify: Option<bool>,
    tls_server_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NamedUser {
    name: String,
    user: Option<User>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
    username: Option<String>,
    exec: Option<serde_json::Value>,
    auth_provider: Option<serde_json::Value>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("User(…)")
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
    namespace: Option<String>,
}

/// An entry and the file it is from: relative paths are relative to that.
#[derive(Clone, Debug)]
struct From<T> {
    file: PathBuf,
    value: T,
}

/// One or several kubeconfig files, merged: of equal names the first wins.
#[derive(Clone, Debug, Default)]
pub struct Kubeconfig {
    current: Option<From<String>>,
    clusters: Vec<From<NamedCluster>>,
    users: Vec<From<NamedUser>>,
    contexts: Vec<From<NamedContext>>,
    first: PathBuf,
}

impl Kubeconfig {
    /// The files of a `KUBECONFIG` variable: separated by colons, empty parts left out.
    pub fn paths_of(variable: &str) -> Vec<PathBuf> {
        std::env::split_paths(variable).filter(|p| !p.as_os_str().is_empty()).collect()
    }

    /// Reads and merges files. Those that do not exist are left out, but one must.
    pub fn load(paths: &[PathBuf]) -> Result<Self, ConfigError> {
        let mut merged = Self::default();
        let mut found = false;
        for path in paths {
            let text = match read(path) {
                Ok(text) => text,
                Err(source) if source.kind() == std::io::ErrorKind::NotFound => continue,
                Err(source) => return Err(ConfigError::Read { path: path.clone(), source }),
            };
            merged.add(path, &String::from_utf8_lossy(&text))?;
            found = true;
        }
        if found { Ok(merged) } else { Err(ConfigError::Missing(paths.to_vec())) }
    }

    /// Merges the text of one more file.
    pub fn add(&mut self, path: &Path, text: &str) -> Result<(), ConfigError> {
        let file: File = match text.trim().is_empty() {
            true => File::default(),
            // Without the snippet of several lines: the message has line and column.
            false => {
                serde_saphyr::from_str_with_options(text, serde_saphyr::options! { with_snippet: false })
                    .map_err(|e| ConfigError::Parse { path: path.to_owned(), message: e.to_string() })?
            }
        };
        let from = |value| From { file: path.to_owned(), value };
        if self.first.as_os_str().is_empty() {
            path.clone_into(&mut self.first);
        }
        if self.current.is_none() {
            self.current = file
                .current_context
                .filter(|c| !c.is_empty())
                .map(|value| From { file: path.to_owned(), value });
        }
        for cluster in file.clusters.into_iter().flatten() {
            if self.clusters.iter().all(|c| c.value.name != cluster.name) {
                self.clusters.push(From { file: path.to_owned(), value: cluster });
            }
        }
        for user in file.users.into_iter().flatten() {
            if self.users.iter().all(|u| u.value.name != user.name) {
                self.users.push(From { file: path.to_owned(), value: user });
            }
        }
        for context in file.contexts.into_iter().flatten() {
            if self.contexts.iter().all(|c| c.value.name != context.name) {
                self.contexts.push(from(context));
            }
        }
        Ok(())
    }

    /// Names of all contexts, in order.
    pub fn contexts(&self) -> Vec<&str> {
        self.contexts.iter().map(|c| c.value.name.as_str()).collect()
    }

    /// The current context, if one is set.
    pub fn current_context(&self) -> Option<&str> {
        self.current.as_ref().map(|c| c.value.as_str())
    }

    /// What a context says; `None` is the current one. Reads the certificate and token files that it names.
    pub fn client_config(&self, context: Option<&str>) -> Result<ClientConfig, ConfigError> {
        let known = || self.contexts().join(", ");
        let (file, name) = match (context, &self.current) {
            (Some(name), _) => (&self.first, name),
            (None, Some(current)) => (&current.file, current.value.as_str()),
            (None, None) => return Err(ConfigError::NoContext { file: self.first.clone(), known: known() }),
        };
        let missing = |file: &Path, what, name: &str, known| ConfigError::Unknown {
            file: file.to_owned(),
            what,
            name: name.to_owned(),
            known,
        };
        let context = self.contexts.iter().find(|c| c.value.name == name);
        let context = context.ok_or_else(|| missing(file, "context", name, known()))?;
        let chosen = &context.value.context;
        let cluster = self.clusters.iter().find(|c| c.value.name == chosen.cluster);
        let cluster = cluster.ok_or_else(|| {
            let known = self.clusters.iter().map(|c| c.value.name.as_str()).collect::<Vec<_>>().join(", ");
            missing(&context.file, "cluster", &chosen.cluster, known)
        })?;
        let mut config = cluster_config(cluster)?;
        if !chosen.user.is_empty() {
            let user = self.users.iter().find(|u| u.value.name == chosen.user);
            let user = user.ok_or_else(|| {
                let known = self.users.iter().map(|u| u.value.name.as_str()).collect::<Vec<_>>().join(", ");
                missing(&context.file, "user", &chosen.user, known)
            })?;
            add_user(&mut config, user)?;
        }
        if let Some(namespace) = chosen.namespace.as_deref().filter(|n| !n.is_empty()) {
            namespace.clone_into(&mut config.namespace);
        }
        Ok(config)
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        let text = format!("longer than {MAX_FILE} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

fn field_error<T>(from: &From<T>, field: String, message: impl Into<String>) -> ConfigError {
    ConfigError::Field { file: from.file.clone(), field, message: message.into() }
}

fn cluster_config(from: &From<NamedCluster>) -> Result<ClientConfig, ConfigError> {
    let (name, cluster) = (&from.value.name, &from.value.cluster);
    let field = |f: &str| format!("clusters[{name}].cluster.{f}");
    let bad = |message: String| field_error(from, field("server"), message);
    if cluster.server.is_empty() {
        return Err(bad("missing; expected https://HOST:PORT".to_owned()));
    }
    let server: http::Uri =
        cluster.server.parse().map_err(|e| bad(format!("\"{}\" is no URL ({e})", cluster.server)))?;
    let scheme = server.scheme_str().unwrap_or_default();
    if server.host().is_none() || !matches!(scheme, "https" | "http") {
        return Err(bad(format!("\"{}\" is no URL of a server; expected https://HOST:PORT", cluster.server)));
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        let message =
            "is not supported; name the authority in certificate-authority or certificate-authority-data";
        return Err(field_error(from, field("insecure-skip-tls-verify"), message));
    }
    let mut config = ClientConfig::new(server);
    config.ca_pem = pem(
        from,
        &field("certificate-authority"),
        cluster.certificate_authority.as_deref(),
        cluster.certificate_authority_data.as_deref(),
    )?;
    config.tls_server_name = cluster.tls_server_name.clone().filter(|n| !n.is_empty());
    Ok(config)
}

fn add_user(config: &mut ClientConfig, from: &From<NamedUser>) -> Result<(), ConfigError> {
    let name = &from.value.name;
    let user = from.value.user.clone().unwrap_or_default();
    let field = |f: &str| format!("users[{name}].user.{f}");
    for (what, used) in [
        ("exec", user.exec.is_some()),
        ("auth-provider", user.auth_provider.is_some()),
        ("username", user.username.as_deref().is_some_and(|u| !u.is_empty())),
    ] {
        if used {
            let message = "is not supported; use a client certificate or a token";
            return Err(field_error(from, field(what), message));
        }
    }
    let certificate = pem(
        from,
        &field("client-certificate"),
        user.client_certificate.as_deref(),
        user.client_certificate_data.as_deref(),
    )?;
    let key = pem(from, &field("client-key"), user.client_key.as_deref(), user.client_key_data.as_deref())?;
    config.identity = match (certificate, key) {
        (Some(certificate_pem), Some(key_pem)) => Some(Identity { certificate_pem, key_pem }),
        (None, None) => None,
        (Some(_), None) => {
            return Err(field_error(from, field("client-key"), "missing beside client-certificate"));
        }
        (None, Some(_)) => {
            return Err(field_error(from, field("client-certificate"), "missing beside client-key"));
        }
    };
    let inline = user.token.filter(|t| !t.is_empty());
    let token = match (inline, user.token_file.filter(|f| !f.is_empty())) {
        (Some(token), _) => Some(token),
        (None, Some(path)) => {
            let path = beside(&from.file, &path);
            let text = read(&path).map_err(|e| {
                field_error(from, field("tokenFile"), format!("cannot read {}: {e}", path.display()))
            })?;
            Some(String::from_utf8_lossy(&text).trim().to_owned())
        }
        (None, None) => None,
    };
    config.token = token.map(Token);
    Ok(())
}

/// A path in a kubeconfig is relative to the file.
fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent().unwrap_or_else(|| Path::new("")).join(path)
}

/// PEM from inline data (base64, which comes first) or a file.
fn pem<T>(
    from: &From<T>,
    field: &str,
    path: Option<&str>,
    data: Option<&str>,
) -> Result<Option<Vec<u8>>, ConfigError> {
    if let Some(data) = data.filter(|d| !d.is_empty()) {
        let compact: String = data.split_whitespace().collect();
        let bytes = STANDARD
            .decode(compact)
            .map_err(|e| field_error(from, format!("{field}-data"), format!("is not base64 ({e})")))?;
        return is_pem(from, &format!("{field}-data"), bytes).map(Some);
    }
    let Some(path) = path.filter(|p| !p.is_empty()) else { return Ok(None) };
    let path = beside(&from.file, path);
    let bytes = read(&path)
        .map_err(|e| field_error(from, field.to_owned(), format!("cannot read {}: {e}", path.display())))?;
    is_pem(from, field, bytes).map(Some)
}

fn is_pem<T>(from: &From<T>, field: &str, bytes: Vec<u8>) -> Result<Vec<u8>, ConfigError> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    match bytes.windows(BEGIN.len()).any(|w| w == BEGIN) {
        true => Ok(bytes),
        false => Err(field_error(from, field.to_owned(), "is not PEM (-----BEGIN …)")),
    }
}

#[cfg(test)]
mod tests;
