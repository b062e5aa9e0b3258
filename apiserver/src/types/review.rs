//! Reviews: questions about who somebody is and what they may do, posted, answered and never stored.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::status::{About, Status};

use super::rules::Faults;
use crate::authn::User;
use crate::authz::{self, Attributes};
use crate::rbac::policy::{Decision, Policy};
use crate::rbac::rule::Rule;
use crate::refusal::{Outcome, bad_request};
use crate::value::{at, list, members, object, text};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// What a question is answered from.
pub struct Asker<'a> {
    /// Who asks.
    pub user: &'a User,
    /// What users may do.
    pub policy: &'a Policy,
}

/// How a question is answered.
#[derive(Clone, Copy)]
pub enum Answer {
    /// From who asks and what users may do, into the question.
    Of(fn(&mut Value, &Asker<'_>) -> Outcome<()>),
    /// By whoever knows tokens.
    Token,
}

/// A type whose objects are questions.
#[derive(Clone, Copy)]
pub struct Review {
    /// API group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Plural.
    pub resource: &'static str,
    /// Singular.
    pub singular: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Whether it is asked in a namespace.
    pub namespaced: bool,
    /// How it is answered.
    pub answer: Answer,
}

const fn review(
    group: &'static str,
    (resource, singular, kind): (&'static str, &'static str, &'static str),
    answer: Answer,
) -> Review {
    Review { group, version: "v1", resource, singular, kind, namespaced: false, answer }
}

/// All reviews.
pub static REVIEWS: &[Review] = &[
    review(
        AUTHENTICATION,
        ("selfsubjectreviews", "selfsubjectreview", "SelfSubjectReview"),
        Answer::Of(who_am_i),
    ),
    review(AUTHENTICATION, ("tokenreviews", "tokenreview", "TokenReview"), Answer::Token),
    Review {
        namespaced: true,
        ..review(
            AUTHORIZATION,
            ("localsubjectaccessreviews", "localsubjectaccessreview", "LocalSubjectAccessReview"),
            Answer::Of(may_they_here),
        )
    },
    review(
        AUTHORIZATION,
        ("selfsubjectaccessreviews", "selfsubjectaccessreview", "SelfSubjectAccessReview"),
        Answer::Of(may_i),
    ),
    review(
        AUTHORIZATION,
        ("selfsubjectrulesreviews", "selfsubjectrulesreview", "SelfSubjectRulesReview"),
        Answer::Of(what_may_i),
    ),
    review(
        AUTHORIZATION,
        ("subjectaccessreviews", "subjectaccessreview", "SubjectAccessReview"),
        Answer::Of(may_they),
    ),
];

/// A user as reviews tell of them.
pub fn told(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// The refusal of a review whose fields are at fault.
pub fn refuse(kind: &str, group: &str, faults: &[FieldError]) -> Outcome<()> {
    if faults.is_empty() {
        return Ok(());
    }
    Err(Box::new(Status::invalid(About { group, resource: "", kind, name: "" }, faults)))
}

fn who_am_i(review: &mut Value, asker: &Asker<'_>) -> Outcome<()> {
    object(review).insert("status".to_owned(), json!({"userInfo": told(asker.user)}));
    Ok(())
}

fn may_i(review: &mut Value, asker: &Asker<'_>) -> Outcome<()> {
    refuse("SelfSubjectAccessReview", AUTHORIZATION, &asked_once(review))?;
    answer(review, asker.user, asker.policy);
    Ok(())
}

fn may_they(review: &mut Value, asker: &Asker<'_>) -> Outcome<()> {
    let mut faults = asked_once(review);
    faults.extend(somebody(review));
    refuse("SubjectAccessReview", AUTHORIZATION, &faults)?;
    answer(review, &meant(review), asker.policy);
    Ok(())
}

fn may_they_here(review: &mut Value, asker: &Asker<'_>) -> Outcome<()> {
    let mut faults = asked_once(review);
    faults.extend(somebody(review));
    let spec = FieldPath::new("spec");
    if let Some(other) = at(review, &["spec", "nonResourceAttributes"]).filter(|asked| !asked.is_null()) {
        let detail = "disallowed on this kind of request";
        faults.push(FieldError::invalid(spec.child("nonResourceAttributes"), other, detail));
    }
    let asked = text(review, &["spec", "resourceAttributes", "namespace"]);
    if asked != text(review, &["metadata", "namespace"]) {
        let path = spec.child("resourceAttributes").child("namespace");
        faults.push(FieldError::invalid(path, asked, "must match metadata.namespace"));
    }
    refuse("LocalSubjectAccessReview", AUTHORIZATION, &faults)?;
    answer(review, &meant(review), asker.policy);
    Ok(())
}

/// Faults of a question that is not about exactly one thing.
fn asked_once(review: &Value) -> Faults {
    let there = |part: &str| at(review, &["spec", part]).is_some_and(|asked| asked.as_object().is_some());
    let path = |part: &str| FieldPath::new("spec").child(part);
    match (there("resourceAttributes"), there("nonResourceAttributes")) {
        (true, true) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            let value = at(review, &["spec", "nonResourceAttributes"]);
            vec![FieldError::invalid(path("nonResourceAttributes"), value, detail)]
        }
        (false, false) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            vec![FieldError::invalid(path("resourceAttributes"), Value::Null, detail)]
        }
        _ => Vec::new(),
    }
}

/// The fault of a question about nobody.
fn somebody(review: &Value) -> Option<FieldError> {
    let nobody = text(review, &["spec", "user"]).is_empty() && list(review, &["spec", "groups"]).is_empty();
    let path = FieldPath::new("spec").child("user");
    nobody.then(|| FieldError::invalid(path, "", "at least one of user or group must be specified"))
}

/// Whom a question is about, in just the groups that it names.
fn meant(review: &Value) -> User {
    let words = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = members(review, &["spec", "extra"]).into_iter().flatten();
    User {
        name: text(review, &["spec", "user"]).to_owned(),
        uid: text(review, &["spec", "uid"]).to_owned(),
        groups: at(review, &["spec", "groups"]).map(words).unwrap_or_default(),
        extra: extra.map(|(key, values)| (key.clone(), words(values))).collect(),
    }
}

fn answer(review: &mut Value, who: &User, policy: &Policy) {
    let decision = match at(review, &["spec", "resourceAttributes"]).filter(|asked| asked.is_object()) {
        Some(asked) => {
            let part = |name: &str| text(asked, &[name]);
            let attributes = Attributes {
                verb: part("verb"),
                group: part("group"),
                resource: part("resource"),
                subresource: part("subresource"),
                namespace: part("namespace"),
                name: part("name"),
            };
            policy.decide(who, &attributes)
        }
        None => {
            let part = |name: &str| text(review, &["spec", "nonResourceAttributes", name]);
            policy.decide_path(who, part("verb"), part("path"))
        }
    };
    let Decision { allowed, reason } = decision;
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = json!(reason);
    }
    object(review).insert("status".to_owned(), status);
}

fn what_may_i(review: &mut Value, asker: &Asker<'_>) -> Outcome<()> {
    let namespace = text(review, &["spec", "namespace"]).to_owned();
    if namespace.is_empty() {
        return Err(bad_request("no namespace on request"));
    }
    let rules = asker.policy.rules(asker.user, &namespace);
    let (paths, resources): (Vec<&Rule>, Vec<&Rule>) = rules.iter().partition(|rule| !rule.urls.is_empty());
    let fixed = authz::granted(asker.user, &namespace).into_iter();
    let fixed =
        fixed.map(|(verbs, resources)| json!({"apiGroups": ["*"], "resources": resources, "verbs": verbs}));
    let status = json!({
        "incomplete": false,
        "resourceRules": fixed.chain(resources.into_iter().map(Rule::write)).collect::<Vec<_>>(),
        "nonResourceRules": paths.into_iter().map(Rule::write).collect::<Vec<_>>(),
    });
    object(review).insert("status".to_owned(), status);
    Ok(())
}
