//! Requests for certificates: who asks is told by the server, and who approves writes to a part of its own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::rules::{AGE, Around, Column, Faults, NAME, PLAIN, Rules, Unsettled, column, field};
use super::{check, print};
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
    validate,
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

/// Writes down who asks.
fn asker(request: &mut Value, old: Option<&Value>, around: &dyn Around) -> Result<(), Unsettled> {
    if old.is_none() {
        let user = around.user();
        let spec = child(request, "spec");
        spec.remove("extra");
        spec.insert("username".to_owned(), json!(user.name));
        put(spec, "uid", (!user.uid.is_empty()).then(|| json!(user.uid)));
        put(spec, "groups", (!user.groups.is_empty()).then(|| json!(user.groups)));
    }
    Ok(())
}

fn validate(request: &Value, faults: &mut Faults) {
    let (path, spec) = (FieldPath::new("spec"), at(request, &["spec"]).unwrap_or(&Value::Null));
    let pem = text(spec, &["request"]);
    let decoded = STANDARD.decode(pem).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if !decoded.is_some_and(|text| text.trim_start().starts_with(PEM_START)) {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
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
