//! Conditions: one list element per type, its transition time moved only when its status changes.
//! Works on the JSON form, as every kind has the same one (Kubernetes API conventions, "typical status properties").

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A condition as most kinds carry it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// What is said, in CamelCase; the key of the list.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One CamelCase word for programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When `status` last changed, RFC 3339 in whole seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// When anything last changed, where the kind has it (Deployment).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<String>,
}

/// An instant as the API prints it: RFC 3339, UTC, whole seconds.
pub fn rfc3339(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Sets `new` in `list`, keeping the order. The transition time moves only with the status; when status, reason and
/// message are as they were the list is left untouched. Answers whether anything changed.
pub fn set(list: &mut Vec<Condition>, mut new: Condition, now: Timestamp) -> bool {
    let Some(old) = list.iter_mut().find(|c| c.type_ == new.type_) else {
        new.last_transition_time = Some(rfc3339(now));
        list.push(new);
        return true;
    };
    if old.status == new.status && old.reason == new.reason && old.message == new.message {
        return false;
    }
    new.last_transition_time = match old.status == new.status {
        true => old.last_transition_time.clone(),
        false => Some(rfc3339(now)),
    };
    *old = new;
    true
}

/// The condition of a type.
pub fn find<'a>(list: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    list.iter().find(|c| c.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let mut list = Vec::new();
        let at = |s| Timestamp::from_second(s).unwrap();
        let ready = |status: &str, message: &str| Condition {
            type_: "Ready".into(),
            status: status.into(),
            message: message.into(),
            ..Condition::default()
        };
        assert!(set(&mut list, ready("True", "a"), at(1)));
        assert!(!set(&mut list, ready("True", "a"), at(2)));
        assert!(set(&mut list, ready("True", "b"), at(3)));
        assert_eq!(list[0].last_transition_time.as_deref(), Some("1970-01-01T00:00:01Z"));
        assert!(set(&mut list, ready("False", "b"), at(4)));
        assert_eq!(
            find(&list, "Ready").unwrap().last_transition_time.as_deref(),
            Some("1970-01-01T00:00:04Z")
        );
    }
}
