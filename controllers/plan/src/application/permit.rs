//! What a project allows: repositories, destinations, types, and when. Answers with sentences that name the rule.

use jiff::Timestamp;

use super::identity::ObjectId;
use super::ignore::glob;
use super::project::{GroupKind, ProjectSpec, SyncWindow};
use super::retry::span;
use super::spec::{Destination, Spec};
use super::types::{IN_CLUSTER, IN_CLUSTER_NAME};
use crate::cronjob::schedule::Schedule;

/// Why an Application cannot be held at all; `None`: it can.
pub fn forbids(spec: &Spec, project: &ProjectSpec, namespace: &str, home: &str) -> Option<String> {
    let name = spec.project();
    if namespace != home && !allows(project.source_namespaces.iter().map(String::as_str), namespace) {
        return Some(format!(
            "Applications of namespace {namespace} may not be of project {name}; add it to its sourceNamespaces"
        ));
    }
    let sources = spec.all_sources();
    if sources.is_empty() {
        return Some("spec.source or spec.sources is required".to_owned());
    }
    for source in sources {
        if source.repo_url.trim().is_empty() {
            return Some("spec.source.repoURL is required".to_owned());
        }
        if source.plugin.is_some() {
            return Some("spec.source.plugin is not supported; render it before it is committed".to_owned());
        }
        if !allows(project.source_repos.iter().map(String::as_str), &source.repo_url) {
            return Some(format!(
                "the repository {} is not allowed in project {name}; add it to its sourceRepos",
                source.repo_url
            ));
        }
    }
    let to = &spec.destination;
    if !to.is_here() {
        let where_ = if to.server.is_empty() { &to.name } else { &to.server };
        return Some(format!(
            "the destination {where_:?} is not this platform; spec.destination must have the server \
             {IN_CLUSTER}, or the name {IN_CLUSTER_NAME}, and not both"
        ));
    }
    if !to_namespace(project, &to.namespace) {
        return Some(format!(
            "the namespace {:?} is not a destination that project {name} allows; add it to its destinations",
            to.namespace
        ));
    }
    None
}

/// Whether a list of globs allows a text: one must match, and none that begins with `!`.
fn allows<'a>(patterns: impl Iterator<Item = &'a str>, text: &str) -> bool {
    let mut allowed = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(denied) if glob(denied, text) => return false,
            Some(_) => {}
            None => allowed |= glob(pattern, text),
        }
    }
    allowed
}

/// Whether a project lets objects into a namespace.
fn to_namespace(project: &ProjectSpec, namespace: &str) -> bool {
    let is_here = |d: &Destination| {
        let server = d.server.trim_start_matches('!');
        let name = d.name.trim_start_matches('!');
        (server.is_empty() || glob(server.trim_end_matches('/'), IN_CLUSTER))
            && (name.is_empty() || glob(name, IN_CLUSTER_NAME))
            && !(server.is_empty() && name.is_empty())
    };
    let mut allowed = false;
    for one in project.destinations.iter().filter(|d| is_here(d)) {
        let denies_server = one.server.starts_with('!') || one.name.starts_with('!');
        match one.namespace.strip_prefix('!') {
            Some(denied) if glob(denied, namespace) => return false,
            Some(_) => {}
            None if denies_server && glob(&one.namespace, namespace) => return false,
            None => allowed |= glob(&one.namespace, namespace),
        }
    }
    allowed
}

/// Why an object may not be of a project; `None`: it may.
pub fn forbids_object(
    project: &ProjectSpec,
    name: &str,
    id: &ObjectId,
    is_namespaced: bool,
) -> Option<String> {
    let among = |list: &[GroupKind]| {
        list.iter().any(|g| {
            glob(&g.group, &id.group)
                && glob(&g.kind, &id.kind)
                && (g.name.is_empty() || glob(&g.name, &id.name))
        })
    };
    let allowed = match is_namespaced {
        true => {
            project.namespace_resource_whitelist.as_ref().is_none_or(|list| among(list))
                && !among(&project.namespace_resource_blacklist)
        }
        false => among(&project.cluster_resource_whitelist) && !among(&project.cluster_resource_blacklist),
    };
    if !allowed {
        return Some(format!("resource {}:{} is not permitted in project {name}", id.group, id.kind));
    }
    (is_namespaced && !to_namespace(project, &id.namespace))
        .then(|| format!("namespace {} is not permitted in project {name}", id.namespace))
}

/// What windows say of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// What nobody asked for may be done.
    pub automated: bool,
    /// What people ask for may be done.
    pub manual: bool,
    /// When that may change.
    pub until: Option<Timestamp>,
}

/// Whether an Application may be synced now. A window that cannot be read counts as one that never opens.
pub fn windows(project: &ProjectSpec, app: &str, spec: &Spec, now: Timestamp) -> Allowed {
    let concerned = project.sync_windows.iter().filter(|w| concerns(w, app, spec));
    let (mut open_allow, mut any_allow, mut open_deny) = (false, false, false);
    let (mut manual_allow, mut manual_deny) = (true, true);
    let mut until: Option<Timestamp> = None;
    for window in concerned {
        let is_deny = window.kind == "deny";
        let state = state(window, now);
        any_allow |= !is_deny;
        if let Some(at) = state.changes {
            until = Some(until.map_or(at, |u| u.min(at)));
        }
        match (is_deny, state.is_open) {
            (true, true) => {
                open_deny = true;
                manual_deny &= window.manual_sync;
            }
            (false, true) => open_allow = true,
            (false, false) => manual_allow &= window.manual_sync,
            (true, false) => {}
        }
    }
    let by_allow = open_allow || !any_allow;
    let automated = by_allow && !open_deny;
    let manual = (by_allow || manual_allow) && (!open_deny || manual_deny);
    Allowed { automated, manual, until }
}

fn concerns(window: &SyncWindow, app: &str, spec: &Spec) -> bool {
    let any = |patterns: &[String], text: &str| patterns.iter().any(|p| glob(p, text));
    let to = [IN_CLUSTER, IN_CLUSTER_NAME];
    let lists = [
        (!window.applications.is_empty(), any(&window.applications, app)),
        (!window.namespaces.is_empty(), any(&window.namespaces, &spec.destination.namespace)),
        (!window.clusters.is_empty(), to.iter().any(|t| any(&window.clusters, t))),
    ];
    let given = || lists.iter().filter(|(given, _)| *given).map(|(_, matches)| *matches);
    match window.use_and_operator {
        true => given().count() > 0 && given().all(|m| m),
        false => given().any(|m| m),
    }
}

struct State {
    is_open: bool,
    changes: Option<Timestamp>,
}

fn state(window: &SyncWindow, now: Timestamp) -> State {
    let zone = Some(window.time_zone.as_str()).filter(|z| !z.is_empty());
    let closed = State { is_open: false, changes: None };
    let (Ok(schedule), Some(length)) = (Schedule::parse(&window.schedule, zone), span(&window.duration))
    else {
        return closed;
    };
    let Ok(since) = now.checked_sub(length) else { return closed };
    match schedule.after(since) {
        // It began within its own length ago.
        Some(began) if began <= now => State { is_open: true, changes: began.checked_add(length).ok() },
        next => State { is_open: false, changes: next },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(more: Value) -> Spec {
        let mut spec = json!({"project": "p", "source": {"repoURL": "https://a.example/x.git"},
            "destination": {"server": IN_CLUSTER, "namespace": "web"}});
        strata_model::merge::apply(&mut spec, &more);
        serde_json::from_value(spec).unwrap()
    }

    fn project(more: Value) -> ProjectSpec {
        let mut project = json!({"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]});
        strata_model::merge::apply(&mut project, &more);
        serde_json::from_value(project).unwrap()
    }

    #[test]
    fn projects_say_what_is_allowed_and_why_not() {
        let why = |s: Value, p: Value| forbids(&spec(s), &project(p), "argocd", "argocd").unwrap_or_default();
        assert_eq!(why(json!({}), json!({})), "");
        assert!(why(json!({}), json!({"sourceRepos": ["https://b.example/*"]})).contains("sourceRepos"));
        assert!(
            why(json!({}), json!({"sourceRepos": ["*", "!https://a.example/*"]})).contains("sourceRepos")
        );
        let only = json!({"destinations": [{"server": IN_CLUSTER, "namespace": "team-*"}]});
        assert!(why(json!({}), only.clone()).contains("destinations"));
        assert_eq!(why(json!({"destination": {"namespace": "team-a"}}), only), "");
        let denied = json!({"destinations": [{"server": "*", "namespace": "*"},
            {"server": "*", "namespace": "!web"}]});
        assert!(why(json!({}), denied).contains("destinations"));
        let elsewhere = json!({"destination": {"server": "https://else.example"}});
        assert!(why(elsewhere, json!({})).contains("not this platform"));
        assert!(why(json!({"source": null}), json!({})).contains("spec.source"));
        let foreign = |p: Value| forbids(&spec(json!({})), &project(p), "team", "argocd");
        assert!(foreign(json!({})).is_some_and(|w| w.contains("sourceNamespaces")));
        assert_eq!(foreign(json!({"sourceNamespaces": ["te*"]})), None);
    }

    #[test]
    fn types_are_allowed_one_by_one() {
        let id = |group: &str, kind: &str| ObjectId {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: "web".to_owned(),
            name: "x".to_owned(),
        };
        let no_cluster = project(json!({"clusterResourceWhitelist": []}));
        assert!(forbids_object(&no_cluster, "p", &id("", "Namespace"), false).is_some());
        assert!(forbids_object(&no_cluster, "p", &id("", "ConfigMap"), true).is_none());
        let no_secrets = project(json!({"namespaceResourceBlacklist": [{"group": "", "kind": "Secret"}]}));
        assert!(forbids_object(&no_secrets, "p", &id("", "Secret"), true).is_some());
        let only_apps = project(json!({"namespaceResourceWhitelist": [{"group": "apps", "kind": "*"}]}));
        assert!(forbids_object(&only_apps, "p", &id("", "ConfigMap"), true).is_some());
        assert!(forbids_object(&only_apps, "p", &id("apps", "Deployment"), true).is_none());
    }

    #[test]
    fn windows_open_and_close() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let with = |kind: &str, manual: bool| {
            project(json!({"syncWindows": [{"kind": kind, "schedule": "0 22 * * *", "duration": "1h",
                "applications": ["web-*"], "manualSync": manual}]}))
        };
        let say = |p: &ProjectSpec, app: &str, when: &str| {
            let allowed = windows(p, app, &spec(json!({})), at(when));
            (allowed.automated, allowed.manual)
        };
        let (inside, outside) = ("2026-11-30T22:30:00Z", "2026-11-30T23:30:00Z");
        let (allow, deny) = (with("allow", false), with("deny", false));
        assert_eq!(say(&allow, "web-a", inside), (true, true));
        assert_eq!(say(&allow, "web-a", outside), (false, false));
        assert_eq!(say(&allow, "other", outside), (true, true));
        assert_eq!(say(&deny, "web-a", inside), (false, false));
        assert_eq!(say(&deny, "web-a", outside), (true, true));
        assert_eq!(say(&with("deny", true), "web-a", inside), (false, true));
        assert_eq!(say(&with("allow", true), "web-a", outside), (false, true));
        let until = windows(&allow, "web-a", &spec(json!({})), at(inside)).until;
        assert_eq!(until, Some(at("2026-11-30T23:00:00Z")));
    }
}
