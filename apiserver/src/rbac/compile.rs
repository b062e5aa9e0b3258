//! From roles and bindings as they come and go to the policy: each change touches what it is about, and nothing else.
//! Knows objects as values, and nothing of where they come from.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use strata_model::selector::Selector;

use super::policy::{Grant, Policy, RoleKey, Subject};
use super::rule::Rule;
use crate::authn::service_account_name;
use crate::value::{list, members, text};

/// What of a cluster role matters to others.
#[derive(Debug)]
struct ClusterRole {
    labels: BTreeMap<String, String>,
    /// Its rules as stored.
    rules: Vec<Rule>,
    /// Whose rules it gathers; none where it gathers none.
    gathers: Vec<Selector>,
}

/// Holds the policy to the roles and bindings that there are.
#[derive(Debug, Default)]
pub struct Compiler {
    policy: Policy,
    cluster_roles: BTreeMap<String, ClusterRole>,
    /// By binding (namespace and name), the keys of its subjects.
    subjects: BTreeMap<(String, String), Vec<String>>,
    /// Whether cluster roles changed since rules were gathered.
    stale: bool,
}

impl Compiler {
    /// The policy as it is now.
    pub fn policy(&self) -> Policy {
        self.policy.clone()
    }

    /// A role that is there now; without a namespace, a cluster role.
    pub fn put_role(&mut self, namespace: &str, name: &str, role: &Value) {
        let rules = Rule::read_all(role);
        if namespace.is_empty() {
            let labels = members(role, &["metadata", "labels"]).into_iter().flatten();
            let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
            let selectors = list(role, &["aggregationRule", "clusterRoleSelectors"]).iter();
            let gathers = selectors.filter_map(|selector| {
                let body: LabelSelector = serde_json::from_value(selector.clone()).ok()?;
                Selector::from_body(&body).ok()
            });
            let known = ClusterRole {
                labels: labels.filter_map(text).collect(),
                rules: rules.clone(),
                gathers: gathers.collect(),
            };
            self.cluster_roles.insert(name.to_owned(), known);
            self.stale = true;
        }
        self.policy.roles.insert((namespace.to_owned(), name.to_owned()), rules.into());
    }

    /// A role that is gone.
    pub fn remove_role(&mut self, namespace: &str, name: &str) {
        if namespace.is_empty() && self.cluster_roles.remove(name).is_some() {
            self.stale = true;
        }
        self.policy.roles.remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// A binding that is there now; without a namespace, a cluster role binding.
    pub fn put_binding(&mut self, namespace: &str, name: &str, binding: &Value) {
        self.remove_binding(namespace, name);
        let place = if text(binding, &["roleRef", "kind"]) == "Role" { namespace } else { "" };
        let role: RoleKey = (place.to_owned(), text(binding, &["roleRef", "name"]).to_owned());
        let grant = Grant { namespace: namespace.to_owned(), binding: name.to_owned(), role };
        let mut keys: Vec<String> = list(binding, &["subjects"])
            .iter()
            .filter_map(|subject| {
                let who = text(subject, &["name"]);
                match text(subject, &["kind"]) {
                    "User" => Some(Subject::User.key(who, namespace)),
                    "Group" => Some(Subject::Group.key(who, namespace)),
                    "ServiceAccount" => {
                        let own = text(subject, &["namespace"]);
                        let account = service_account_name(if own.is_empty() { namespace } else { own }, who);
                        Some(Subject::User.key(&account, namespace))
                    }
                    _ => None,
                }
            })
            .collect();
        keys.sort();
        keys.dedup();
        for key in &keys {
            let mut grants: Vec<Grant> = self.grants_of(key);
            grants.push(grant.clone());
            self.policy.grants.insert(key.clone(), grants.into());
        }
        self.subjects.insert((namespace.to_owned(), name.to_owned()), keys);
    }

    /// A binding that is gone.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let keys = self.subjects.remove(&(namespace.to_owned(), name.to_owned()));
        for key in keys.unwrap_or_default() {
            let mut grants = self.grants_of(&key);
            grants.retain(|grant| grant.namespace != namespace || grant.binding != name);
            match grants.is_empty() {
                true => drop(self.policy.grants.remove(&key)),
                false => drop(self.policy.grants.insert(key, grants.into())),
            }
        }
    }

    fn grants_of(&self, key: &str) -> Vec<Grant> {
        self.policy.grants.get(key).map(|grants| grants.to_vec()).unwrap_or_default()
    }

    /// Has the cluster roles that gather the rules of others hold just these; tells which of them are stored with other
    /// rules, and what they should be.
    pub fn gather(&mut self) -> Vec<(String, Vec<Rule>)> {
        if !std::mem::take(&mut self.stale) {
            return Vec::new();
        }
        let gathering = || self.cluster_roles.iter().filter(|(_, role)| !role.gathers.is_empty());
        let mut found: BTreeMap<&String, Vec<Rule>> =
            gathering().map(|(name, _)| (name, Vec::new())).collect();
        // One that gathers may itself be gathered; rules only come, so this ends.
        loop {
            let mut grew = false;
            for (name, role) in gathering() {
                let mut rules = Vec::new();
                for (other, from) in self.cluster_roles.iter().filter(|(other, _)| *other != name) {
                    if role.gathers.iter().any(|selector| selector.matches(&from.labels)) {
                        for rule in found.get(other).unwrap_or(&from.rules) {
                            if !rules.contains(rule) {
                                rules.push(rule.clone());
                            }
                        }
                    }
                }
                grew |= rules.len() > found.get(name).map_or(0, Vec::len);
                found.insert(name, rules);
            }
            if !grew {
                break;
            }
        }
        let found: Vec<(String, Vec<Rule>)> =
            found.into_iter().map(|(name, rules)| (name.clone(), rules)).collect();
        for (name, rules) in &found {
            let rules: Arc<[Rule]> = rules.clone().into();
            self.policy.roles.insert((String::new(), name.clone()), rules);
        }
        let differs = |(name, rules): &(String, Vec<Rule>)| {
            self.cluster_roles.get(name).is_some_and(|role| role.rules != *rules)
        };
        found.into_iter().filter(differs).collect()
    }
}
