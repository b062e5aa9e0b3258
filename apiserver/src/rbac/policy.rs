//! The compiled policy: who holds which rules where. It never changes; where roles or bindings do, a new one takes its
//! place, and the two share all that is the same. Decides every request; knows no objects.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use imbl::HashMap;

use super::cover;
use super::rule::Rule;
use crate::authn::{SERVICE_ACCOUNT_PREFIX, User};
use crate::authz::{self, Attributes};
use crate::refusal::Refusal;

/// What kind of subject holds a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A user by name; service accounts too, by the name of their user.
    User,
    /// A group.
    Group,
}

impl Subject {
    /// Under which key the grants of a subject in a namespace (or, empty, everywhere) are found.
    pub fn key(self, name: &str, namespace: &str) -> String {
        let kind = match self {
            Self::User => 'u',
            Self::Group => 'g',
        };
        format!("{kind}{namespace}/{name}")
    }
}

/// A role by its place: no namespace means a cluster role.
pub type RoleKey = (String, String);

/// A binding, as seen from one of its subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The binding's namespace; empty for cluster role bindings.
    pub namespace: String,
    /// The binding's name.
    pub binding: String,
    /// The role that it gives.
    pub role: RoleKey,
}

impl Grant {
    fn role_kind(&self) -> &'static str {
        if self.role.0.is_empty() { "ClusterRole" } else { "Role" }
    }
}

/// A grant with the rules behind it.
#[derive(Clone, Copy, Debug)]
pub struct Held<'a> {
    grant: &'a Grant,
    subject: Subject,
    who: &'a str,
    /// The rules; `None` where the role is not there.
    pub rules: Option<&'a [Rule]>,
}

impl fmt::Display for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Grant { namespace, binding, role } = self.grant;
        let (kind, name) = match (self.subject, self.who.strip_prefix(SERVICE_ACCOUNT_PREFIX)) {
            (Subject::User, Some(account)) => ("ServiceAccount", account.replacen(':', "/", 1)),
            (Subject::User, None) => ("User", self.who.to_owned()),
            (Subject::Group, _) => ("Group", self.who.to_owned()),
        };
        let role_kind = self.grant.role_kind();
        match namespace.as_str() {
            "" => write!(
                f,
                "RBAC: allowed by ClusterRoleBinding \"{binding}\" of {role_kind} \"{}\" to {kind} \"{name}\"",
                role.1
            ),
            namespace => write!(
                f,
                "RBAC: allowed by RoleBinding \"{binding}/{namespace}\" of {role_kind} \"{}\" to {kind} \"{name}\"",
                role.1
            ),
        }
    }
}

/// What was decided, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why it is; or which roles are missing that might have allowed it.
    pub reason: String,
}

/// Who holds which rules where.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Rules of roles.
    pub(super) roles: HashMap<RoleKey, Arc<[Rule]>>,
    /// What subjects hold, by `Subject::key`.
    pub(super) grants: HashMap<String, Arc<[Grant]>>,
}

impl Policy {
    /// All that a user holds in a namespace, or (empty) everywhere.
    pub fn held<'a>(&'a self, who: &'a User, namespace: &'a str) -> impl Iterator<Item = Held<'a>> {
        let places = [Some(""), (!namespace.is_empty()).then_some(namespace)].into_iter().flatten();
        let subjects = move || {
            let groups = who.groups.iter().map(|group| (Subject::Group, group.as_str()));
            std::iter::once((Subject::User, who.name.as_str())).chain(groups)
        };
        let grants = places.flat_map(move |place| {
            subjects().filter_map(move |(subject, name)| {
                self.grants.get(&subject.key(name, place)).map(|grants| (subject, name, grants))
            })
        });
        grants.flat_map(move |(subject, who, grants)| {
            grants.iter().map(move |grant| {
                let rules = self.roles.get(&grant.role).map(AsRef::as_ref);
                Held { grant, subject, who, rules }
            })
        })
    }

    /// Whether a user may do something with resources.
    pub fn allows(&self, who: &User, asked: &Attributes<'_>) -> bool {
        authz::allows(who, asked) || self.granting(who, asked).is_some()
    }

    fn granting<'a>(&'a self, who: &'a User, asked: &Attributes<'a>) -> Option<Held<'a>> {
        let mut held = self.held(who, asked.namespace);
        held.find(|held| held.rules.unwrap_or_default().iter().any(|rule| rule.allows(asked)))
    }

    /// Whether a user may use a path outside the resources.
    pub fn allows_path(&self, who: &User, verb: &str, path: &str) -> bool {
        who.is_in(authz::MASTERS) || self.granting_path(who, verb, path).is_some()
    }

    fn granting_path<'a>(&'a self, who: &'a User, verb: &str, path: &str) -> Option<Held<'a>> {
        let allows = |rule: &Rule| rule.allows_path(verb, path);
        self.held(who, "").find(|held| held.rules.unwrap_or_default().iter().any(allows))
    }

    /// Whether a user may do something with resources, and why.
    pub fn decide(&self, who: &User, asked: &Attributes<'_>) -> Decision {
        let granting = self.granting(who, asked).map(|held| held.to_string());
        self.decision(who, asked.namespace, authz::allows(who, asked), granting)
    }

    /// Whether a user may use a path outside the resources, and why.
    pub fn decide_path(&self, who: &User, verb: &str, path: &str) -> Decision {
        let granting = self.granting_path(who, verb, path).map(|held| held.to_string());
        self.decision(who, "", who.is_in(authz::MASTERS), granting)
    }

    fn decision(&self, who: &User, namespace: &str, fixed: bool, granting: Option<String>) -> Decision {
        match granting {
            Some(reason) => Decision { allowed: true, reason },
            None if fixed => Decision { allowed: true, reason: "allowed by a rule of the server".to_owned() },
            None => Decision { allowed: false, reason: self.gaps(who, namespace) },
        }
    }

    /// Which roles are bound to a user and are not there; empty where none.
    fn gaps(&self, who: &User, namespace: &str) -> String {
        let missing: BTreeSet<String> = self
            .held(who, namespace)
            .filter(|held| held.rules.is_none())
            .map(|held| {
                let kind = held.grant.role_kind().to_lowercase();
                format!("{kind}.rbac.authorization.k8s.io \"{}\" not found", held.grant.role.1)
            })
            .collect();
        match missing.len() {
            0 => String::new(),
            1 => format!("RBAC: {}", missing.into_iter().collect::<String>()),
            _ => format!("RBAC: [{}]", missing.into_iter().collect::<Vec<_>>().join(", ")),
        }
    }

    /// The refusal of something that is not allowed.
    pub fn denied(&self, who: &User, asked: &Attributes<'_>) -> Refusal {
        let mut status = authz::denied(who, asked);
        let gaps = self.gaps(who, asked.namespace);
        if !gaps.is_empty() {
            status.message = format!("{}: {gaps}", status.message);
        }
        status
    }

    /// Checks that a user may do something with resources.
    ///
    /// # Errors
    /// `Forbidden`, in the words that clients know.
    pub fn check(&self, who: &User, asked: &Attributes<'_>) -> Result<(), Refusal> {
        if self.allows(who, asked) { Ok(()) } else { Err(self.denied(who, asked)) }
    }

    /// All rules that a user holds in a namespace, each once.
    pub fn rules(&self, who: &User, namespace: &str) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        for held in self.held(who, namespace) {
            for rule in held.rules.unwrap_or_default() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        rules
    }

    /// Why a user may not grant these rules in a namespace (empty: everywhere): they do not hold all of them.
    pub fn escalation(&self, who: &User, namespace: &str, wanted: &[Rule]) -> Option<String> {
        let missing = cover::missing(&self.rules(who, namespace), wanted);
        if missing.is_empty() {
            return None;
        }
        let groups: Vec<String> = who.groups.iter().map(|group| format!("{group:?}")).collect();
        let mut why = format!(
            "user {:?} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
            who.name,
            groups.join(" "),
            cover::told(&missing).join("\n")
        );
        let gaps = self.gaps(who, namespace);
        if let Some(gaps) = gaps.strip_prefix("RBAC: ") {
            why.push_str(&format!("; resolution errors: [{}]", gaps.trim_matches(['[', ']'])));
        }
        Some(why)
    }
}
