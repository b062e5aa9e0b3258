//! Which state a list shows and which part of it: resourceVersion, its match, limit and continue tokens.
//! Pure; knows revisions as numbers and keys as bytes.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use strata_model::field::{FieldError, FieldPath};
use strata_model::status::{Reason, Status};

use crate::refusal::{Outcome, Refusal, bad_request, invalid_options};

/// Version of the token's form.
const TOKEN_VERSION: &str = "strata/v1";

/// What a list request says about state and pages.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// `resourceVersion`.
    pub resource_version: String,
    /// `resourceVersionMatch`.
    pub version_match: String,
    /// `limit`; 0 is none.
    pub limit: u64,
    /// `continue`.
    pub token: String,
}

/// Which state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The newest.
    Latest,
    /// The newest, which must have reached this revision.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exact(u64),
}

/// What a list reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Which state.
    pub at: At,
    /// Most objects; `None` is all.
    pub limit: Option<usize>,
    /// The key after which it starts, relative to the range.
    pub after: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Token {
    v: String,
    rv: u64,
    start: String,
}

/// The token of the page after a key.
pub fn token(revision: u64, after: &str) -> String {
    let token = Token { v: TOKEN_VERSION.to_owned(), rv: revision, start: after.to_owned() };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

/// Reads a `resourceVersion`.
pub fn revision(text: &str) -> Outcome<u64> {
    text.parse().map_err(|_| {
        bad_request(format!(
            "resourceVersion: Invalid value: \"{text}\": must be a decimal number given by this server"
        ))
    })
}

/// Decides what a list reads.
pub fn plan(asked: &Asked) -> Outcome<Plan> {
    let limit = usize::try_from(asked.limit).ok().filter(|n| *n > 0);
    if !asked.token.is_empty() {
        return following(asked, limit);
    }
    let (version, matching) = (asked.resource_version.as_str(), asked.version_match.as_str());
    let fault = |detail: &str| {
        let path = FieldPath::new("resourceVersionMatch");
        Err(invalid_options("ListOptions", &[FieldError::forbidden(path, detail)]))
    };
    if !matches!(matching, "" | "Exact" | "NotOlderThan") {
        let path = FieldPath::new("resourceVersionMatch");
        let fault = FieldError::not_supported(path, matching, &["Exact", "NotOlderThan"]);
        return Err(invalid_options("ListOptions", &[fault]));
    }
    let at = match (version, matching) {
        ("", "") => At::Latest,
        ("", _) => return fault("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("0", "Exact") => {
            return fault("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        }
        ("0", _) => return Ok(Plan { at: At::Latest, limit: None, after: None }),
        (n, "Exact") => At::Exact(revision(n)?),
        (n, "") if limit.is_some() => At::Exact(revision(n)?),
        (n, _) => At::NotOlderThan(revision(n)?),
    };
    Ok(Plan { at, limit, after: None })
}

fn following(asked: &Asked, limit: Option<usize>) -> Outcome<Plan> {
    if !asked.version_match.is_empty() {
        let path = FieldPath::new("resourceVersionMatch");
        let detail = "resourceVersionMatch is forbidden when continue is provided";
        return Err(invalid_options("ListOptions", &[FieldError::forbidden(path, detail)]));
    }
    if !matches!(asked.resource_version.as_str(), "" | "0") {
        return Err(bad_request("specifying resource version is not allowed when using continue"));
    }
    let token = URL_SAFE_NO_PAD.decode(asked.token.trim_end_matches('=')).ok();
    let token = token.and_then(|bytes| serde_json::from_slice::<Token>(&bytes).ok());
    let Some(token) = token.filter(|t| t.v == TOKEN_VERSION && !t.start.is_empty()) else {
        return Err(bad_request("invalid continue token"));
    };
    // A page of a list that shows no one state (see `expired`) goes on with the newest.
    let at = if token.rv == 0 { At::Latest } else { At::Exact(token.rv) };
    Ok(Plan { at, limit, after: Some(token.start) })
}

/// The refusal of a page whose state is gone: it holds a token that goes on at the same place in the newest state.
pub fn expired(plan: &Plan, oldest: u64) -> Refusal {
    let Some(after) = &plan.after else {
        return crate::refusal::expired(format!(
            "The resourceVersion for the provided list is too old; the oldest that is kept is {oldest}."
        ));
    };
    let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                   list without the continue parameter, or use the continue token in this response to retrieve the \
                   remainder of the results. Continuing with the provided token results in an inconsistent list - \
                   objects that were created, modified, or deleted between the time the first chunk was returned and \
                   now may show up in the list.";
    let mut status = Status::failure(Reason::Expired, message);
    status.metadata.continue_token = token(0, after);
    Box::new(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(version: &str, matching: &str, limit: u64) -> Result<At, u16> {
        let asked = Asked {
            resource_version: version.to_owned(),
            version_match: matching.to_owned(),
            limit,
            token: String::new(),
        };
        plan(&asked).map(|p| p.at).map_err(|r| r.code.unwrap())
    }

    #[test]
    fn the_table_of_versions_and_matches() {
        for (version, matching, limit, expected) in [
            ("", "", 0, Ok(At::Latest)),
            ("", "Exact", 0, Err(422)),
            ("0", "", 5, Ok(At::Latest)),
            ("0", "NotOlderThan", 0, Ok(At::Latest)),
            ("0", "Exact", 0, Err(422)),
            ("7", "", 0, Ok(At::NotOlderThan(7))),
            ("7", "", 5, Ok(At::Exact(7))),
            ("7", "NotOlderThan", 5, Ok(At::NotOlderThan(7))),
            ("7", "Exact", 0, Ok(At::Exact(7))),
            ("7", "Sometimes", 0, Err(422)),
            ("abc", "", 0, Err(400)),
        ] {
            assert_eq!(ask(version, matching, limit), expected, "{version} {matching} {limit}");
        }
    }

    #[test]
    fn limits_are_ignored_for_any_state() {
        let asked = Asked { resource_version: "0".to_owned(), limit: 5, ..Asked::default() };
        assert_eq!(plan(&asked).unwrap().limit, None);
    }

    #[test]
    fn tokens_carry_state_and_place() {
        let asked = Asked { token: token(9, "n/a"), limit: 2, ..Asked::default() };
        let found = plan(&asked).unwrap();
        assert_eq!(found, Plan { at: At::Exact(9), limit: Some(2), after: Some("n/a".to_owned()) });
        let fresh = expired(&found, 20);
        let next = Asked { token: fresh.metadata.continue_token, ..Asked::default() };
        assert_eq!(plan(&next).unwrap().at, At::Latest);
        for (token, version) in [("rubbish".to_owned(), ""), (token(9, "a"), "8")] {
            let asked = Asked { token, resource_version: version.to_owned(), ..Asked::default() };
            assert_eq!(plan(&asked).unwrap_err().code, Some(400));
        }
    }
}
