//! Requests for certificates: those that are approved are signed, if they are for a signer of the platform and ask for
//! what that gives; and those that nobody needs any more go. Knows no keys: a signer is passed in.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use strata_model::object::Object;
use strata_model::resource::builtin::CERTIFICATE_SIGNING_REQUEST;

use crate::controller::{
    Action, Controller, Key, MapTo, ObserveError, Plan, Propagation, Target, View, Watched,
};

#[cfg(test)]
mod tests;

/// How long a request stays once it is decided.
const DECIDED_STAYS: SignedDuration = SignedDuration::from_hours(1);
/// How long a request stays that nobody decides.
const PENDING_STAYS: SignedDuration = SignedDuration::from_hours(24);

/// A signer of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// By which clients are known to the API server.
    Client,
    /// By which node agents are.
    KubeletClient,
    /// With which node agents serve.
    KubeletServing,
}

impl Signer {
    /// The signer of a name; `None` where it is not the platform's.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "kubernetes.io/kube-apiserver-client" => Some(Self::Client),
            "kubernetes.io/kube-apiserver-client-kubelet" => Some(Self::KubeletClient),
            "kubernetes.io/kubelet-serving" => Some(Self::KubeletServing),
            _ => None,
        }
    }

    /// The usage that a request must ask for, beside what all may.
    fn usage(self) -> &'static str {
        match self {
            Self::Client | Self::KubeletClient => "client auth",
            Self::KubeletServing => "server auth",
        }
    }
}

/// What is to be signed.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// By which signer.
    pub signer: Signer,
    /// The request: base64 of PEM.
    pub request: &'a str,
    /// What the certificate is for.
    pub usages: &'a [&'a str],
    /// For how many seconds at most; `None` leaves it to the signer.
    pub seconds: Option<i64>,
    /// Who asks.
    pub user: &'a str,
    /// From when on.
    pub now: Timestamp,
}

/// Signs requests with the key of an authority.
pub trait Authority: Send + Sync {
    /// The certificate for a request, PEM.
    ///
    /// # Errors
    /// A sentence: what the request asks for that this signer does not give.
    fn sign(&self, wanted: &Wanted<'_>) -> Result<String, String>;
}

/// Signs approved requests, and removes old ones.
pub struct CertificateSigning {
    /// Who signs; without it nothing is signed.
    pub authority: Option<Arc<dyn Authority>>,
}

/// A request for a certificate.
#[derive(Debug)]
pub struct Observed {
    request: Arc<Object>,
}

/// A request, read.
struct Request {
    value: Value,
}

impl Request {
    fn text(&self, path: &str) -> &str {
        self.value.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    fn conditions(&self) -> &[Value] {
        self.value.pointer("/status/conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn has(&self, kind: &str) -> bool {
        self.conditions().iter().any(|condition| condition["type"] == kind)
    }

    fn created(&self) -> Option<Timestamp> {
        self.text("/metadata/creationTimestamp").parse().ok()
    }

    /// When it goes.
    fn ends(&self) -> Option<Timestamp> {
        let decided = self.conditions().iter().filter_map(|condition| {
            let of = |field: &str| condition[field].as_str()?.parse::<Timestamp>().ok();
            of("lastUpdateTime").or_else(|| of("lastTransitionTime")).or_else(|| self.created())
        });
        match decided.max() {
            Some(decided) => decided.checked_add(DECIDED_STAYS).ok(),
            None => self.created()?.checked_add(PENDING_STAYS).ok(),
        }
    }

    /// The signer that owes it a certificate.
    fn due(&self) -> Option<Signer> {
        let open = self.has("Approved") && !self.has("Denied") && !self.has("Failed");
        if !open || !self.text("/status/certificate").is_empty() {
            return None;
        }
        Signer::of(self.text("/spec/signerName"))
    }

    fn sign(&self, signer: Signer, authority: &dyn Authority, now: Timestamp) -> Result<String, String> {
        let usages: Vec<&str> = self
            .value
            .pointer("/spec/usages")
            .and_then(Value::as_array)
            .map(|usages| usages.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let common = ["digital signature", "key encipherment"];
        if let Some(odd) = usages.iter().find(|usage| **usage != signer.usage() && !common.contains(*usage)) {
            return Err(format!("usage {odd:?} is not given by this signer"));
        }
        if !usages.contains(&signer.usage()) {
            return Err(format!("usage {:?} is missing", signer.usage()));
        }
        let seconds = self.value.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
        let (request, user) = (self.text("/spec/request"), self.text("/spec/username"));
        authority.sign(&Wanted { signer, request, usages: &usages, seconds, user, now })
    }

    fn failed(&self, why: &str, now: Timestamp) -> Value {
        let stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut conditions = self.conditions().to_vec();
        conditions.push(json!({"type": "Failed", "status": "True", "reason": "SignerValidationFailure",
            "message": why, "lastUpdateTime": stamp, "lastTransitionTime": stamp}));
        json!({"conditions": conditions})
    }
}

impl Controller for CertificateSigning {
    type Observed = Observed;

    fn name(&self) -> &'static str {
        "certificatesigning"
    }

    fn watches(&self) -> Vec<Watched> {
        vec![Watched::all(&CERTIFICATE_SIGNING_REQUEST, MapTo::Itself)]
    }

    fn observe(&self, view: &dyn View, key: &Key) -> Result<Option<Observed>, ObserveError> {
        Ok(view.get(&key.resource, &key.object).map(|request| Observed { request }))
    }

    fn plan(&self, observed: &Observed, now: Timestamp) -> Plan {
        let mut plan = Plan::settled();
        let object = &observed.request;
        if object.meta().is_deleting() {
            return plan;
        }
        let request = Request { value: object.to_value().unwrap_or(Value::Null) };
        let target = Target::of(&CERTIFICATE_SIGNING_REQUEST, object);
        if let Some(ends) = request.ends() {
            if ends <= now {
                let propagation = Propagation::Background;
                plan.actions.push(Action::Delete { target, propagation, grace_seconds: None });
                return plan;
            }
            plan.next = plan.next.or_at(ends);
        }
        match (request.due(), &self.authority) {
            (Some(signer), Some(authority)) => {
                let status = match request.sign(signer, authority.as_ref(), now) {
                    Ok(certificate) => json!({"certificate": STANDARD.encode(certificate)}),
                    Err(why) => request.failed(&why, now),
                };
                plan.actions.push(Action::Status { target, status });
            }
            (Some(_), None) => plan.note("NoSigningKey", "no key of the authority was given to sign with"),
            (None, _) => {}
        }
        plan
    }
}
