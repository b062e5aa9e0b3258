//! Containers and volumes, of pods and of pod templates.

use jiff::Timestamp;
use serde_json::Value;

use super::generic::title;
use super::page::{NONE, Page, age, instant, list, text, text_of};

/// A pod template as a text of its own.
pub fn text_of_template(of: &Value) -> std::io::Result<String> {
    let mut page = Page::default();
    template(&mut page, of);
    page.finish()
}

/// A pod template.
pub fn template(page: &mut Page, template: &Value) {
    page.line(0, "Pod Template:");
    page.map(1, "Labels", &template["metadata"]["labels"], "=");
    if template["metadata"]["annotations"].is_object() {
        page.map(1, "Annotations", &template["metadata"]["annotations"], ": ");
    }
    let spec = &template["spec"];
    if spec["serviceAccountName"].is_string() {
        page.field(1, "Service Account", text(spec, "serviceAccountName"));
    }
    containers(page, 1, spec, &Value::Null, None);
    volumes(page, 1, spec);
    placement(page, 1, spec);
}

/// Where a pod may be placed.
pub fn placement(page: &mut Page, level: usize, spec: &Value) {
    page.map(level, "Node-Selectors", &spec["nodeSelector"], "=");
    let tolerations: Vec<String> =
        spec["tolerations"].as_array().into_iter().flatten().map(toleration).collect();
    page.fields(level, "Tolerations", &tolerations);
}

fn toleration(t: &Value) -> String {
    let mut said = text(t, "key").to_owned();
    if !text(t, "value").is_empty() {
        said.push_str(&format!("={}", text(t, "value")));
    }
    if !text(t, "effect").is_empty() {
        said.push_str(&format!(":{}", text(t, "effect")));
    }
    if text(t, "operator") == "Exists" {
        said.push_str(" op=Exists");
    }
    if let Some(seconds) = t["tolerationSeconds"].as_i64() {
        said.push_str(&format!(" for {seconds}s"));
    }
    said
}

/// All containers, with their states where there are any.
pub fn containers(page: &mut Page, level: usize, spec: &Value, status: &Value, now: Option<Timestamp>) {
    for (title, list, statuses) in [
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
    ] {
        let Some(all) = spec[list].as_array().filter(|all| !all.is_empty()) else { continue };
        page.line(level, &format!("{title}:"));
        for container in all {
            let statuses = status[statuses].as_array();
            let status = statuses.into_iter().flatten().find(|s| s["name"] == container["name"]);
            // A template stands a step in, and its containers are told by one blank more; so it is in kubectl.
            page.line(1, &format!("{}{}:", if level == 0 { "" } else { " " }, text(container, "name")));
            one(page, 2, container, status, now);
        }
    }
}

fn one(page: &mut Page, level: usize, container: &Value, status: Option<&Value>, now: Option<Timestamp>) {
    if let Some(status) = status {
        page.field(level, "Container ID", text(status, "containerID"));
    }
    page.field(level, "Image", text(container, "image"));
    if let Some(status) = status {
        page.field(level, "Image ID", text(status, "imageID"));
    }
    let ports = |field: &str| {
        let all = container["ports"].as_array().into_iter().flatten();
        let protocol = |p: &Value| {
            if text(p, "protocol").is_empty() { "TCP".to_owned() } else { text(p, "protocol").to_owned() }
        };
        let texts: Vec<String> =
            all.map(|p| format!("{}/{}", p[field].as_i64().unwrap_or(0), protocol(p))).collect();
        texts.join(", ")
    };
    page.field(level, "Port", &ports("containerPort"));
    page.field(level, "Host Port", &ports("hostPort"));
    for field in ["command", "args"] {
        let words = list(&container[field]);
        if !words.is_empty() {
            page.line(level, &format!("{}:", title(field)));
            words.iter().for_each(|word| page.line(level + 1, &word.replace('\n', "\\n")));
        }
    }
    if let Some(status) = status {
        state(page, level, "State", &status["state"], now);
        if status["lastState"].as_object().is_some_and(|s| !s.is_empty()) {
            state(page, level, "Last State", &status["lastState"], now);
        }
        page.field(level, "Ready", if status["ready"] == true { "True" } else { "False" });
        page.field(level, "Restart Count", &status["restartCount"].as_i64().unwrap_or(0).to_string());
    }
    for field in ["limits", "requests"] {
        if container["resources"][field].is_object() {
            page.line(level, &format!("{}:", title(field)));
            for (name, amount) in container["resources"][field].as_object().into_iter().flatten() {
                page.field(level + 1, name, &text_of(amount));
            }
        }
    }
    for (field, title) in
        [("livenessProbe", "Liveness"), ("readinessProbe", "Readiness"), ("startupProbe", "Startup")]
    {
        if container[field].is_object() {
            page.field(level, title, &probe(&container[field]));
        }
    }
    environment(page, level, container);
    let mounts = container["volumeMounts"].as_array().into_iter().flatten().map(|m| {
        let mode = if m["readOnly"] == true { "ro" } else { "rw" };
        format!("{} from {} ({mode})", text(m, "mountPath"), text(m, "name"))
    });
    block(page, level, "Mounts", &mounts.collect::<Vec<_>>());
}

fn block(page: &mut Page, level: usize, name: &str, lines: &[String]) {
    if lines.is_empty() {
        return page.field(level, name, "");
    }
    page.line(level, &format!("{name}:"));
    lines.iter().for_each(|line| page.line(level + 1, line));
}

fn environment(page: &mut Page, level: usize, container: &Value) {
    let lines = container["env"].as_array().into_iter().flatten().map(|env| {
        let from = &env["valueFrom"];
        let value = match from.as_object().and_then(|from| from.iter().next()) {
            None => text(env, "value").to_owned(),
            Some((kind, from)) if kind == "fieldRef" => format!("({})", text(from, "fieldPath")),
            Some((kind, from)) => {
                let what = if kind == "secretKeyRef" { "secret" } else { "config map" };
                format!("<set to the key '{}' in {what} '{}'>", text(from, "key"), text(from, "name"))
            }
        };
        format!("{}:\t{}", text(env, "name"), value.replace('\n', "\\n"))
    });
    block(page, level, "Environment", &lines.collect::<Vec<_>>());
}

fn state(page: &mut Page, level: usize, name: &str, state: &Value, now: Option<Timestamp>) {
    let since = |at: &Value| {
        let ago = now
            .and_then(|now| age(at, now))
            .map(|s| format!(" ({} ago)", strata_model::age::human(s)))
            .unwrap_or_default();
        format!("{}{ago}", instant(at))
    };
    let Some((kind, state)) = state.as_object().and_then(|s| s.iter().next()) else {
        return page.field(level, name, "Waiting");
    };
    page.field(level, name, &title(kind));
    if !text(state, "reason").is_empty() {
        page.field(level + 1, "Reason", text(state, "reason"));
    }
    if !text(state, "message").is_empty() {
        page.field(level + 1, "Message", &text(state, "message").replace('\n', " "));
    }
    if kind == "terminated" {
        page.field(level + 1, "Exit Code", &state["exitCode"].as_i64().unwrap_or(0).to_string());
        if let Some(signal) = state["signal"].as_i64() {
            page.field(level + 1, "Signal", &signal.to_string());
        }
    }
    for (field, title) in [("startedAt", "Started"), ("finishedAt", "Finished")] {
        if state[field].is_string() {
            page.field(level + 1, title, &since(&state[field]));
        }
    }
}

fn probe(probe: &Value) -> String {
    let number = |field: &str, default: i64| probe[field].as_i64().unwrap_or(default);
    let how = if probe["httpGet"].is_object() {
        let http = &probe["httpGet"];
        let scheme = if text(http, "scheme").is_empty() {
            "http".to_owned()
        } else {
            text(http, "scheme").to_lowercase()
        };
        format!("http-get {scheme}://{}:{}{}", text(http, "host"), text_of(&http["port"]), text(http, "path"))
    } else if probe["exec"].is_object() {
        format!("exec [{}]", list(&probe["exec"]["command"]).join(" "))
    } else if probe["tcpSocket"].is_object() {
        format!("tcp-socket {}:{}", text(&probe["tcpSocket"], "host"), text_of(&probe["tcpSocket"]["port"]))
    } else {
        "unknown".to_owned()
    };
    format!(
        "{how} delay={}s timeout={}s period={}s #success={} #failure={}",
        number("initialDelaySeconds", 0),
        number("timeoutSeconds", 1),
        number("periodSeconds", 10),
        number("successThreshold", 1),
        number("failureThreshold", 3)
    )
}

/// The volumes of a pod.
pub fn volumes(page: &mut Page, level: usize, spec: &Value) {
    let Some(volumes) = spec["volumes"].as_array().filter(|v| !v.is_empty()) else {
        return page.line(level, &format!("Volumes:\t{NONE}"));
    };
    page.line(level, "Volumes:");
    for volume in volumes {
        page.line(1, &format!("{}{}:", if level == 0 { "" } else { " " }, text(volume, "name")));
        for (kind, source) in volume.as_object().into_iter().flatten().filter(|(kind, _)| *kind != "name") {
            page.field(2, "Type", &title(kind));
            for (name, value) in
                source.as_object().into_iter().flatten().filter(|(_, v)| !v.is_object() && !v.is_array())
            {
                page.field(2, &title(name), &text_of(value));
            }
        }
    }
}
