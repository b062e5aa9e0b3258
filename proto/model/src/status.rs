//! The `Status` of the Kubernetes API: how every refusal reads, over REST and gRPC alike.
//! Made once, last, at the facade; knows neither HTTP nor gRPC beyond the number of a code.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::field::FieldError;

/// Why a request was refused, in the words clients match on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the documentation: API conventions, `reason` of Status")]
pub enum Reason {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    AlreadyExists,
    Conflict,
    Expired,
    Gone,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    Invalid,
    TooManyRequests,
    InternalError,
    ServerTimeout,
    ServiceUnavailable,
    InsufficientStorage,
    Timeout,
    #[serde(other)]
    Unknown,
}

impl Reason {
    /// The HTTP code that belongs to the reason.
    pub fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::AlreadyExists | Self::Conflict => 409,
            Self::Expired | Self::Gone => 410,
            Self::RequestEntityTooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::Invalid => 422,
            Self::TooManyRequests => 429,
            Self::InternalError | Self::ServerTimeout | Self::Unknown => 500,
            Self::ServiceUnavailable => 503,
            Self::Timeout => 504,
            Self::InsufficientStorage => 507,
        }
    }
}

/// One cause of a refusal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// A word such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The path of the field, where one is at fault.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group; empty is core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural resource, or the kind where the reason is `Invalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// All causes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// Seconds after which a retry makes sense.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// List metadata of a Status: only `continue` is ever set (a fresh page token beside `Expired`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusMeta {
    /// The fresh token.
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    pub continue_token: String,
}

/// A Kubernetes `Status` object: the answer to a request that yields no object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Always `Status`.
    #[serde(default = "status_kind")]
    pub kind: String,
    /// Always `v1`.
    #[serde(default = "status_version")]
    pub api_version: String,
    /// Mostly empty.
    #[serde(default)]
    pub metadata: StatusMeta,
    /// `Success` or `Failure`.
    #[serde(default)]
    pub status: String,
    /// For people; names the object, the field and the fix.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The HTTP code; absent on some successes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
}

fn status_kind() -> String {
    "Status".to_owned()
}

fn status_version() -> String {
    "v1".to_owned()
}

/// Which object a status speaks of.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural resource name.
    pub resource: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Object name, may be empty.
    pub name: &'a str,
}

impl About<'_> {
    fn resource_group(&self) -> String {
        match self.group {
            "" => self.resource.to_owned(),
            group => format!("{}.{group}", self.resource),
        }
    }

    fn details(&self) -> Details {
        Details {
            name: self.name.to_owned(),
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            ..Details::default()
        }
    }
}

impl Status {
    /// A refusal.
    pub fn failure(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            kind: status_kind(),
            api_version: status_version(),
            metadata: StatusMeta::default(),
            status: "Failure".to_owned(),
            message: message.into(),
            reason: Some(reason),
            details: None,
            code: Some(reason.code()),
        }
    }

    /// A success without an object, about `about` and `uid`.
    pub fn success(about: About<'_>, uid: &str) -> Self {
        let details = Details { uid: uid.to_owned(), ..about.details() };
        Self {
            kind: status_kind(),
            api_version: status_version(),
            metadata: StatusMeta::default(),
            status: "Success".to_owned(),
            message: String::new(),
            reason: None,
            details: Some(Box::new(details)),
            code: None,
        }
    }

    /// The same status with details.
    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// `resource "name" not found`.
    pub fn not_found(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" not found", about.resource_group(), about.name);
        Self::failure(Reason::NotFound, message).with_details(about.details())
    }

    /// A create of a name that is taken.
    pub fn already_exists(about: About<'_>) -> Self {
        let message = format!("{} \"{}\" already exists", about.resource_group(), about.name);
        Self::failure(Reason::AlreadyExists, message).with_details(about.details())
    }

    /// A write against a state that is no longer so.
    pub fn conflict(about: About<'_>, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{}\": {why}", about.resource_group(), about.name);
        Self::failure(Reason::Conflict, message).with_details(about.details())
    }

    /// The conflict of a stale resourceVersion, in the words clients know.
    pub fn stale(about: About<'_>) -> Self {
        Self::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// Denied; `why` ends the sentence.
    pub fn forbidden(about: About<'_>, why: &str) -> Self {
        let named = if about.name.is_empty() { String::new() } else { format!(" \"{}\"", about.name) };
        let message = format!("{}{named} is forbidden: {why}", about.resource_group());
        Self::failure(Reason::Forbidden, message).with_details(about.details())
    }

    /// Failed validation: every field error becomes a cause.
    pub fn invalid(about: About<'_>, errors: &[FieldError]) -> Self {
        let kind = match about.group {
            "" => about.kind.to_owned(),
            group => format!("{}.{group}", about.kind),
        };
        let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let text = if let [one] = all.as_slice() { one.clone() } else { format!("[{}]", all.join(", ")) };
        let causes = errors.iter().map(|e| Cause {
            reason: e.fault.reason().to_owned(),
            message: e.message(),
            field: e.path.to_string(),
        });
        let details = Details { kind: about.kind.to_owned(), causes: causes.collect(), ..about.details() };
        Self::failure(Reason::Invalid, format!("{kind} \"{}\" is invalid: {text}", about.name))
            .with_details(details)
    }

    /// Undecodable or contradictory request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::failure(Reason::BadRequest, message)
    }

    /// Our own failure.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::failure(Reason::InternalError, format!("Internal error occurred: {message}"))
    }

    /// A revision whose history is gone.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::failure(Reason::Expired, message)
    }

    /// Whether this is a refusal for `reason`.
    pub fn is(&self, reason: Reason) -> bool {
        self.reason == Some(reason)
    }

    /// The HTTP code: that of the status, else of its reason, else 500 (failures) or 200.
    pub fn http_code(&self) -> u16 {
        match (self.code, self.reason) {
            (Some(code), _) => code,
            (None, Some(reason)) => reason.code(),
            (None, None) => {
                if self.status == "Success" {
                    200
                } else {
                    500
                }
            }
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldPath;

    const DEPLOYMENT: About<'_> =
        About { group: "apps", resource: "deployments", kind: "Deployment", name: "web" };

    #[test]
    fn messages_use_the_resource_or_the_kind_as_clients_expect() {
        assert_eq!(Status::not_found(DEPLOYMENT).message, "deployments.apps \"web\" not found");
        let errors = [
            FieldError::required(FieldPath::new("spec").child("selector"), ""),
            FieldError::invalid(
                FieldPath::new("spec").child("replicas"),
                -1,
                "must be greater than or equal to 0",
            ),
        ];
        let status = Status::invalid(DEPLOYMENT, &errors);
        assert_eq!(
            status.message,
            "Deployment.apps \"web\" is invalid: [spec.selector: Required value, \
             spec.replicas: Invalid value: -1: must be greater than or equal to 0]"
        );
        assert_eq!(status.details.unwrap().kind, "Deployment");
    }

    #[test]
    fn a_status_survives_the_wire() {
        let status = Status::stale(DEPLOYMENT);
        let text = serde_json::to_string(&status).unwrap();
        assert!(text.contains(r#""reason":"Conflict""#) && text.contains(r#""code":409"#), "{text}");
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status);
        let odd: Status = serde_json::from_str(r#"{"reason":"Novel","code":418}"#).unwrap();
        assert_eq!((odd.reason, odd.http_code()), (Some(Reason::Unknown), 418));
    }
}
