//! Paths into an object and the faults found there. Knows nothing of which object it is.

use std::fmt;

/// A path into an object, printed as Kubernetes prints it: `spec.containers[0].ports[http].name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// The path of a top-level field. An empty name is the object itself.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// This path, one field deeper.
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}.{name}", self.0)) }
    }

    /// This path at a list index.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// This path at a map key or a list key.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is wrong with a field; the words are the causes of the Kubernetes API conventions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldFault {
    /// A required value is missing.
    Required,
    /// The value is malformed or out of range.
    Invalid,
    /// The value must be unique and is not.
    Duplicate,
    /// The value is not one of those known.
    NotSupported,
    /// The value may not be set here, or may not change.
    Forbidden,
    /// The value names something that does not exist.
    NotFound,
    /// The value is too long.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The value has the wrong JSON type.
    TypeInvalid,
    /// The server failed while it looked at the field.
    Internal,
}

impl FieldFault {
    /// The `reason` of a status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
        }
    }

    /// The words that open the message.
    pub fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::Duplicate => "Duplicate value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// One fault of one field. Its text is `path: words: value: detail`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where.
    pub path: FieldPath,
    /// What kind of fault.
    pub fault: FieldFault,
    /// The value as it is shown to the user (JSON), where showing it helps.
    pub value: Option<String>,
    /// What is wrong and how to mend it. May be empty.
    pub detail: String,
}

impl FieldError {
    /// A missing value.
    pub fn required(path: FieldPath, detail: impl Into<String>) -> Self {
        Self { path, fault: FieldFault::Required, value: None, detail: detail.into() }
    }

    /// A malformed value; `value` is shown as JSON.
    pub fn invalid(path: FieldPath, value: impl serde::Serialize, detail: impl Into<String>) -> Self {
        Self { path, fault: FieldFault::Invalid, value: Some(shown(&value)), detail: detail.into() }
    }

    /// A value that may not be set, or may not change.
    pub fn forbidden(path: FieldPath, detail: impl Into<String>) -> Self {
        Self { path, fault: FieldFault::Forbidden, value: None, detail: detail.into() }
    }

    /// A second value where one is allowed.
    pub fn duplicate(path: FieldPath, value: impl serde::Serialize) -> Self {
        Self { path, fault: FieldFault::Duplicate, value: Some(shown(&value)), detail: String::new() }
    }

    /// A reference to something that is not there.
    pub fn not_found(path: FieldPath, value: impl serde::Serialize) -> Self {
        Self { path, fault: FieldFault::NotFound, value: Some(shown(&value)), detail: String::new() }
    }

    /// A value outside the known ones.
    pub fn not_supported(path: FieldPath, value: impl serde::Serialize, supported: &[&str]) -> Self {
        let list = supported.iter().map(|s| format!("\"{s}\"")).collect::<Vec<_>>().join(", ");
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {list}") };
        Self { path, fault: FieldFault::NotSupported, value: Some(shown(&value)), detail }
    }

    /// A value over its length limit, in bytes.
    pub fn too_long(path: FieldPath, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self { path, fault: FieldFault::TooLong, value: None, detail }
    }

    /// A list with more items than it may have.
    pub fn too_many(path: FieldPath, count: usize, limit: usize) -> Self {
        let detail = format!("must have at most {limit} items");
        Self { path, fault: FieldFault::TooMany, value: Some(count.to_string()), detail }
    }

    /// The message without the path, as a status cause carries it.
    pub fn message(&self) -> String {
        let mut text = self.fault.words().to_owned();
        for part in [self.value.as_deref().unwrap_or(""), self.detail.as_str()] {
            if !part.is_empty() {
                text.push_str(": ");
                text.push_str(part);
            }
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message())
    }
}

fn shown(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "<unprintable>".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_messages_read_as_kubernetes_prints_them() {
        let path = FieldPath::new("spec").child("containers").index(0).child("name");
        assert_eq!(path.as_str(), "spec.containers[0].name");
        let error = FieldError::invalid(path.clone(), "A", "must be lower case");
        assert_eq!(error.to_string(), "spec.containers[0].name: Invalid value: \"A\": must be lower case");
        assert_eq!(FieldError::required(path, "").to_string(), "spec.containers[0].name: Required value");
        let policy = FieldError::not_supported(FieldPath::new("p"), "x", &["Always", "Never"]);
        assert_eq!(
            policy.to_string(),
            "p: Unsupported value: \"x\": supported values: \"Always\", \"Never\""
        );
    }
}
