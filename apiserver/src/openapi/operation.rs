//! Paths of a resource with their operations: parameters, bodies and answers. Knows names of schemas, not their content.

use serde_json::{Map, Value, json};

use super::published::{CustomSchema, Gvk, PublishedResource, PublishedSubresource};
use crate::schema::build::REFERENCE;
use crate::schema::registry;

/// Name of the schema of a patch.
pub const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH_TYPES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// What is done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    List,
    Create,
    DeleteCollection,
    Get,
    Update,
    Patch,
    Delete,
}

/// A query parameter: name, type, what it does.
type Parameter = (&'static str, &'static str, &'static str);

const PRETTY: &[Parameter] = &[("pretty", "string", "If true, the answer is indented.")];
const LIST: &[Parameter] = &[
    ("allowWatchBookmarks", "boolean", "Whether a watch may send bookmarks."),
    ("continue", "string", "The token of the page before, to get the next one."),
    ("fieldSelector", "string", "Restricts the objects by their fields."),
    ("labelSelector", "string", "Restricts the objects by their labels."),
    ("limit", "integer", "The most objects in one answer."),
    ("resourceVersion", "string", "The state that the answer shows or starts from."),
    ("resourceVersionMatch", "string", "How the resource version is applied: Exact or NotOlderThan."),
    ("sendInitialEvents", "boolean", "Whether a watch begins with the objects that exist."),
    ("timeoutSeconds", "integer", "How long the request may last."),
    ("watch", "boolean", "Follow the changes instead of listing."),
];
const WRITE: &[Parameter] = &[
    ("dryRun", "string", "With the value All nothing is stored."),
    ("fieldManager", "string", "The name that the changes are recorded under."),
    ("fieldValidation", "string", "What unknown and duplicate fields are: Ignore, Warn or Strict."),
];
const FORCE: &[Parameter] = &[("force", "boolean", "Whether an apply takes fields from other managers.")];
const DELETE: &[Parameter] = &[
    ("dryRun", "string", "With the value All nothing is stored."),
    ("gracePeriodSeconds", "integer", "How long the object may take to end; 0 deletes at once."),
    ("orphanDependents", "boolean", "Deprecated: use propagationPolicy."),
    ("propagationPolicy", "string", "What happens to dependents: Orphan, Background or Foreground."),
];

impl Action {
    fn method(self) -> &'static str {
        match self {
            Self::List | Self::Get => "get",
            Self::Create => "post",
            Self::DeleteCollection | Self::Delete => "delete",
            Self::Update => "put",
            Self::Patch => "patch",
        }
    }

    /// The word for it in the `x-kubernetes-action` extension.
    fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Get => "get",
            Self::Create => "post",
            Self::DeleteCollection => "deletecollection",
            Self::Delete => "delete",
            Self::Update => "put",
            Self::Patch => "patch",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Create => "create",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    fn parameters(self) -> impl Iterator<Item = &'static Parameter> {
        let groups: [&[Parameter]; 3] = match self {
            Self::List => [PRETTY, LIST, &[]],
            Self::Create | Self::Update => [PRETTY, WRITE, &[]],
            Self::Patch => [PRETTY, WRITE, FORCE],
            Self::Delete => [PRETTY, DELETE, &[]],
            Self::DeleteCollection => [PRETTY, LIST, DELETE],
            Self::Get => [PRETTY, &[], &[]],
        };
        groups.into_iter().flatten()
    }
}

/// Adds the paths of a resource and its subresources.
pub fn add_paths(paths: &mut Map<String, Value>, resource: &PublishedResource) {
    let base = format!("/{}", resource.group_version_path());
    let plural = &resource.plural;
    let scoped = if resource.namespaced {
        let everywhere = [Action::List];
        let target = Target { resource, subresource: None, named: false, scoped: false };
        paths.insert(format!("{base}/{plural}"), target.item(&everywhere));
        format!("{base}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{base}/{plural}")
    };
    let target = |subresource, named| Target { resource, subresource, named, scoped: resource.namespaced };
    let collection = [Action::List, Action::Create, Action::DeleteCollection];
    let object = [Action::Get, Action::Update, Action::Patch, Action::Delete];
    let mut add = |path: String, item: Value| {
        if item.as_object().is_some_and(|item| item.keys().any(|key| key != "parameters")) {
            paths.insert(path, item);
        }
    };
    add(scoped.clone(), target(None, false).item(&collection));
    add(format!("{scoped}/{{name}}"), target(None, true).item(&object));
    for subresource in &resource.subresources {
        let path = format!("{scoped}/{{name}}/{}", subresource.name);
        let actions = [Action::Get, Action::Create, Action::Update, Action::Patch];
        add(path, target(Some(subresource), true).item(&actions));
    }
}

/// What a path leads to.
#[derive(Clone, Copy)]
struct Target<'a> {
    resource: &'a PublishedResource,
    subresource: Option<&'a PublishedSubresource>,
    named: bool,
    scoped: bool,
}

impl Target<'_> {
    fn item(&self, actions: &[Action]) -> Value {
        let verbs = self.subresource.map_or(&self.resource.verbs, |subresource| &subresource.verbs);
        let taken = actions.iter().filter(|action| verbs.iter().any(|verb| verb == action.verb()));
        let mut item: Map<String, Value> =
            taken.map(|action| (action.method().to_owned(), self.operation(*action))).collect();
        let places = [
            (self.named, "name", "Name of the object."),
            (self.scoped, "namespace", "Namespace of the object."),
        ];
        let parameters: Vec<Value> = places
            .into_iter()
            .filter(|(is_there, _, _)| *is_there)
            .map(|(_, name, description)| {
                json!({"name": name, "in": "path", "required": true, "description": description,
                    "schema": {"type": "string", "uniqueItems": true}})
            })
            .collect();
        if !parameters.is_empty() {
            item.insert("parameters".to_owned(), Value::Array(parameters));
        }
        Value::Object(item)
    }

    fn gvk(&self) -> Gvk<'_> {
        self.subresource.map_or_else(|| self.resource.gvk(), PublishedSubresource::gvk)
    }

    fn operation(&self, action: Action) -> Value {
        let gvk = self.gvk();
        let parameters: Vec<Value> = action
            .parameters()
            .map(|(name, kind, description)| {
                json!({"name": name, "in": "query", "description": description,
                    "schema": {"type": kind, "uniqueItems": true}})
            })
            .collect();
        let mut operation = json!({
            "operationId": self.operation_id(action),
            "tags": [tag(&self.resource.gvk())],
            "parameters": parameters,
            "responses": self.responses(action),
            "x-kubernetes-action": action.word(),
            "x-kubernetes-group-version-kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
        });
        if let Some(body) = self.body(action) {
            operation["requestBody"] = body;
        }
        operation
    }

    fn operation_id(&self, action: Action) -> String {
        let resource = self.resource;
        let verb = match action {
            Action::Get => "read",
            Action::Update => "replace",
            Action::DeleteCollection => "deleteCollection",
            other => other.verb(),
        };
        let scope = match (resource.namespaced, self.scoped) {
            (true, true) => "Namespaced",
            _ => "",
        };
        let everywhere = if resource.namespaced && !self.scoped { "ForAllNamespaces" } else { "" };
        let below = self.subresource.map(|subresource| capitalised(&subresource.name)).unwrap_or_default();
        let group_version = capitalised(&tag(&resource.gvk()));
        format!("{verb}{group_version}{scope}{}{below}{everywhere}", resource.kind)
    }

    fn responses(&self, action: Action) -> Value {
        let gvk = self.gvk();
        let schema = match action {
            Action::List => self.schema_of(&Gvk { kind: &self.resource.list_kind(), ..gvk }),
            Action::Delete | Action::DeleteCollection => Some(reference(STATUS)),
            _ => self.schema_of(&gvk),
        };
        let content = schema.map(
            |schema| json!({"application/json": {"schema": schema}, "application/yaml": {"schema": schema}}),
        );
        let answer = |description: &str| match &content {
            Some(content) => json!({"description": description, "content": content}),
            None => json!({"description": description}),
        };
        match action {
            Action::Create | Action::Update | Action::Patch => {
                json!({"200": answer("OK"), "201": answer("Created"), "401": {"description": "Unauthorized"}})
            }
            _ => json!({"200": answer("OK"), "401": {"description": "Unauthorized"}}),
        }
    }

    fn body(&self, action: Action) -> Option<Value> {
        match action {
            Action::List | Action::Get => None,
            Action::Create | Action::Update => {
                let schema = self.schema_of(&self.gvk())?;
                Some(json!({"required": true, "content": {"*/*": {"schema": schema}}}))
            }
            Action::Patch => {
                let strategic = self.resource.custom.is_none();
                let media = PATCH_TYPES.into_iter().filter(|media| strategic || !media.contains("strategic"));
                let media = media.map(|media| (media.to_owned(), json!({"schema": reference(PATCH)})));
                let content: Map<String, Value> = media.collect();
                Some(json!({"required": true, "content": content}))
            }
            Action::Delete | Action::DeleteCollection => {
                Some(json!({"content": {"*/*": {"schema": reference(DELETE_OPTIONS)}}}))
            }
        }
    }
}

impl Target<'_> {
    fn schema_of(&self, gvk: &Gvk<'_>) -> Option<Value> {
        let resource = self.resource;
        let own = gvk.group == resource.group && gvk.version == resource.version;
        if resource.custom.is_some() && own {
            return Some(reference(&CustomSchema::name(gvk.group, gvk.version, gvk.kind)));
        }
        let entry = registry::find(gvk.group, gvk.version, gvk.kind)?;
        Some(reference(&entry.definition_name()))
    }
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{REFERENCE}{name}")})
}

/// `apps`, `v1` → `appsV1`.
fn tag(gvk: &Gvk<'_>) -> String {
    let group = gvk.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
    format!("{group}{}", capitalised(gvk.version))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
