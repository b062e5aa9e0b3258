//! Tokens: whose a bearer token is, the review that asks it, and new ones for service accounts. What a token names must
//! still be there, in the newest state, each time that it is used.

use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use strata_model::resource::{ResourceType, builtin};
use strata_model::status::Status;
use strata_store::snapshot::Snapshot;

use super::api::{Api, record_of};
use super::body::{self, Body, Wanted};
use super::create::to_bytes;
use super::request::{Caller, Target, WriteOptions, Written};
use crate::authn::User;
use crate::authz;
use crate::jwt::claims::{Binding, Claims, Named, TokenError};
use crate::refusal::{Outcome, about, bad_request, internal, not_found};
use crate::storage;
use crate::strategy::stamp;
use crate::types::review;
use crate::value::{at, child, int, list, object, text};

/// Group and kind of the review of a token.
const REVIEW: (&str, &str) = ("authentication.k8s.io", "TokenReview");
/// What asks for a token.
const REQUEST: Wanted<'static> = Wanted::new("authentication.k8s.io", "v1", "TokenRequest");
/// How long a token counts where the request does not say, in seconds.
const DEFAULT_LIFE: i64 = 3600;
/// Shortest and longest life that may be asked for, in seconds.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
/// Types that a token can be bound to.
static BINDABLE: [&ResourceType; 3] = [&builtin::POD, &builtin::SECRET, &builtin::NODE];

/// Whose a token is, and for which of the audiences asked for.
pub struct Identified {
    /// The user.
    pub user: User,
    /// The audiences.
    pub audiences: Vec<String>,
}

impl Api {
    /// Whose a bearer token is, if it is for one of these audiences; none asked for means this server.
    pub async fn user_of(&self, token: &str, audiences: &[String]) -> Outcome<Option<Identified>> {
        let own = self.issuer.audiences.as_slice();
        let asked = if audiences.is_empty() { own } else { audiences };
        let common = |known: &[String]| -> Vec<String> {
            asked.iter().filter(|audience| known.contains(audience)).cloned().collect()
        };
        if let Some(user) = self.tokens.user(token) {
            let audiences = common(own);
            return Ok((!audiences.is_empty()).then(|| Identified { user: user.clone(), audiences }));
        }
        let claims = match self.issuer.check(token, asked, self.moment().now.as_second()) {
            Ok(claims) => claims,
            Err(TokenError::Foreign) => return Ok(None),
            Err(error) => {
                tracing::debug!(%error, "a token does not count");
                return Ok(None);
            }
        };
        if let Some(gone) = gone(&self.latest().await?, &claims.binding, self.moment().now) {
            tracing::debug!(gone, account = claims.sub, "what a token is bound to is not there any more");
            return Ok(None);
        }
        Ok(Some(Identified { user: claims.user(), audiences: common(&claims.aud) }))
    }

    /// Answers whose a token is. That it is nobody's is an answer too.
    pub async fn review_token(&self, review: &mut Value) -> Outcome<()> {
        let token = text(review, &["spec", "token"]).to_owned();
        if token.is_empty() {
            let fault = FieldError::required(FieldPath::new("spec").child("token"), "");
            return review::refuse(REVIEW.1, REVIEW.0, &[fault]);
        }
        let status = match self.user_of(&token, &words(review, &["spec", "audiences"])).await? {
            Some(Identified { user, audiences }) => {
                json!({"authenticated": true, "user": review::told(&user), "audiences": audiences})
            }
            None => json!({"user": {}, "error": "the token is nobody's, or for other audiences"}),
        };
        object(review).insert("status".to_owned(), status);
        Ok(())
    }

    /// Makes a token for a service account.
    pub async fn create_token(
        &self,
        caller: &Caller,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        if !self.issuer.signs() {
            return Err(bad_request(
                "this server makes no tokens: it was started without --service-account-signing-key-file",
            ));
        }
        let body::Decoded { value: mut request, warnings } = body::decode(body, REQUEST, options.validation)?;
        check_request(&request, target)?;
        let snapshot = self.latest().await?;
        let account = storage::parse(&*record_of(&snapshot, target)?)?;
        let now = self.moment().now;
        let life = int(&request, &["spec", "expirationSeconds"]).unwrap_or(DEFAULT_LIFE);
        let mut binding = Binding {
            namespace: target.namespace.clone(),
            serviceaccount: named(&account),
            pod: None,
            secret: None,
            node: None,
        };
        bind(&snapshot, &mut binding, &request)?;
        self.admit_node(caller, target, "create", &target.name).await?;
        if authz::is_node(&caller.user) && !on_node(&caller.user, &binding) {
            let why = format!(
                "node {:?} can only create tokens for pods bound to it",
                authz::node_name(&caller.user)
            );
            return Err(Box::new(Status::forbidden(about(&target.served.resource, &target.name), &why)));
        }
        let mut audiences = words(&request, &["spec", "audiences"]);
        if audiences.is_empty() {
            audiences.clone_from(&self.issuer.audiences);
        }
        let claims = Claims {
            aud: audiences.clone(),
            exp: now.as_second() + life,
            iat: now.as_second(),
            iss: self.issuer.name.clone(),
            jti: self.moment().uid,
            sub: crate::authn::service_account_name(&target.namespace, &target.name),
            binding,
            nbf: now.as_second(),
        };
        let token = self.issuer.sign(&claims).map_err(|error| internal(error.to_string()))?;
        tracing::debug!(account = claims.sub, id = claims.jti, user = caller.user.name, "a token was made");
        let ends = now + jiff::SignedDuration::from_secs(life);
        let members = object(&mut request);
        members.insert("apiVersion".to_owned(), json!(REQUEST.api_version()));
        members.insert("kind".to_owned(), json!(REQUEST.kind));
        members.insert("status".to_owned(), json!({"token": token, "expirationTimestamp": stamp(ends)}));
        let metadata = child(&mut request, "metadata");
        metadata.insert("name".to_owned(), json!(target.name));
        metadata.insert("namespace".to_owned(), json!(target.namespace));
        metadata.insert("creationTimestamp".to_owned(), stamp(now));
        let spec = child(&mut request, "spec");
        spec.insert("audiences".to_owned(), json!(audiences));
        spec.insert("expirationSeconds".to_owned(), json!(life));
        Ok(Written { bytes: to_bytes(&request)?, changed: false, created: true, warnings })
    }
}

fn words(value: &Value, path: &[&str]) -> Vec<String> {
    list(value, path).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn named(object: &Value) -> Named {
    let of = |field: &str| text(object, &["metadata", field]).to_owned();
    Named { name: of("name"), uid: of("uid") }
}

/// Checks what a request for a token says by itself.
fn check_request(request: &Value, target: &Target) -> Outcome<()> {
    for (field, own) in [("name", &target.name), ("namespace", &target.namespace)] {
        let told = text(request, &["metadata", field]);
        if !told.is_empty() && told != own {
            return Err(bad_request(format!(
                "the {field} of the token request ({told}) does not match the {field} on the URL ({own})"
            )));
        }
    }
    let path = FieldPath::new("spec").child("expirationSeconds");
    let seconds = int(request, &["spec", "expirationSeconds"]);
    let detail = match seconds {
        Some(seconds) if seconds < SHORTEST => "may not specify a duration less than 10 minutes",
        Some(seconds) if seconds > LONGEST => "may not specify a duration larger than 2^32 seconds",
        _ => return Ok(()),
    };
    review::refuse(REQUEST.kind, REQUEST.group, &[FieldError::invalid(path, seconds, detail)])
}

/// The object that a token should be bound to, which must be there and be the account's to use.
fn bind(snapshot: &Snapshot, binding: &mut Binding, request: &Value) -> Outcome<()> {
    let Some(reference) = at(request, &["spec", "boundObjectRef"]).filter(|found| found.is_object()) else {
        return Ok(());
    };
    let part = |field: &str| text(reference, &[field]);
    let same =
        |type_: &&&ResourceType| type_.kind == part("kind") && type_.api_version() == part("apiVersion");
    let Some(type_) = BINDABLE.iter().find(same) else {
        let why =
            format!("cannot bind token to object of type {}, Kind={}", part("apiVersion"), part("kind"));
        return Err(bad_request(why));
    };
    let name = part("name");
    let namespace = if type_.is_namespaced() { binding.namespace.as_str() } else { "" };
    let key = storage::key(&type_.id, namespace, name);
    let record = snapshot.get(&key).ok_or_else(|| not_found(type_, name))?;
    let found = storage::parse(&record)?;
    let bound = named(&found);
    let uid = part("uid");
    if !uid.is_empty() && uid != bound.uid {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
             deleted and then recreated"
        );
        return Err(Box::new(Status::conflict(about(type_, name), &why)));
    }
    if type_.id == builtin::POD.id {
        let account = text(&found, &["spec", "serviceAccountName"]);
        if account != binding.serviceaccount.name {
            return Err(bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                binding.serviceaccount.name
            )));
        }
        let node = text(&found, &["spec", "nodeName"]);
        if !node.is_empty() {
            let there = snapshot.get(&storage::key(&builtin::NODE.id, "", node));
            let there = there.and_then(|record| storage::parse(&record).ok());
            let only_name = || Named { name: node.to_owned(), uid: String::new() };
            binding.node = Some(there.as_ref().map_or_else(only_name, named));
        }
        binding.pod = Some(bound);
    } else if type_.id == builtin::SECRET.id {
        binding.secret = Some(bound);
    } else {
        binding.node = Some(bound);
    }
    Ok(())
}

/// Whether a token is bound to a pod of a node.
fn on_node(who: &User, binding: &Binding) -> bool {
    binding.pod.is_some() && binding.node.as_ref().is_some_and(|node| authz::is_own(who, &node.name))
}

/// What of that which a token is bound to is not there any more.
fn gone(snapshot: &Snapshot, binding: &Binding, now: jiff::Timestamp) -> Option<&'static str> {
    let is_there = |type_: &ResourceType, wanted: &Named| {
        let namespace = if type_.is_namespaced() { binding.namespace.as_str() } else { "" };
        let record = snapshot.get(&storage::key(&type_.id, namespace, &wanted.name));
        record
            .and_then(|record| storage::parse(&record).ok())
            .is_some_and(|found| text(&found, &["metadata", "uid"]) == wanted.uid && !has_left(&found, now))
    };
    if !is_there(&builtin::SERVICE_ACCOUNT, &binding.serviceaccount) {
        return Some("serviceaccount");
    }
    // A pod's token tells its node as well, and ends with the pod.
    let node = binding.node.as_ref().filter(|_| binding.pod.is_none());
    [
        ("pod", &builtin::POD, binding.pod.as_ref()),
        ("secret", &builtin::SECRET, binding.secret.as_ref()),
        ("node", &builtin::NODE, node),
    ]
    .into_iter()
    .find(|(_, type_, wanted)| wanted.is_some_and(|wanted| !is_there(type_, wanted)))
    .map(|(what, ..)| what)
}

/// Whether the instant at which an object should have gone has passed by more than a while.
fn has_left(object: &Value, now: jiff::Timestamp) -> bool {
    const LEEWAY: i64 = 60;
    let instant = text(object, &["metadata", "deletionTimestamp"]).parse::<jiff::Timestamp>();
    instant.is_ok_and(|instant| now.as_second() > instant.as_second() + LEEWAY)
}
