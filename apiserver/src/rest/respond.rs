//! Answers: bytes with the headers that clients look at.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WARNING, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use serde_json::Value;
use strata_model::status::Status;

use super::negotiate::{Encoding, Wanted};
use crate::refusal::{Outcome, Refusal, internal};

/// An answer.
pub type Answer = Response<Body>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");

/// An answer of these bytes.
pub fn bytes(code: StatusCode, media: HeaderValue, bytes: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Body::from(bytes.into()));
    *answer.status_mut() = code;
    answer.headers_mut().insert(CONTENT_TYPE, media);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

/// An answer in plain text.
pub fn plain(code: StatusCode, text: impl Into<String>) -> Answer {
    bytes(code, HeaderValue::from_static("text/plain; charset=utf-8"), text.into())
}

/// Stored JSON in the encoding that is wanted: as it is, where that is JSON without line breaks.
pub fn stored(code: StatusCode, json: Bytes, wanted: Wanted) -> Outcome<Answer> {
    if wanted.encoding == Encoding::Json && !wanted.pretty {
        return Ok(bytes(code, JSON, json));
    }
    let value = serde_json::from_slice(&json).map_err(|error| internal(error.to_string()))?;
    self::value(code, &value, wanted)
}

/// A value in the encoding that is wanted.
pub fn value(code: StatusCode, value: &Value, wanted: Wanted) -> Outcome<Answer> {
    match wanted.encoding {
        Encoding::Yaml => {
            let text = serde_saphyr::to_string(value).map_err(|error| internal(error.to_string()))?;
            Ok(bytes(code, YAML, text))
        }
        Encoding::Json if wanted.pretty => {
            let mut text = serde_json::to_vec_pretty(value).map_err(|error| internal(error.to_string()))?;
            text.push(b'\n');
            Ok(bytes(code, JSON, text))
        }
        Encoding::Json => {
            let text = serde_json::to_vec(value).map_err(|error| internal(error.to_string()))?;
            Ok(bytes(code, JSON, text))
        }
    }
}

/// A value as JSON.
pub fn json(code: StatusCode, json: &Value) -> Answer {
    bytes(code, JSON, json.to_string())
}

/// A stream of JSON lines.
pub fn stream(body: Body) -> Answer {
    let mut answer = Response::new(body);
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    answer
}

/// A refusal.
pub fn refusal(refusal: &Refusal) -> Answer {
    let code = refusal
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let text = serde_json::to_vec(refusal).unwrap_or_default();
    let mut answer = bytes(code, JSON, text);
    let seconds = refusal.details.as_ref().map_or(0, |d| d.retry_after_seconds);
    if seconds > 0 {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if code == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"strata\""));
    }
    answer
}

/// A success without an object.
pub fn status(status: &Status) -> Answer {
    let code = status.code.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(StatusCode::OK);
    bytes(code, JSON, serde_json::to_vec(status).unwrap_or_default())
}

/// Adds sentences that the user should see.
pub fn warn(mut answer: Answer, warnings: &[String]) -> Answer {
    for text in warnings {
        let printable: String = text.chars().filter(|c| !c.is_control() && c.is_ascii()).collect();
        let quoted = printable.replace('\\', "\\\\").replace('"', "\\\"");
        match HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            Ok(value) => drop(answer.headers_mut().append(WARNING, value)),
            Err(error) => tracing::debug!(%error, "a warning is no header"),
        }
    }
    answer
}
