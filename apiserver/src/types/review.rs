//! Reviews: questions about oneself that are posted, answered and never stored.

use serde_json::{Value, json};

use crate::authn::User;
use crate::authz::{self, Attributes};
use crate::value::{at, object, text};

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
    /// Fills in the answer.
    pub answer: fn(&mut Value, &User),
}

/// All reviews.
pub static REVIEWS: &[Review] = &[
    Review {
        group: "authentication.k8s.io",
        version: "v1",
        resource: "selfsubjectreviews",
        singular: "selfsubjectreview",
        kind: "SelfSubjectReview",
        answer: who_am_i,
    },
    Review {
        group: "authorization.k8s.io",
        version: "v1",
        resource: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        kind: "SelfSubjectAccessReview",
        answer: may_i,
    },
    Review {
        group: "authorization.k8s.io",
        version: "v1",
        resource: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        kind: "SelfSubjectRulesReview",
        answer: what_may_i,
    },
];

fn who_am_i(review: &mut Value, user: &User) {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    object(review).insert("status".to_owned(), json!({"userInfo": info}));
}

fn may_i(review: &mut Value, user: &User) {
    let allowed = if let Some(asked) = at(review, &["spec", "resourceAttributes"]) {
        let part = |name: &str| text(asked, &[name]);
        let attributes = Attributes {
            verb: part("verb"),
            group: part("group"),
            resource: part("resource"),
            subresource: part("subresource"),
            namespace: part("namespace"),
            name: part("name"),
        };
        authz::allows(user, &attributes)
    } else {
        authz::allows_path(user, text(review, &["spec", "nonResourceAttributes", "path"]))
    };
    let status = if allowed {
        json!({"allowed": true})
    } else {
        json!({"allowed": false, "reason": "no rule of the server allows it"})
    };
    object(review).insert("status".to_owned(), status);
}

fn what_may_i(review: &mut Value, user: &User) {
    let namespace = text(review, &["spec", "namespace"]).to_owned();
    let rules: Vec<Value> = authz::granted(user, &namespace)
        .into_iter()
        .map(|(verbs, resources)| json!({"apiGroups": ["*"], "resources": resources, "verbs": verbs}))
        .collect();
    let paths = json!([{"nonResourceURLs": authz::granted_paths(user), "verbs": ["get"]}]);
    let status = json!({"incomplete": false, "resourceRules": rules, "nonResourceRules": paths});
    object(review).insert("status".to_owned(), status);
}
