//! Requests for certificates: who asks is told by the server, and who approves writes to a part of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use super::rules::{AGE, Around, Column, Faults, NAME, PLAIN, Rules, Unsettled, column, field};
use super::{check, print};
use crate::authz::{Attributes, MASTERS};
use crate::value::{at, child, int, list, object, put, text};

/// Shortest life of a certificate that may be asked for, in seconds.
const SHORTEST: i64 = 600;
const PEM_START: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Rules of requests for certificates.
pub static CERTIFICATE_REQUEST: Rules = Rules {
    create: |request| drop(object(request).insert("status".to_owned(), json!({}))),
    update: |new, old| put(object(new), "spec", old.get("spec").cloned()),
    settle: Some(asker),
    guard: Some(guard),
    validate,
    validate_status: |request, faults| validate_conditions(request, faults),
    columns: const {
        &[
            NAME,
            AGE,
            column("SignerName", "Who is to sign."),
            column("Requestor", "Who asks."),
            column("RequestedDuration", "For how long."),
            column("Condition", "How far it is."),
        ] as &[Column]
    },
    row,
    fields: const { &[field("spec.signerName", &["/spec/signerName"])] },
    ..PLAIN
};

/// The signer of certificates by which clients are known to the API server.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// Conditions that are never taken back, and are true or absent.
const LASTING: &[&str] = &["Approved", "Denied", "Failed"];

/// Who approves, denies or signs must be allowed to do so for the signer.
fn guard(through: &str, new: &Value, old: &Value, around: &dyn Around) -> Result<(), Unsettled> {
    let differs = |path: &[&str]| at(new, path) != at(old, path);
    let failed = |request: &Value| has_condition(request, "Failed");
    let verb = match through {
        "approval" if differs(&["status", "conditions"]) => "approve",
        "status" if differs(&["status", "certificate"]) || failed(new) != failed(old) => "sign",
        _ => return Ok(()),
    };
    let signer = text(old, &["spec", "signerName"]);
    let any = signer.split_once('/').map(|(domain, _)| format!("{domain}/*")).unwrap_or_default();
    let may = |name: &str| {
        let (group, resource) = ("certificates.k8s.io", "signers");
        let asked = Attributes { verb, group, resource, subresource: "", namespace: "", name };
        around.policy().allows(around.user(), &asked)
    };
    if may(signer) || may(&any) {
        return kept(new, old);
    }
    Err(Unsettled::Forbidden(format!("user not permitted to {verb} requests with signerName {signer:?}")))
}

/// What was decided stays decided.
fn kept(new: &Value, old: &Value) -> Result<(), Unsettled> {
    let lost = LASTING.iter().filter(|kind| has_condition(old, kind) && !has_condition(new, kind));
    let path = FieldPath::new("status").child("conditions");
    let faults: Faults = lost
        .map(|kind| {
            FieldError::forbidden(
                path.clone(),
                format!("updates may not remove a condition of type {kind:?}"),
            )
        })
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(Unsettled::Faults(faults)) }
}

fn has_condition(request: &Value, kind: &str) -> bool {
    list(request, &["status", "conditions"]).iter().any(|condition| text(condition, &["type"]) == kind)
}

fn validate_conditions(request: &Value, faults: &mut Faults) {
    let path = FieldPath::new("status").child("conditions");
    for (index, condition) in list(request, &["status", "conditions"]).iter().enumerate() {
        let path = path.index(index);
        let (kind, status) = (text(condition, &["type"]), text(condition, &["status"]));
        check::required(condition, "type", &path, faults);
        check::known(condition, "status", &["False", "True", "Unknown"], &path, faults);
        if LASTING.contains(&kind) && !matches!(status, "" | "True") {
            faults.push(FieldError::not_supported(path.child("status"), status, &["True"]));
        }
    }
    if has_condition(request, "Approved") && has_condition(request, "Denied") {
        let detail = "Approved and Denied conditions are mutually exclusive";
        faults.push(FieldError::invalid(path, "Denied", detail));
    }
}

/// Writes down who asks.
fn asker(request: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    if old.is_none() {
        let user = around.user();
        let spec = child(request, "spec");
        spec.remove("extra");
        spec.insert("username".to_owned(), json!(user.name));
        put(spec, "uid", (!user.uid.is_empty()).then(|| json!(user.uid)));
        put(spec, "groups", (!user.groups.is_empty()).then(|| json!(user.groups)));
        put(spec, "extra", (!user.extra.is_empty()).then(|| json!(user.extra)));
        let asked = parse(request).map(|asked| asked.groups).unwrap_or_default();
        if text(request, &["spec", "signerName"]) == CLIENT_SIGNER && asked.iter().any(|g| g == MASTERS) {
            let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
            return Err(Unsettled::Forbidden(why));
        }
    }
    Ok(())
}

fn validate(request: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(request, &["spec"]).unwrap_or(&Value::Null));
    let pem = text(spec, &["request"]);
    let is_pem = decoded(request).is_some_and(|text| text.trim_start().starts_with(PEM_START));
    if !is_pem {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        faults.push(FieldError::invalid(path.child("request"), pem, detail));
    } else if parse(request).is_none() {
        let detail = "the block is no PKCS #10 request for a certificate";
        faults.push(FieldError::invalid(path.child("request"), pem, detail));
    }
    let signer = check::required(spec, "signerName", &path, faults);
    if !signer.is_empty()
        && !signer.split_once('/').is_some_and(|(domain, name)| domain.contains('.') && !name.is_empty())
    {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        faults.push(FieldError::invalid(path.child("signerName"), signer, detail));
    }
    let usages = list(spec, &["usages"]);
    if usages.is_empty() {
        faults.push(FieldError::required(path.child("usages"), ""));
    }
    for (index, usage) in usages.iter().filter_map(Value::as_str).enumerate() {
        if !USAGES.contains(&usage) {
            faults.push(FieldError::not_supported(path.child("usages").index(index), usage, USAGES));
        }
    }
    if let Some(seconds) = int(spec, &["expirationSeconds"]).filter(|n| *n < SHORTEST) {
        let detail = format!("may not specify a duration less than {SHORTEST} seconds (10 minutes)");
        faults.push(FieldError::invalid(path.child("expirationSeconds"), seconds, detail));
    }
}

/// What a request for a certificate asks for.
struct Asked {
    /// Groups that the subject would be in.
    groups: Vec<String>,
}

fn decoded(request: &Value) -> Option<String> {
    let bytes = STANDARD.decode(text(request, &["spec", "request"])).ok()?;
    String::from_utf8(bytes).ok()
}

fn parse(request: &Value) -> Option<Asked> {
    let text = decoded(request)?;
    let (_, block) = x509_parser::pem::parse_x509_pem(text.trim_start().as_bytes()).ok()?;
    let (_, parsed) = X509CertificationRequest::from_der(&block.contents).ok()?;
    let subject = &parsed.certification_request_info.subject;
    let groups = subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned);
    Some(Asked { groups: groups.collect() })
}

fn row(request: &Value, now: Timestamp) -> Vec<Value> {
    let spec = |field: &str| text(request, &["spec", field]);
    let duration = int(request, &["spec", "expirationSeconds"]);
    vec![
        print::name(request),
        print::created(request, now),
        print::or_none(spec("signerName")),
        json!(spec("username")),
        json!(duration.map_or_else(|| "<none>".to_owned(), strata_model::age::human)),
        json!(condition(request)),
    ]
}

fn condition(request: &Value) -> String {
    let conditions = list(request, &["status", "conditions"]);
    let has = |kind: &str| conditions.iter().any(|c| text(c, &["type"]) == kind);
    let mut words = Vec::new();
    match (has("Denied"), has("Approved")) {
        (true, _) => words.push("Denied"),
        (_, true) => words.push("Approved"),
        _ => words.push("Pending"),
    }
    if has("Failed") {
        words.push("Failed");
    }
    if !text(request, &["status", "certificate"]).is_empty() {
        words.push("Issued");
    }
    words.join(",")
}
