//! What a request is once its facade has read it: who asks, about what, and how.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use strata_model::field::{FieldError, FieldPath};
use strata_model::resource::Verb;
use strata_model::selector::FieldSelector;

use crate::authn::User;
use crate::authz::{self, Attributes};
use crate::fence::Fence;
use crate::history::cause::Cause;
use crate::rbac::policy::Policy;
use crate::refusal::{Outcome, about, invalid_options, method_not_allowed};
use crate::types::catalogue::Served;

/// Longest name of a field manager.
const MAX_FIELD_MANAGER: usize = 128;
/// Longest reason a client may give for a write, in bytes.
const MAX_CAUSE: usize = 1024;

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user.
    pub user: Arc<User>,
    /// The id of the request, as told to the client and kept in history.
    pub request: String,
    /// The client's program, which manages what it writes where a write names no manager.
    pub agent: String,
    /// What users may do, as it was when the request came.
    pub policy: Arc<Policy>,
    /// The term of a lease that its writes are fenced with, if it named one.
    pub fence: Option<Fence>,
}

impl Caller {
    /// The server itself.
    pub fn server(task: &str) -> Self {
        let user = User::known("system:apiserver", "", vec![authz::MASTERS.to_owned()]);
        Self {
            user: Arc::new(user),
            request: task.to_owned(),
            agent: "strata-apiserver".to_owned(),
            policy: Arc::default(),
            fence: None,
        }
    }

    /// The program that a `User-Agent` header tells of: what stands before its first `/`.
    pub fn program(user_agent: &str) -> String {
        let name = user_agent.split('/').next().unwrap_or_default();
        let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_FIELD_MANAGER / 4).collect();
        if name.is_empty() { "unknown".to_owned() } else { name }
    }
}

/// What a request is about.
#[derive(Clone)]
pub struct Target {
    /// The type.
    pub served: Arc<Served>,
    /// Namespace; empty for cluster-scoped types and for all namespaces.
    pub namespace: String,
    /// Name; empty for collections.
    pub name: String,
    /// Subresource, or empty.
    pub subresource: String,
}

impl Target {
    /// Checks that the verb is offered at this place, and that the user may use it there.
    pub fn admit(&self, caller: &Caller, verb: Verb) -> Outcome<()> {
        self.admit_named(caller, verb, &self.name)
    }

    /// The same for a collection: where its field selector asks for one name, the user may need rights on that alone.
    pub fn admit_selected(&self, caller: &Caller, verb: Verb, fields: &str) -> Outcome<()> {
        match self.name.is_empty() {
            true => self.admit_named(caller, verb, &single_name(fields)),
            false => self.admit(caller, verb),
        }
    }

    fn admit_named(&self, caller: &Caller, verb: Verb, name: &str) -> Outcome<()> {
        let resource = &self.served.resource;
        let verbs = match self.subresource.as_str() {
            "" => resource.verbs,
            sub => resource.subresource(sub).map_or(&[][..], |s| s.verbs),
        };
        let asked = Attributes {
            verb: verb.as_str(),
            group: &resource.id.group,
            resource: &resource.id.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name,
        };
        caller.policy.check(&caller.user, &asked)?;
        if verbs.contains(&verb) { Ok(()) } else { Err(method_not_allowed()) }
    }
}

impl Target {
    /// Checks, with the object in hand, what its place alone does not tell: whether it is the user's own.
    pub fn admit_object(&self, caller: &Caller, verb: &str, name: &str, object: &Value) -> Outcome<()> {
        let resource = &self.served.resource;
        match authz::owns(&caller.user, &resource.id, name, object) {
            true => Ok(()),
            false => Err(authz::not_own(&caller.user, about(resource, name), verb)),
        }
    }
}

/// The one name that a field selector asks for; empty where it asks for none, or cannot be read.
pub fn single_name(fields: &str) -> String {
    let parsed = FieldSelector::parse(fields).unwrap_or_default();
    let named = parsed.requirements.into_iter().find(|r| r.equal && r.field == "metadata.name");
    named.map(|requirement| requirement.value).unwrap_or_default()
}

/// What to do with unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drop them.
    Ignore,
    /// Drop them and say so.
    #[default]
    Warn,
    /// Refuse them.
    Strict,
}

/// How a write is wanted.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Everything but the storing.
    pub dry_run: bool,
    /// What to do with unknown fields.
    pub validation: FieldValidation,
    /// Who manages what is written; empty where the request does not say.
    pub manager: String,
    /// Server-side apply only: take what others own.
    pub force: bool,
    /// Why, in the writer's words.
    pub cause: String,
}

impl WriteOptions {
    /// Reads the options as text; `kind` is the kind of options in refusals.
    pub fn parse(kind: &str, dry_run: bool, manager: &str, validation: &str, cause: &str) -> Outcome<Self> {
        let mut faults = Vec::new();
        if manager.len() > MAX_FIELD_MANAGER || manager.chars().any(|c| c.is_control()) {
            let detail = format!("must be at most {MAX_FIELD_MANAGER} printable characters");
            faults.push(FieldError::invalid(FieldPath::new("fieldManager"), manager, detail));
        }
        let validation = match validation {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let path = FieldPath::new("fieldValidation");
                faults.push(FieldError::not_supported(path, other, &["Ignore", "Strict", "Warn"]));
                FieldValidation::Warn
            }
        };
        if cause.len() > MAX_CAUSE {
            faults.push(FieldError::too_long(FieldPath::new("cause"), MAX_CAUSE));
        }
        if faults.is_empty() {
            let (manager, cause) = (manager.to_owned(), cause.to_owned());
            Ok(Self { dry_run, validation, manager, force: false, cause })
        } else {
            Err(invalid_options(kind, &faults))
        }
    }

    /// Refuses that force is spoken of for what is no apply.
    pub fn check_force(said: bool, is_apply: bool) -> Outcome<()> {
        if !said || is_apply {
            return Ok(());
        }
        let detail = "may not be specified for non-apply patch";
        Err(invalid_options("PatchOptions", &[FieldError::forbidden(FieldPath::new("force"), detail)]))
    }
}

/// What a write came to.
#[derive(Clone, Debug)]
pub struct Written {
    /// The object as stored, or the Status of a subresource that only acts.
    pub bytes: Bytes,
    /// Whether anything was written.
    pub changed: bool,
    /// Whether the object is new.
    pub created: bool,
    /// Sentences the user should see.
    pub warnings: Vec<String>,
}

/// What a write does, as history tells it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deed<'a> {
    /// `create`, `update`, `apply`, ...
    pub verb: &'a str,
    /// The subresource that is written through, or empty.
    pub subresource: &'a str,
    /// Who manages what is written; empty where the request does not say.
    pub manager: &'a str,
    /// Why, in the writer's words; may be empty.
    pub why: &'a str,
}

impl<'a> Deed<'a> {
    /// A write with these options.
    pub fn new(verb: &'a str, subresource: &'a str, options: &'a WriteOptions) -> Self {
        Self { verb, subresource, manager: &options.manager, why: &options.cause }
    }

    /// A deletion.
    pub fn delete(why: &'a str) -> Self {
        Self { verb: "delete", why, ..Self::default() }
    }

    /// The cause of its transaction, as history keeps it.
    pub fn cause(&self, caller: &Caller) -> Bytes {
        let manager = if self.manager.is_empty() { caller.agent.as_str() } else { self.manager };
        let cause = Cause {
            user: caller.user.name.clone(),
            verb: self.verb.to_owned(),
            subresource: self.subresource.to_owned(),
            manager: manager.to_owned(),
            request: caller.request.clone(),
            why: self.why.to_owned(),
        };
        cause.to_bytes()
    }
}
