//! The definitions of the three types, as the platform installs them: structural schemas, columns, short names. What the
//! schemas do not name is kept, so that manifests written for another version of Argo CD lose nothing.

use serde_json::{Map, Value, json};

use super::types::{GROUP, VERSION};

/// All three, ready to be applied.
pub fn definitions() -> [Value; 3] {
    let columns = json!([
        {"name": "Sync Status", "type": "string", "jsonPath": ".status.sync.status"},
        {"name": "Health Status", "type": "string", "jsonPath": ".status.health.status"},
        {"name": "Revision", "type": "string", "jsonPath": ".status.sync.revision", "priority": 10},
        {"name": "Project", "type": "string", "jsonPath": ".spec.project", "priority": 10},
    ]);
    let mut application = one("Application", "applications", &["app", "apps"], &application(), false);
    application["spec"]["versions"][0]["additionalPrinterColumns"] = columns;
    [
        application,
        one("AppProject", "appprojects", &["appproj", "appprojs"], &project(), false),
        one("ApplicationSet", "applicationsets", &["appset", "appsets"], &set(), true),
    ]
}

fn one(kind: &str, plural: &str, short: &[&str], schema: &Value, status: bool) -> Value {
    let subresources = if status { json!({"status": {}}) } else { json!({}) };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}"),
            "labels": {"app.kubernetes.io/name": plural, "app.kubernetes.io/part-of": "argocd"}},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(), "shortNames": short},
            "scope": "Namespaced",
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": subresources,
            }],
        },
    })
}

fn text() -> Value {
    json!({"type": "string"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn number() -> Value {
    json!({"type": "integer", "format": "int64"})
}

fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

fn texts() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn words(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

fn number_or_text() -> Value {
    json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]})
}

/// Anything at all.
fn free() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// An object with these fields, and others that nobody knows.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let fields: Map<String, Value> = fields.into_iter().map(|(name, of)| (name.to_owned(), of)).collect();
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": fields})
}

fn requiring(mut schema: Value, fields: &[&str]) -> Value {
    schema["required"] = json!(fields);
    schema
}

fn whole(spec: Value, more: [(&str, Value); 2]) -> Value {
    let mut schema = requiring(
        object([("apiVersion", text()), ("kind", text()), ("metadata", json!({"type": "object"}))]),
        &["metadata", "spec"],
    );
    schema["properties"]["spec"] = spec;
    for (name, of) in more {
        if !of.is_null() {
            schema["properties"][name] = of;
        }
    }
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("x-kubernetes-preserve-unknown-fields");
    }
    schema
}

fn destination() -> Value {
    object([("server", text()), ("namespace", text()), ("name", text())])
}

fn source() -> Value {
    let helm = object([
        ("valueFiles", list(text())),
        ("parameters", list(object([("name", text()), ("value", text()), ("forceString", flag())]))),
        ("fileParameters", list(object([("name", text()), ("path", text())]))),
        ("releaseName", text()),
        ("values", text()),
        ("valuesObject", free()),
        ("version", text()),
        ("passCredentials", flag()),
        ("ignoreMissingValueFiles", flag()),
        ("skipCrds", flag()),
        ("skipTests", flag()),
        ("skipSchemaValidation", flag()),
        ("namespace", text()),
        ("kubeVersion", text()),
        ("apiVersions", list(text())),
    ]);
    let kustomize = object([
        ("namePrefix", text()),
        ("nameSuffix", text()),
        ("images", list(text())),
        ("commonLabels", texts()),
        ("commonAnnotations", texts()),
        ("version", text()),
        ("forceCommonLabels", flag()),
        ("forceCommonAnnotations", flag()),
        ("commonAnnotationsEnvsubst", flag()),
        ("labelWithoutSelector", flag()),
        ("labelIncludeTemplates", flag()),
        ("ignoreMissingComponents", flag()),
        ("namespace", text()),
        ("components", list(text())),
        (
            "replicas",
            list(requiring(object([("name", text()), ("count", number_or_text())]), &["name", "count"])),
        ),
        ("patches", list(object([("path", text()), ("patch", text()), ("target", free())]))),
        ("kubeVersion", text()),
        ("apiVersions", list(text())),
    ]);
    let directory =
        object([("recurse", flag()), ("include", text()), ("exclude", text()), ("jsonnet", free())]);
    let source = object([
        ("repoURL", text()),
        ("path", text()),
        ("targetRevision", text()),
        ("chart", text()),
        ("ref", text()),
        ("name", text()),
        ("helm", helm),
        ("kustomize", kustomize),
        ("directory", directory),
        ("plugin", free()),
    ]);
    requiring(source, &["repoURL"])
}

fn retry() -> Value {
    let backoff = object([("duration", text()), ("factor", number()), ("maxDuration", text())]);
    object([("limit", number()), ("backoff", backoff), ("refresh", flag())])
}

fn info() -> Value {
    list(requiring(object([("name", text()), ("value", text())]), &["name", "value"]))
}

fn operation() -> Value {
    let force = || object([("force", flag())]);
    let named = object([("group", text()), ("kind", text()), ("name", text()), ("namespace", text())]);
    let sync = object([
        ("revision", text()),
        ("revisions", list(text())),
        ("prune", flag()),
        ("dryRun", flag()),
        ("resources", list(requiring(named, &["kind", "name"]))),
        ("source", source()),
        ("sources", list(source())),
        ("syncOptions", list(text())),
        ("syncStrategy", object([("apply", force()), ("hook", force())])),
    ]);
    let by = object([("username", text()), ("automated", flag())]);
    object([("sync", sync), ("initiatedBy", by), ("info", info()), ("retry", retry())])
}

fn application() -> Value {
    let automated =
        object([("prune", flag()), ("selfHeal", flag()), ("allowEmpty", flag()), ("enabled", flag())]);
    let policy = object([
        ("automated", automated),
        ("syncOptions", list(text())),
        ("retry", retry()),
        ("managedNamespaceMetadata", object([("labels", texts()), ("annotations", texts())])),
    ]);
    let ignore = object([
        ("group", text()),
        ("kind", text()),
        ("name", text()),
        ("namespace", text()),
        ("jsonPointers", list(text())),
        ("jqPathExpressions", list(text())),
        ("managedFieldsManagers", list(text())),
    ]);
    let spec = object([
        ("source", source()),
        ("sources", list(source())),
        ("destination", destination()),
        ("project", text()),
        ("syncPolicy", policy),
        ("ignoreDifferences", list(requiring(ignore, &["kind"]))),
        ("info", info()),
        ("revisionHistoryLimit", number()),
    ]);
    let spec = requiring(spec, &["destination", "project"]);
    whole(spec, [("operation", operation()), ("status", status())])
}

fn status() -> Value {
    let health = || object([("status", text()), ("message", text()), ("lastTransitionTime", text())]);
    let resource = object([
        ("group", text()),
        ("version", text()),
        ("kind", text()),
        ("namespace", text()),
        ("name", text()),
        ("status", text()),
        ("health", health()),
        ("hook", flag()),
        ("requiresPruning", flag()),
        ("syncWave", number()),
    ]);
    let deployed = object([("id", number()), ("revision", text()), ("deployedAt", text())]);
    let condition = object([("type", text()), ("message", text()), ("lastTransitionTime", text())]);
    object([
        ("resources", list(resource)),
        ("sync", object([("status", text()), ("revision", text()), ("revisions", list(text()))])),
        ("health", health()),
        ("history", list(deployed)),
        ("conditions", list(requiring(condition, &["type", "message"]))),
        ("operationState", object([("phase", text()), ("message", text()), ("retryCount", number())])),
        ("reconciledAt", text()),
        ("sourceType", text()),
        ("sourceTypes", list(text())),
    ])
}

fn project() -> Value {
    let kinds = || list(object([("group", text()), ("kind", text()), ("name", text())]));
    let window = object([
        ("kind", words(&["allow", "deny"])),
        ("schedule", text()),
        ("duration", text()),
        ("applications", list(text())),
        ("namespaces", list(text())),
        ("clusters", list(text())),
        ("manualSync", flag()),
        ("timeZone", text()),
        ("andOperator", flag()),
        ("description", text()),
    ]);
    let spec = object([
        ("sourceRepos", list(text())),
        ("sourceNamespaces", list(text())),
        ("destinations", list(destination())),
        ("description", text()),
        ("clusterResourceWhitelist", kinds()),
        ("clusterResourceBlacklist", kinds()),
        ("namespaceResourceWhitelist", kinds()),
        ("namespaceResourceBlacklist", kinds()),
        ("syncWindows", list(window)),
        ("orphanedResources", object([("warn", flag()), ("ignore", kinds())])),
    ]);
    whole(spec, [("status", free()), ("", Value::Null)])
}

fn set() -> Value {
    let policy = object([
        ("applicationsSync", words(&["create-only", "create-update", "create-delete", "sync"])),
        ("preserveResourcesOnDeletion", flag()),
    ]);
    let spec = object([
        ("generators", list(free())),
        ("template", requiring(object([("metadata", free()), ("spec", free())]), &["metadata", "spec"])),
        ("goTemplate", flag()),
        ("goTemplateOptions", list(text())),
        ("syncPolicy", policy),
        ("templatePatch", text()),
    ]);
    let spec = requiring(spec, &["generators", "template"]);
    whole(spec, [("status", free()), ("", Value::Null)])
}

/// The project of Applications that name none: everything is allowed, as with Argo CD.
pub fn default_project() -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": "AppProject",
        "metadata": {"name": super::types::DEFAULT_PROJECT, "namespace": super::types::NAMESPACE},
        "spec": {
            "sourceRepos": ["*"],
            "destinations": [{"namespace": "*", "server": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
        },
    })
}
