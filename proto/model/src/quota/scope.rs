//! Which objects a quota is about.

use serde_json::Value;

use crate::resource::{GroupResource, builtin};

/// One condition on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    name: String,
    operator: String,
    values: Vec<String>,
}

fn texts(list: &Value) -> impl Iterator<Item = String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

/// The scopes of a quota's spec, in either form.
pub fn all(spec: &Value) -> Vec<Scope> {
    let named =
        texts(&spec["scopes"]).map(|name| Scope { name, operator: "Exists".to_owned(), values: Vec::new() });
    let expressions = spec["scopeSelector"]["matchExpressions"].as_array().into_iter().flatten();
    let selected = expressions.map(|expression| Scope {
        name: expression["scopeName"].as_str().unwrap_or_default().to_owned(),
        operator: expression["operator"].as_str().unwrap_or_default().to_owned(),
        values: texts(&expression["values"]).collect(),
    });
    named.chain(selected).collect()
}

impl Scope {
    /// Whether an object of a type is in the scope. Scopes are of pods; one is of claims.
    pub fn holds(&self, id: &GroupResource, object: &Value) -> bool {
        let spec = &object["spec"];
        if self.name == "VolumeAttributesClass" {
            return *id == builtin::PERSISTENT_VOLUME_CLAIM.id
                && self.chooses(spec["volumeAttributesClassName"].as_str());
        }
        if *id != builtin::POD.id {
            return false;
        }
        let ends = spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds >= 0);
        let least = object["status"]["qosClass"].as_str() == Some("BestEffort");
        match self.name.as_str() {
            "Terminating" => ends,
            "NotTerminating" => !ends,
            "BestEffort" => least,
            "NotBestEffort" => !least,
            "PriorityClass" => self.chooses(spec["priorityClassName"].as_str()),
            "CrossNamespacePodAffinity" => looks_elsewhere(spec),
            _ => false,
        }
    }

    fn chooses(&self, name: Option<&str>) -> bool {
        let name = name.filter(|name| !name.is_empty());
        let listed = name.is_some_and(|name| self.values.iter().any(|value| value == name));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "DoesNotExist" => name.is_none(),
            _ => name.is_some(),
        }
    }
}

/// Whether a pod's affinity to other pods looks into other namespaces.
fn looks_elsewhere(spec: &Value) -> bool {
    let elsewhere = |term: &Value| {
        term["namespaces"].as_array().is_some_and(|names| !names.is_empty())
            || !term["namespaceSelector"].is_null()
    };
    ["podAffinity", "podAntiAffinity"].iter().any(|side| {
        let side = &spec["affinity"][side];
        let must = side["requiredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        let may = side["preferredDuringSchedulingIgnoredDuringExecution"].as_array().into_iter().flatten();
        must.chain(may.map(|weighted| &weighted["podAffinityTerm"])).any(elsewhere)
    })
}
