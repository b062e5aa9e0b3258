//! `AdmissionReview`: what a webhook is told of a write, and what its answer says. Pure.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use strata_model::status::{Reason, Status};

use super::asked::Asked;
use crate::patch::json::JsonPatch;
use crate::refusal::Refusal;
use crate::value::{at, flag, list, text};

/// What a webhook is told.
pub fn ask(asked: &Asked<'_>, version: &str, uid: &str) -> Value {
    let mut request = asked.request();
    request["uid"] = json!(uid);
    request["object"] = asked.object.cloned().unwrap_or_default();
    request["oldObject"] = asked.old.cloned().unwrap_or_default();
    json!({"apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview", "request": request})
}

/// What a webhook says.
#[derive(Debug)]
pub enum Said {
    /// The write may go on, changed by a patch where there is one.
    Allowed(Option<JsonPatch>),
    /// It may not.
    Denied(Refusal),
}

/// Reads an answer: what it says, and its sentences for the user.
///
/// # Errors
/// That it is no answer to the review of this uid.
pub fn read(answer: &Value, hook: &str, uid: &str) -> Result<(Said, Vec<String>), String> {
    let response = at(answer, &["response"]).filter(|r| r.is_object()).ok_or("the answer has no response")?;
    if text(response, &["uid"]) != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", text(response, &["uid"])));
    }
    let warnings =
        list(response, &["warnings"]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if !flag(response, &["allowed"]) {
        return Ok((Said::Denied(denied(hook, at(response, &["status"]).unwrap_or(&Value::Null))), warnings));
    }
    let patch = text(response, &["patch"]);
    if patch.is_empty() {
        return Ok((Said::Allowed(None), warnings));
    }
    if text(response, &["patchType"]) != "JSONPatch" {
        return Err(format!(
            "webhook returned response.patchType {:?}, expected \"JSONPatch\"",
            text(response, &["patchType"])
        ));
    }
    let patch = STANDARD.decode(patch).map_err(|error| format!("its patch is no base64: {error}"))?;
    let patch = serde_json::from_slice(&patch).map_err(|error| format!("its patch is no JSON: {error}"))?;
    let patch = JsonPatch::parse(patch).map_err(|error| format!("its patch cannot be read: {error}"))?;
    Ok((Said::Allowed(Some(patch)), warnings))
}

/// The refusal that a webhook's status asks for.
fn denied(hook: &str, status: &Value) -> Refusal {
    let by = format!("admission webhook \"{hook}\" denied the request");
    let (message, reason) = (text(status, &["message"]), text(status, &["reason"]));
    let message = match (message, reason) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    let code = at(status, &["code"]).and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let known = serde_json::from_value::<Reason>(json!(reason)).ok().filter(|_| !reason.is_empty());
    let mut refusal = Status::failure(known.unwrap_or(Reason::BadRequest), message);
    refusal.reason = known;
    refusal.code = Some(code.filter(|code| (400..600).contains(code)).unwrap_or(400));
    refusal.details =
        at(status, &["details"]).and_then(|details| serde_json::from_value(details.clone()).ok());
    Box::new(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_allow_change_or_deny_and_others_are_none() {
        let say = |response: Value| read(&json!({"response": response}), "h.example.com", "u");
        assert!(matches!(say(json!({"uid": "u", "allowed": true})).unwrap().0, Said::Allowed(None)));
        let (said, warnings) = say(json!({"uid": "u", "allowed": false, "warnings": ["careful"],
            "status": {"code": 422, "reason": "Invalid", "message": "no"}}))
        .unwrap();
        let Said::Denied(refusal) = said else { panic!("allowed") };
        assert_eq!(refusal.message, "admission webhook \"h.example.com\" denied the request: no");
        assert_eq!((refusal.code, refusal.reason), (Some(422), Some(Reason::Invalid)));
        assert_eq!(warnings, ["careful"]);
        let Said::Denied(refusal) = say(json!({"uid": "u"})).unwrap().0 else { panic!("allowed") };
        assert!(refusal.message.ends_with("without explanation") && refusal.code == Some(400));
        let patch = STANDARD.encode(r#"[{"op": "add", "path": "/a", "value": 1}]"#);
        let patched = json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": patch});
        assert!(matches!(say(patched).unwrap().0, Said::Allowed(Some(_))));
        for wrong in [
            json!({"uid": "v", "allowed": true}),
            json!({"uid": "u", "allowed": true, "patch": "e30="}),
            json!({"uid": "u", "allowed": true, "patch": "!", "patchType": "JSONPatch"}),
        ] {
            assert!(say(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(read(&json!({}), "h", "u").is_err());
    }
}
