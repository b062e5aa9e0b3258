//! From a container's spec to what is started: its command, its variables, and the reasons for which it can
//! not be started here. It must never fetch anything: ConfigMaps and Secrets come as values.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, EnvVarSource, Pod};

use super::observed::{ContainerKey, Launch, NodeFacts, address};

/// Where the API server puts a pod's own token; not mounted by runtimes without volumes, and not missed.
const TOKEN_MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// An object of the pod's namespace that its variables come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceRef {
    /// A ConfigMap, by name.
    ConfigMap(String),
    /// A Secret, by name.
    Secret(String),
}

impl SourceRef {
    fn kind(&self) -> &'static str {
        match self {
            Self::ConfigMap(_) => "configmap",
            Self::Secret(_) => "secret",
        }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        match self {
            Self::ConfigMap(name) | Self::Secret(name) => name,
        }
    }
}

/// What was fetched of them: the texts by key, or `None` for one that does not exist.
pub type Sources = BTreeMap<SourceRef, Option<BTreeMap<String, String>>>;

/// Why a container waits, as its status says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Held {
    fn config(message: impl Into<String>) -> Self {
        Self { reason: "CreateContainerConfigError", message: message.into() }
    }
}

/// The objects that a container's variables come from.
pub fn sources_of(container: &Container) -> BTreeSet<SourceRef> {
    let mut found = BTreeSet::new();
    for from in container.env_from.iter().flatten() {
        found.extend(from.config_map_ref.as_ref().map(|source| SourceRef::ConfigMap(source.name.clone())));
        found.extend(from.secret_ref.as_ref().map(|source| SourceRef::Secret(source.name.clone())));
    }
    for from in container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref()) {
        found
            .extend(from.config_map_key_ref.as_ref().map(|source| SourceRef::ConfigMap(source.name.clone())));
        found.extend(from.secret_key_ref.as_ref().map(|source| SourceRef::Secret(source.name.clone())));
    }
    found
}

/// Everything that is needed to start an attempt, or why it has to wait.
pub fn launch(
    pod: &Pod,
    container: &Container,
    key: ContainerKey,
    node: &NodeFacts,
    sources: &Sources,
) -> Result<Launch, Held> {
    check(pod, container, node)?;
    let env = variables(pod, container, node, sources)?;
    let known: BTreeMap<&str, &str> =
        env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let parts = container.command.iter().flatten().chain(container.args.iter().flatten());
    let command: Vec<String> = parts.map(|part| expand(part, &known)).collect();
    if command.is_empty() && node.needs_command {
        return Err(Held::config("no command specified: this image brings none, so set `command`"));
    }
    Ok(Launch { command, env, ..bare(pod, container, key) })
}

/// What is known of a container without its command and variables.
pub fn bare(pod: &Pod, container: &Container, key: ContainerKey) -> Launch {
    let grace = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds).unwrap_or(30);
    Launch {
        key,
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        pod_name: pod.metadata.name.clone().unwrap_or_default(),
        image: container.image.clone().unwrap_or_default(),
        command: Vec::new(),
        env: Vec::new(),
        working_dir: container.working_dir.clone().filter(|dir| !dir.is_empty()),
        backoff_seconds: 0,
        grace_seconds: u32::try_from(grace.max(0)).unwrap_or(u32::MAX),
        annotations: pod.metadata.annotations.clone().unwrap_or_default(),
    }
}

/// What this node cannot give a container.
fn check(pod: &Pod, container: &Container, node: &NodeFacts) -> Result<(), Held> {
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let user = own.and_then(|own| own.run_as_user).or(of_pod.and_then(|of_pod| of_pod.run_as_user));
    let not_root =
        own.and_then(|own| own.run_as_non_root).or(of_pod.and_then(|of_pod| of_pod.run_as_non_root));
    if let Some(ours) = node.user {
        if let Some(user) = user.filter(|user| *user != ours) {
            return Err(Held::config(format!(
                "securityContext.runAsUser {user} is not possible: the {} runtime runs everything as user {ours}",
                node.runtime
            )));
        }
        if ours == 0 && not_root == Some(true) {
            return Err(Held::config("container has runAsNonRoot and image will run as root"));
        }
    }
    if !node.hooks
        && container
            .lifecycle
            .as_ref()
            .is_some_and(|hooks| hooks.post_start.is_some() || hooks.pre_stop.is_some())
    {
        return Err(Held::config(format!(
            "lifecycle hooks are not possible: the {} runtime does not run them; a stop sends SIGTERM",
            node.runtime
        )));
    }
    let mount = container.volume_mounts.iter().flatten().find(|mount| mount.mount_path != TOKEN_MOUNT);
    match mount {
        Some(mount) if !node.mounts => Err(Held::config(format!(
            "volumeMounts {:?} at {} is not possible: the {} runtime has no volumes",
            mount.name, mount.mount_path, node.runtime
        ))),
        _ => Ok(()),
    }
}

/// The variables in order: `envFrom`, then `env`; a later one of the same name wins.
fn variables(
    pod: &Pod,
    container: &Container,
    node: &NodeFacts,
    sources: &Sources,
) -> Result<Vec<(String, String)>, Held> {
    let mut variables: Vec<(String, String)> = Vec::new();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let config_map =
            from.config_map_ref.as_ref().map(|it| (SourceRef::ConfigMap(it.name.clone()), it.optional));
        let secret = from.secret_ref.as_ref().map(|it| (SourceRef::Secret(it.name.clone()), it.optional));
        for (source, optional) in config_map.into_iter().chain(secret) {
            let Some(data) = data_of(&source, optional, sources)? else { continue };
            let usable = data.iter().filter(|(name, _)| is_variable_name(name));
            variables.extend(usable.map(|(name, value)| (format!("{prefix}{name}"), value.clone())));
        }
    }
    for variable in container.env.iter().flatten() {
        let value = match (&variable.value, &variable.value_from) {
            (Some(value), _) if !value.is_empty() => {
                let known = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                Some(expand(value, &known))
            }
            (_, Some(from)) => value_from(from, pod, node, sources)?,
            _ => Some(String::new()),
        };
        variables.extend(value.map(|value| (variable.name.clone(), value)));
    }
    match variables.iter().find(|(name, value)| name.contains(['=', '\0']) || value.contains('\0')) {
        Some((name, _)) => {
            Err(Held::config(format!("variable {name:?} holds a character that no environment can")))
        }
        None => Ok(variables),
    }
}

/// The value that a reference leads to; `None`: it is optional and leads nowhere.
fn value_from(
    from: &EnvVarSource,
    pod: &Pod,
    node: &NodeFacts,
    sources: &Sources,
) -> Result<Option<String>, Held> {
    if let Some(field) = &from.field_ref {
        return field_value(&field.field_path, pod, node).map(Some);
    }
    let (source, key, optional) = if let Some(it) = &from.config_map_key_ref {
        (SourceRef::ConfigMap(it.name.clone()), &it.key, it.optional)
    } else if let Some(it) = &from.secret_key_ref {
        (SourceRef::Secret(it.name.clone()), &it.key, it.optional)
    } else {
        return Err(Held::config(
            "env.valueFrom: only fieldRef, configMapKeyRef and secretKeyRef are supported",
        ));
    };
    let value = data_of(&source, optional, sources)?.and_then(|data| data.get(key));
    if value.is_none() && optional != Some(true) {
        let message = format!("couldn't find key {key} in {} {}", source.kind(), source.name());
        return Err(Held::config(message));
    }
    Ok(value.cloned())
}

/// The texts of a source; `None`: it does not exist and need not.
fn data_of<'a>(
    source: &SourceRef,
    optional: Option<bool>,
    sources: &'a Sources,
) -> Result<Option<&'a BTreeMap<String, String>>, Held> {
    match sources.get(source).and_then(Option::as_ref) {
        Some(data) => Ok(Some(data)),
        None if optional == Some(true) => Ok(None),
        None => Err(Held::config(format!("{} {:?} not found", source.kind(), source.name()))),
    }
}

/// The value of a downward API path.
fn field_value(path: &str, pod: &Pod, node: &NodeFacts) -> Result<String, Held> {
    let meta = &pod.metadata;
    let spec = pod.spec.as_ref();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    Ok(match path {
        "metadata.name" => text(&meta.name),
        "metadata.namespace" => text(&meta.namespace),
        "metadata.uid" => text(&meta.uid),
        "metadata.labels" => lines(meta.labels.as_ref()),
        "metadata.annotations" => lines(meta.annotations.as_ref()),
        "spec.nodeName" => spec.map(|spec| text(&spec.node_name)).unwrap_or_default(),
        "spec.serviceAccountName" => spec.map(|spec| text(&spec.service_account_name)).unwrap_or_default(),
        "status.hostIP" | "status.hostIPs" => node.host_ip.clone(),
        "status.podIP" | "status.podIPs" => address(pod, &node.host_ip),
        _ => return element_value(path, pod),
    })
}

/// The value of `metadata.labels['key']` and `metadata.annotations['key']`.
fn element_value(path: &str, pod: &Pod) -> Result<String, Held> {
    let key = path.strip_suffix("']").and_then(|path| path.split_once("['"));
    let map = match key {
        Some(("metadata.labels", _)) => &pod.metadata.labels,
        Some(("metadata.annotations", _)) => &pod.metadata.annotations,
        _ => return Err(Held::config(format!("fieldRef: fieldPath {path:?} is not supported"))),
    };
    let value = key.and_then(|(_, key)| map.as_ref()?.get(key));
    Ok(value.cloned().unwrap_or_default())
}

fn lines(map: Option<&BTreeMap<String, String>>) -> String {
    let lines: Vec<String> =
        map.into_iter().flatten().map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

/// Whether a key can be a variable's name.
fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

/// Replaces `$(NAME)` by the variable's value; `$$` stands for one `$`, and an unknown name stays as written.
pub fn expand(text: &str, known: &BTreeMap<&str, &str>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        expanded.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            expanded.push('$');
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('(').and_then(|inner| inner.split_once(')'));
        match name {
            Some((name, after)) => {
                match known.get(name) {
                    Some(value) => expanded.push_str(value),
                    None => expanded.push_str(&format!("$({name})")),
                }
                rest = after;
            }
            None => expanded.push('$'),
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests;
