//! The cause of a transaction, as the pipeline writes it and history tells it. The only place that knows its form.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Who wrote, through which request, and why. In the store it is JSON without its empty members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// `create`, `update`, `patch`, `apply` or `delete`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub verb: String,
    /// The subresource that was written through, or empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// Who manages what was written: as the request named it, else the client's program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manager: String,
    /// The id of the request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// Why, in the writer's words.
    #[serde(rename = "cause", skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Cause {
    /// Its form in the store.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        serde_json::to_vec(self).map(Bytes::from).unwrap_or_default()
    }

    /// Reads a stored cause; one that was written by something else says nothing.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_come_back_and_strangers_say_nothing() {
        let cause = Cause { user: "eve".to_owned(), why: "\"for fun\"".to_owned(), ..Cause::default() };
        assert_eq!(cause.to_bytes(), r#"{"user":"eve","cause":"\"for fun\""}"#);
        assert_eq!(Cause::read(&cause.to_bytes()), cause);
        assert_eq!(Cause::read(b"cause 7"), Cause::default());
    }
}
