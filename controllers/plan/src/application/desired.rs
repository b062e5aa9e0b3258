//! What a render means for one Application: each manifest with its type, its namespace, the annotation that says whose it
//! is, and what its own annotations ask for. Faults of single manifests are sentences with file and line.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use strata_model::object::ObjectKey;
use strata_model::resource::{Registry, ResourceType};

use super::identity::{ObjectId, tracking_id};
use super::rendered::{Manifest, Rendered};
use super::spec::Spec;
use super::types::{COMPARE_OPTIONS, HOOK, HOOK_DELETE_POLICY, SYNC_OPTIONS, SYNC_WAVE, TRACKING_ID};

/// Where in a sync something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Before anything else.
    PreSync,
    /// With everything else.
    Sync,
    /// After everything else is healthy.
    PostSync,
    /// Where it failed.
    SyncFail,
}

impl Phase {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreSync => "PreSync",
            Self::Sync => "Sync",
            Self::PostSync => "PostSync",
            Self::SyncFail => "SyncFail",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::PreSync, Self::Sync, Self::PostSync, Self::SyncFail].into_iter().find(|p| p.as_str() == word)
    }
}

/// When a hook is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletePolicy {
    /// Before it is made anew; the usual one.
    BeforeHookCreation,
    /// Once it has succeeded.
    HookSucceeded,
    /// Once it has failed.
    HookFailed,
}

/// One object as it is wished for.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Which one.
    pub id: ObjectId,
    /// Version in which it is written.
    pub version: String,
    /// Its type; `None`: it is not served (yet).
    pub resource: Option<Arc<ResourceType>>,
    /// The whole object, as it is applied.
    pub object: Value,
    /// Of the whole object.
    pub hash: u64,
    /// Its wave.
    pub wave: i64,
    /// At which phases it runs, for hooks; empty for what is none.
    pub hooks: Vec<Phase>,
    /// When it is deleted, for hooks.
    pub policies: Vec<DeletePolicy>,
    /// Options of its own: `Prune=false`, `Replace=true`.
    pub options: Vec<String>,
    /// Options of its comparison.
    pub compare: Vec<String>,
    /// File and line.
    pub place: String,
    /// It is the destination's namespace, which is made where it is missing and belongs to nobody.
    pub is_scaffold: bool,
}

impl Desired {
    /// Whether it runs at phases rather than being held.
    pub fn is_hook(&self) -> bool {
        !self.hooks.is_empty()
    }

    /// Whether it has an option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|o| o == option)
    }
}

/// All that an Application wishes for.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// What the renders depend on.
    pub key: String,
    /// The commits, one a source.
    pub revisions: Vec<String>,
    /// By what they were rendered.
    pub source_types: Vec<&'static str>,
    /// In the order of the sources and files.
    pub objects: Vec<Arc<Desired>>,
    /// What is wrong with single manifests.
    pub faults: Vec<String>,
    /// Objects that are there more than once; the last one counts.
    pub repeated: Vec<ObjectId>,
}

/// The namespace of the destination, where the option `CreateNamespace=true` asks for it.
pub fn scaffold(spec: &Spec, types: &Registry) -> Option<Desired> {
    let name = &spec.destination.namespace;
    if name.is_empty() || !spec.sync_options().iter().any(|o| o == "CreateNamespace=true") {
        return None;
    }
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let policy = spec.sync_policy.as_ref();
    if let Some(metadata) = policy.and_then(|p| p.managed_namespace_metadata.as_ref()) {
        object["metadata"]["labels"] = json!(metadata.labels);
        object["metadata"]["annotations"] = json!(metadata.annotations);
    }
    Some(Desired {
        id: ObjectId::of_value(&object),
        version: "v1".to_owned(),
        resource: types.by_api_version("v1", "Namespace").cloned(),
        hash: hash(&object),
        object,
        wave: i64::MIN,
        hooks: Vec::new(),
        policies: Vec::new(),
        options: Vec::new(),
        compare: Vec::new(),
        place: "spec.syncPolicy.syncOptions".to_owned(),
        is_scaffold: true,
    })
}

/// What the renders of all sources of an Application mean. `namespace` is that of namespaced objects that name none.
pub fn wish(app: &ObjectKey, namespace: &str, renders: &[Arc<Rendered>], types: &Registry) -> Wish {
    let mut wish = Wish {
        key: renders.iter().map(|r| r.key.as_str()).collect::<Vec<_>>().join("+"),
        revisions: renders.iter().map(|r| r.revision.clone()).collect(),
        source_types: renders.iter().map(|r| r.source_type.as_str()).collect(),
        ..Wish::default()
    };
    let mut places: BTreeMap<ObjectId, usize> = BTreeMap::new();
    for manifest in renders.iter().flat_map(|r| r.manifests.iter()) {
        let one = match desired(app, namespace, manifest, types) {
            Ok(Some(one)) => one,
            Ok(None) => continue,
            Err(fault) => {
                wish.faults.push(fault);
                continue;
            }
        };
        match places.get(&one.id) {
            Some(at) => {
                wish.repeated.push(one.id.clone());
                wish.objects[*at] = Arc::new(one);
            }
            None => {
                places.insert(one.id.clone(), wish.objects.len());
                wish.objects.push(Arc::new(one));
            }
        }
    }
    wish
}

fn desired(
    app: &ObjectKey,
    namespace: &str,
    manifest: &Manifest,
    types: &Registry,
) -> Result<Option<Desired>, String> {
    let place = match manifest.line {
        0 => manifest.file.to_string(),
        line => format!("{}:{line}", manifest.file),
    };
    let mut object = manifest.object.clone();
    let annotations = annotations(&object).map_err(|why| format!("{place}: {why}"))?;
    let hooks = hooks(&annotations, &place)?;
    let Some(hooks) = hooks else { return Ok(None) };
    let api_version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let kind = object["kind"].as_str().unwrap_or_default();
    let resource = types.by_api_version(&api_version, kind).cloned();
    let named = !object["metadata"]["name"].as_str().unwrap_or_default().is_empty();
    if !named && (hooks.is_empty() || object["metadata"]["generateName"].is_null()) {
        return Err(format!("{place}: the {kind} has no metadata.name; give it one"));
    }
    let has_namespace = object["metadata"]["namespace"].as_str().is_some_and(|n| !n.is_empty());
    match resource.as_ref().map(|r| r.is_namespaced()) {
        Some(false) => drop(object["metadata"].as_object_mut().map(|m| m.remove("namespace"))),
        // What is not served yet counts as namespaced, as most types are, once its definition says so.
        Some(true) | None if !has_namespace && !namespace.is_empty() => {
            object["metadata"]["namespace"] = json!(namespace);
        }
        Some(true) if !has_namespace => {
            return Err(format!(
                "{place}: the {kind} {} has no namespace; set spec.destination.namespace, or its own",
                object["metadata"]["name"].as_str().unwrap_or_default()
            ));
        }
        Some(true) | None => {}
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    let id = ObjectId::of_value(&object);
    let wave = wave(&annotations, &place)?;
    let list = |name: &str| -> Vec<String> { split(annotations.get(name)) };
    let (policies, options, compare) = (policies(&annotations), list(SYNC_OPTIONS), list(COMPARE_OPTIONS));
    let meta = &mut object["metadata"];
    if !meta["annotations"].is_object() {
        meta["annotations"] = Value::Object(Map::new());
    }
    meta["annotations"][TRACKING_ID] = json!(tracking_id(app, &id));
    let version = api_version.rsplit_once('/').map_or(api_version.clone(), |(_, v)| v.to_owned());
    let hash = hash(&object);
    Ok(Some(Desired {
        id,
        version,
        resource,
        object,
        hash,
        wave,
        hooks,
        policies,
        options,
        compare,
        place,
        is_scaffold: false,
    }))
}

/// A number for a whole value: equal values have equal ones, for as long as the process lives.
pub fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn annotations(object: &Value) -> Result<BTreeMap<String, String>, String> {
    let Some(found) = object["metadata"]["annotations"].as_object() else { return Ok(BTreeMap::new()) };
    let text = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) => Ok((name.clone(), text.to_owned())),
        None => Err(format!("the annotation {name} is {value}, and must be a text; put it in quotes")),
    };
    found.iter().filter(|(_, v)| !v.is_null()).map(text).collect()
}

fn split(list: Option<&String>) -> Vec<String> {
    let words = list.map(String::as_str).unwrap_or_default().split(',');
    words.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

/// The phases of a hook; `None` where it is not to be applied at all (`Skip`).
fn hooks(annotations: &BTreeMap<String, String>, place: &str) -> Result<Option<Vec<Phase>>, String> {
    let words = split(annotations.get(HOOK));
    if words.iter().any(|word| word == "Skip") {
        return Ok(None);
    }
    let mut phases = Vec::new();
    for word in words {
        match Phase::parse(&word) {
            Some(phase) => phases.push(phase),
            // Hooks of deletion are not run by syncs.
            None if word == "PostDelete" || word == "PreDelete" => return Ok(None),
            None => {
                return Err(format!(
                    "{place}: {HOOK} is {word:?}; it can be PreSync, Sync, PostSync, SyncFail or Skip"
                ));
            }
        }
    }
    Ok(Some(phases))
}

fn wave(annotations: &BTreeMap<String, String>, place: &str) -> Result<i64, String> {
    let Some(text) = annotations.get(SYNC_WAVE) else { return Ok(0) };
    text.trim().parse().map_err(|_| format!("{place}: {SYNC_WAVE} is {text:?}, and must be a whole number"))
}

fn policies(annotations: &BTreeMap<String, String>) -> Vec<DeletePolicy> {
    let policy = |word: &String| match word.as_str() {
        "BeforeHookCreation" => Some(DeletePolicy::BeforeHookCreation),
        "HookSucceeded" => Some(DeletePolicy::HookSucceeded),
        "HookFailed" => Some(DeletePolicy::HookFailed),
        _ => None,
    };
    let mut policies: Vec<DeletePolicy> =
        split(annotations.get(HOOK_DELETE_POLICY)).iter().filter_map(policy).collect();
    if policies.is_empty() {
        policies.push(DeletePolicy::BeforeHookCreation);
    }
    policies
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(objects: Vec<Value>) -> Arc<Rendered> {
        let one = |(at, object): (usize, Value)| Manifest {
            object,
            file: "a.yaml".into(),
            line: u32::try_from(at).unwrap() + 1,
        };
        let manifests = Arc::new(objects.into_iter().enumerate().map(one).collect());
        Arc::new(Rendered { revision: "r".to_owned(), key: "k".to_owned(), manifests, ..Rendered::default() })
    }

    fn of(objects: Vec<Value>) -> Wish {
        wish(&ObjectKey::new("argocd", "app"), "n", &[render(objects)], &Registry::builtin())
    }

    #[test]
    fn objects_get_their_namespace_and_owner_and_faults_their_place() {
        let wish = of(vec![
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "status": {}}),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "namespace": "x"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b",
                "annotations": {SYNC_WAVE: "soon"}}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "annotations": {"n": 1}}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}),
            json!({"apiVersion": "e.io/v1", "kind": "Thing", "metadata": {"name": "t"}}),
        ]);
        let names: Vec<String> = wish.objects.iter().map(|d| d.id.to_string()).collect();
        assert_eq!(names, ["ConfigMap n/a", "Namespace a", "Thing.e.io n/t"]);
        assert_eq!(wish.repeated.len(), 1);
        assert_eq!(wish.objects[0].object["metadata"]["annotations"][TRACKING_ID], "app:/ConfigMap:n/a");
        assert!(wish.objects[2].resource.is_none());
        let starts =
            ["a.yaml:3: the ConfigMap has no", "a.yaml:4: argocd.", "a.yaml:5: the annotation n is 1"];
        for (fault, start) in wish.faults.iter().zip(starts) {
            assert!(fault.starts_with(start), "{fault}");
        }
        assert_eq!(wish.faults.len(), 3);
    }

    #[test]
    fn hooks_say_when_they_run_and_when_they_go() {
        let job = |hook: &str, policy: &str| {
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "j-", "annotations":
                {HOOK: hook, HOOK_DELETE_POLICY: policy, SYNC_OPTIONS: "Prune=false, Replace=true"}}})
        };
        let wish = of(vec![job("PreSync,PostSync", "HookSucceeded"), job("Skip", "")]);
        assert_eq!(wish.objects.len(), 1);
        assert_eq!(wish.objects[0].hooks, [Phase::PreSync, Phase::PostSync]);
        assert_eq!(wish.objects[0].policies, [DeletePolicy::HookSucceeded]);
        assert!(wish.objects[0].has("Replace=true"));
        assert_eq!(of(vec![job("Never", "")]).faults.len(), 1);
    }
}
