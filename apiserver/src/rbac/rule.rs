//! One rule of a role: what it says, and whether it covers what is asked for. Knows no roles.

use serde_json::{Value, json};

use crate::authz::Attributes;
use crate::value::list;

/// Stands for everything of its kind.
pub const ALL: &str = "*";

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Verbs, or `*`.
    pub verbs: Vec<String>,
    /// API groups (empty text for core), or `*`.
    pub groups: Vec<String>,
    /// `resource`, `resource/subresource`, `*/subresource` or `*`.
    pub resources: Vec<String>,
    /// The only names it is about; none means all.
    pub names: Vec<String>,
    /// Paths outside the resources, a last `*` standing for any end.
    pub urls: Vec<String>,
}

impl Rule {
    /// Reads a rule as a role has it.
    pub fn read(rule: &Value) -> Self {
        let words =
            |name: &str| list(rule, &[name]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Self {
            verbs: words("verbs"),
            groups: words("apiGroups"),
            resources: words("resources"),
            names: words("resourceNames"),
            urls: words("nonResourceURLs"),
        }
    }

    /// Reads all rules of a role.
    pub fn read_all(role: &Value) -> Vec<Self> {
        list(role, &["rules"]).iter().map(Self::read).collect()
    }

    /// The rule as a role has it: empty lists are left out.
    pub fn write(&self) -> Value {
        let mut rule = json!({"verbs": self.verbs});
        let parts = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        for (name, words) in parts.into_iter().filter(|(_, words)| !words.is_empty()) {
            rule[name] = json!(words);
        }
        rule
    }

    /// Whether it allows an access to resources.
    pub fn allows(&self, asked: &Attributes<'_>) -> bool {
        has(&self.verbs, asked.verb)
            && has(&self.groups, asked.group)
            && self.resources.iter().any(|resource| is_resource(resource, asked.resource, asked.subresource))
            && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
    }

    /// Whether it allows an access to a path.
    pub fn allows_path(&self, verb: &str, path: &str) -> bool {
        has(&self.verbs, verb) && self.urls.iter().any(|url| is_url(url, path))
    }
}

/// Whether words hold this one or the one for all.
pub fn has(words: &[String], word: &str) -> bool {
    words.iter().any(|known| known == ALL || known == word)
}

/// Whether the resource of a rule means this one.
fn is_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    match rule.split_once('/') {
        _ if rule == ALL => true,
        None => subresource.is_empty() && rule == resource,
        Some((of, sub)) => !subresource.is_empty() && sub == subresource && (of == ALL || of == resource),
    }
}

/// Whether the path of a rule means this one.
pub fn is_url(rule: &str, path: &str) -> bool {
    rule == path || rule.strip_suffix('*').is_some_and(|start| path.starts_with(start))
}
