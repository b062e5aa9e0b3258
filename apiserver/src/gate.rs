//! What stands before both facades: who asks, and whether there is room for one more request.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::authn::{self, Impersonation, User};
use crate::authz::Attributes;
use crate::pipeline::api::Api;
use crate::refusal::{Outcome, Refusal, bad_request, too_many_requests};
use crate::telemetry::Telemetry;
use strata_model::status::{Reason, Status};

/// Most requests under way at a time, watches and logs not counted.
pub const MAX_REQUESTS: usize = 1_024;
/// Most watches and followed logs open at a time.
pub const MAX_WATCHES: usize = 50_000;
/// Most bytes of a request's body.
pub const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;
/// How long a request that is no watch may take.
pub const REQUEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Done when the server ends, which `ending` tells by turning true.
pub async fn ended(ending: &mut watch::Receiver<bool>) {
    if ending.wait_for(|ending| *ending).await.is_err() {
        tracing::debug!("the server is gone without a word");
    }
}

/// The user that a connection's client certificate names, if there was one.
#[derive(Clone, Debug, Default)]
pub struct Peer(pub Option<Arc<User>>);

/// Shared by both facades.
pub struct Gate {
    /// The server behind.
    pub api: Arc<Api>,
    /// Counters.
    pub telemetry: Telemetry,
    requests: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

/// The group of questions about who somebody is.
const AUTHENTICATION: &str = "authentication.k8s.io";

impl Gate {
    /// A gate with all its room free.
    pub fn new(api: Arc<Api>) -> Self {
        Self {
            api,
            telemetry: Telemetry::default(),
            requests: Arc::new(Semaphore::new(MAX_REQUESTS)),
            watches: Arc::new(Semaphore::new(MAX_WATCHES)),
        }
    }

    /// Who asks: the token counts if there is one, else the certificate.
    pub async fn authenticate(&self, peer: &Peer, authorization: Option<&str>) -> Outcome<Arc<User>> {
        match (authorization, &peer.0) {
            (Some(header), _) => {
                let token = authn::bearer(header).ok_or_else(unauthorized)?;
                let known = self.api.user_of(token, &[]).await?;
                known.map(|known| Arc::new(known.user)).ok_or_else(unauthorized)
            }
            (None, Some(user)) => Ok(Arc::clone(user)),
            (None, None) => Ok(Arc::new(User::anonymous())),
        }
    }

    /// As whom the request acts: who asks, or whom they may act as.
    ///
    /// # Errors
    /// `Forbidden` where they may not; `BadRequest` for groups or a uid without a user.
    pub fn acting(&self, who: Arc<User>, asked: Impersonation) -> Outcome<Arc<User>> {
        if asked.is_empty() {
            return Ok(who);
        }
        if asked.name.is_empty() {
            return Err(bad_request("to impersonate groups or a uid, name a user too (Impersonate-User)"));
        }
        let policy = self.api.access.policy();
        needs(&asked).iter().try_for_each(|attributes| policy.check(&who, attributes))?;
        Ok(Arc::new(asked.user()))
    }

    /// Room for one request.
    pub fn enter(&self) -> Outcome<OwnedSemaphorePermit> {
        room(&self.requests, "too many requests are under way, please try again")
    }

    /// Room for one watch.
    pub fn enter_watch(&self) -> Outcome<OwnedSemaphorePermit> {
        room(&self.watches, "too many watches are open, please try again")
    }
}

/// What whoever asks to be taken for somebody must be allowed to do.
fn needs(asked: &Impersonation) -> Vec<Attributes<'_>> {
    let one = |group, resource, namespace, name| Attributes {
        verb: "impersonate",
        group,
        resource,
        subresource: "",
        namespace,
        name,
    };
    let mut needs = vec![match authn::service_account(&asked.name) {
        Some((namespace, name)) => one("", "serviceaccounts", namespace, name),
        None => one("", "users", "", &asked.name),
    }];
    needs.extend(asked.groups.iter().map(|group| one("", "groups", "", group)));
    if !asked.uid.is_empty() {
        needs.push(one(AUTHENTICATION, "uids", "", &asked.uid));
    }
    for (key, values) in &asked.extra {
        let of = |value| Attributes { subresource: key, ..one(AUTHENTICATION, "userextras", "", value) };
        needs.extend(values.iter().map(|value| of(value.as_str())));
    }
    needs
}

fn room(semaphore: &Arc<Semaphore>, message: &str) -> Outcome<OwnedSemaphorePermit> {
    Arc::clone(semaphore).try_acquire_owned().map_err(|_| too_many_requests(message))
}

/// The refusal of credentials that are nobody's.
pub fn unauthorized() -> Refusal {
    Box::new(Status::failure(Reason::Unauthorized, "Unauthorized"))
}
