//! Which writes a policy or a webhook is about: rules and selectors, read once. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use strata_model::resource::builtin;
use strata_model::selector::Selector;

use super::asked::{Asked, labels};
use crate::value::{at, list, text};

/// Rules and selectors.
#[derive(Debug, Default)]
pub struct Matching {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    namespaces: Option<Selector>,
    objects: Option<Selector>,
    equivalent: bool,
}

#[derive(Debug)]
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<(String, String)>,
    names: Vec<String>,
    scope: String,
}

fn words(rule: &Value, field: &str) -> Vec<String> {
    list(rule, &[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn has(words: &[String], word: &str) -> bool {
    words.iter().any(|own| own == "*" || own == word)
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let parts = |resource: String| match resource.split_once('/') {
            Some((resource, part)) => (resource.to_owned(), part.to_owned()),
            None => (resource, String::new()),
        };
        Self {
            operations: words(rule, "operations"),
            groups: words(rule, "apiGroups"),
            versions: words(rule, "apiVersions"),
            resources: words(rule, "resources").into_iter().map(parts).collect(),
            names: words(rule, "resourceNames"),
            scope: text(rule, &["scope"]).to_owned(),
        }
    }

    fn matches(&self, asked: &Asked<'_>, equivalent: bool) -> bool {
        let own = asked.resource;
        let resource = |(resource, part): &(String, String)| {
            (resource == "*" || *resource == *own.id.resource) && (part == "*" || part == asked.subresource)
        };
        let version = has(&self.versions, &own.version)
            || (equivalent && asked.versions.iter().any(|version| has(&self.versions, version)));
        let inside = !asked.namespace.is_empty() && own.id != builtin::NAMESPACE.id;
        let scope = match self.scope.as_str() {
            "Namespaced" => inside,
            "Cluster" => !inside,
            _ => true,
        };
        has(&self.operations, asked.operation.as_str())
            && has(&self.groups, &own.id.group)
            && version
            && self.resources.iter().any(resource)
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
            && scope
    }
}

impl Matching {
    /// Reads the rules of a webhook, or (other members) those of a policy or binding.
    pub fn read(from: &Value) -> Self {
        let rules = |field: &str| list(from, &[field]).iter().map(Rule::read).collect::<Vec<_>>();
        let selector = |field: &str| {
            let body = at(from, &[field]).filter(|body| !body.is_null())?;
            let body = serde_json::from_value::<LabelSelector>(body.clone()).ok()?;
            Selector::from_body(&body).ok().filter(|selector| !selector.is_everything())
        };
        let mut own = rules("rules");
        own.extend(rules("resourceRules"));
        Self {
            rules: own,
            excluded: rules("excludeResourceRules"),
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
            equivalent: text(from, &["matchPolicy"]) != "Exact",
        }
    }

    /// Whether a write is matched. What has no rules is about every write, as far as its selectors go.
    pub fn narrows(&self, asked: &Asked<'_>) -> bool {
        self.rules.is_empty() && self.selects(asked) || self.matches(asked)
    }

    /// Whether a write is matched by a rule, and selected.
    pub fn matches(&self, asked: &Asked<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(asked, self.equivalent)) && self.selects(asked)
    }

    fn selects(&self, asked: &Asked<'_>) -> bool {
        if self.excluded.iter().any(|rule| rule.matches(asked, self.equivalent)) {
            return false;
        }
        let here = match (&self.namespaces, &asked.namespace_labels) {
            (Some(selector), Some(labels)) => selector.matches(labels),
            _ => true,
        };
        let this = self.objects.as_ref().is_none_or(|selector| {
            [asked.object, asked.old].into_iter().flatten().any(|object| selector.matches(&labels(object)))
        });
        here && this
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::admission::operation::Operation;
    use crate::authn::User;

    fn matches(matching: Value, subresource: &str, operation: Operation, object: &Value) -> bool {
        let user = User::anonymous();
        let labels = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
        let asked = Asked {
            operation,
            resource: &builtin::DEPLOYMENT,
            versions: &["v1", "v1beta1"],
            subresource,
            namespace: "n",
            name: "d",
            user: &user,
            object: Some(object),
            old: None,
            namespace_labels: Some(labels.into()),
            dry_run: false,
        };
        Matching::read(&matching).matches(&asked)
    }

    #[test]
    fn rules_match_by_each_of_their_parts() {
        let rule = |change: Value| {
            let mut rule = json!({"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                "resources": ["deployments"]});
            strata_model::merge::apply(&mut rule, &change);
            json!({"rules": [rule]})
        };
        let object = json!({"metadata": {"labels": {"app": "x"}}});
        let create = |matching: Value| matches(matching, "", Operation::Create, &object);
        for (change, holds) in [
            (json!({}), true),
            (json!({"operations": ["UPDATE"]}), false),
            (json!({"operations": ["*"]}), true),
            (json!({"apiGroups": [""]}), false),
            (json!({"apiVersions": ["v1beta1"]}), true),
            (json!({"apiVersions": ["v9"]}), false),
            (json!({"resources": ["*"]}), true),
            (json!({"resources": ["*/*"]}), true),
            (json!({"resources": ["deployments/scale"]}), false),
            (json!({"resourceNames": ["other"]}), false),
            (json!({"resourceNames": ["d"]}), true),
            (json!({"scope": "Cluster"}), false),
            (json!({"scope": "Namespaced"}), true),
        ] {
            assert_eq!(create(rule(change.clone())), holds, "{change}");
        }
        let scale = |resource: &str| {
            matches(rule(json!({"resources": [resource]})), "scale", Operation::Create, &object)
        };
        assert!(scale("deployments/*") && scale("deployments/scale") && scale("*/scale"));
        assert!(!scale("*") && !scale("deployments"));
        let with = |field: &str, value: Value| {
            let mut matching = rule(json!({}));
            matching[field] = value;
            create(matching)
        };
        assert!(with("namespaceSelector", json!({"matchLabels": {"team": "a"}})));
        assert!(!with("namespaceSelector", json!({"matchLabels": {"team": "b"}})));
        assert!(with("objectSelector", json!({"matchLabels": {"app": "x"}})));
        assert!(!with("objectSelector", json!({"matchLabels": {"app": "y"}})));
        let excluded =
            json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]);
        assert!(!with("excludeResourceRules", excluded));
        let mut exact = rule(json!({"apiVersions": ["v1beta1"]}));
        exact["matchPolicy"] = json!("Exact");
        assert!(!create(exact));
    }
}
