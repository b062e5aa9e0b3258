//! Query parameters, and the options they spell. Pure.

use std::time::Duration;

use axum::extract::Query as Extractor;
use http::Uri;
use strata_model::field::{FieldError, FieldPath};
use strata_wire::v1::LogsRequest;

use crate::paging::{self, Asked};
use crate::pipeline::read::ListOptions;
use crate::pipeline::request::WriteOptions;
use crate::pipeline::watching::Start;
use crate::projection::Include;
use crate::refusal::{Outcome, bad_request, invalid_options};

/// The parameters of a request.
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the parameters of an address.
    pub fn of(uri: &Uri) -> Outcome<Self> {
        let parsed = Extractor::<Vec<(String, String)>>::try_from_uri(uri);
        parsed
            .map(|Extractor(pairs)| Self(pairs))
            .map_err(|error| bad_request(format!("the query cannot be read: {error}")))
    }

    /// The first value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter, or empty.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a parameter is there and not `0` or `false`.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "0" | "false"))
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Outcome<Option<i64>> {
        match self.get(name) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                bad_request(format!(
                    "unable to decode query parameter {name}: \"{text}\" is not a whole number"
                ))
            }),
        }
    }

    /// What a list says.
    pub fn list(&self) -> Outcome<ListOptions> {
        let limit = self.number("limit")?.unwrap_or(0);
        if self.get("sendInitialEvents").is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            let fault = FieldError::forbidden(FieldPath::new("sendInitialEvents"), detail);
            return Err(invalid_options("ListOptions", &[fault]));
        }
        Ok(ListOptions {
            labels: self.text("labelSelector").to_owned(),
            fields: self.text("fieldSelector").to_owned(),
            asked: Asked {
                limit: u64::try_from(limit).unwrap_or(0),
                token: self.text("continue").to_owned(),
                ..self.state()
            },
        })
    }

    /// Which state a read shows.
    pub fn state(&self) -> Asked {
        Asked {
            resource_version: self.text("resourceVersion").to_owned(),
            version_match: self.text("resourceVersionMatch").to_owned(),
            ..Asked::default()
        }
    }

    /// What a write says; `kind` is the kind of options in refusals.
    pub fn write(&self, kind: &str) -> Outcome<WriteOptions> {
        let dry_run = self.dry_run(kind)?;
        WriteOptions::parse(kind, dry_run, self.text("fieldManager"), self.text("fieldValidation"), "")
    }

    /// Whether nothing shall be stored.
    pub fn dry_run(&self, kind: &str) -> Outcome<bool> {
        match self.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                let fault = FieldError::not_supported(FieldPath::new("dryRun"), other, &["All"]);
                Err(invalid_options(kind, &[fault]))
            }
        }
    }

    /// What rows of a Table carry.
    pub fn include(&self) -> Outcome<Include> {
        match self.text("includeObject") {
            "" | "Metadata" => Ok(Include::Metadata),
            "None" => Ok(Include::None),
            "Object" => Ok(Include::Object),
            other => Err(bad_request(format!("includeObject: {other:?} is none of None, Metadata, Object"))),
        }
    }

    /// What a watch says.
    pub fn watch(&self) -> Outcome<WatchOptions> {
        let forbidden = |field: &str, detail: &str| {
            Err(invalid_options("ListOptions", &[FieldError::forbidden(FieldPath::new(field), detail)]))
        };
        if !self.text("continue").is_empty() {
            return forbidden("continue", "continue is forbidden for watch");
        }
        let send_initial = self.get("sendInitialEvents").map(|_| self.flag("sendInitialEvents"));
        let matching = self.text("resourceVersionMatch");
        match send_initial {
            None if !matching.is_empty() => {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                return forbidden("resourceVersionMatch", detail);
            }
            Some(_) if matching != "NotOlderThan" => {
                let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
                return forbidden("resourceVersionMatch", detail);
            }
            _ => {}
        }
        let (start, not_older) = match (self.text("resourceVersion"), send_initial) {
            ("" | "0", Some(false)) => (Start::Now, None),
            ("" | "0", _) => (Start::Initial, None),
            (version, Some(true)) => (Start::Initial, Some(paging::revision(version)?)),
            (version, _) => (Start::After(paging::revision(version)?), None),
        };
        let timeout = match self.number("timeoutSeconds")? {
            None | Some(0) => None,
            Some(seconds) => Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
        };
        Ok(WatchOptions {
            start,
            not_older,
            timeout,
            bookmarks: self.flag("allowWatchBookmarks"),
            announce_initial: send_initial == Some(true),
        })
    }

    /// What a request for a log says.
    pub fn logs(&self) -> Outcome<LogsRequest> {
        let not_negative = |name: &str| -> Outcome<Option<i64>> {
            let found = self.number(name)?;
            if found.is_some_and(|n| n < 0) {
                let fault =
                    FieldError::invalid(FieldPath::new(name), found, "must be greater than or equal to 0");
                return Err(invalid_options("PodLogOptions", &[fault]));
            }
            Ok(found)
        };
        Ok(LogsRequest {
            container: self.text("container").to_owned(),
            follow: self.flag("follow"),
            previous: self.flag("previous"),
            tail_lines: not_negative("tailLines")?,
            since_seconds: not_negative("sinceSeconds")?,
            since_time: self.text("sinceTime").to_owned(),
            timestamps: self.flag("timestamps"),
            limit_bytes: not_negative("limitBytes")?,
            ..LogsRequest::default()
        })
    }
}

/// How a watch is wanted.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// From where.
    pub start: Start,
    /// The initial state must have reached this revision.
    pub not_older: Option<u64>,
    /// When the server closes it; `None` is its own choice.
    pub timeout: Option<Duration>,
    /// Whether bookmarks may be sent.
    pub bookmarks: bool,
    /// Whether the end of the initial state is told by a bookmark.
    pub announce_initial: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::of(&format!("/x?{text}").parse().unwrap()).unwrap()
    }

    #[test]
    fn watches_start_where_they_are_told() {
        let start = |text: &str| query(text).watch().map(|w| w.start).map_err(|r| r.code.unwrap());
        assert_eq!(start(""), Ok(Start::Initial));
        assert_eq!(start("resourceVersion=0"), Ok(Start::Initial));
        assert_eq!(start("resourceVersion=7"), Ok(Start::After(7)));
        assert_eq!(start("sendInitialEvents=true"), Err(422));
        assert_eq!(
            start("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=7"),
            Ok(Start::Initial)
        );
        assert_eq!(start("sendInitialEvents=false&resourceVersionMatch=NotOlderThan"), Ok(Start::Now));
        assert_eq!(start("resourceVersionMatch=NotOlderThan"), Err(422));
        assert_eq!(start("continue=x"), Err(422));
        assert_eq!(start("resourceVersion=x"), Err(400));
    }

    #[test]
    fn options_are_checked() {
        assert!(query("dryRun=").write("CreateOptions").is_err());
        assert!(query("dryRun=All").write("CreateOptions").unwrap().dry_run);
        assert!(query("fieldValidation=Loose").write("CreateOptions").is_err());
        assert!(query("limit=x").list().is_err());
        assert_eq!(query("labelSelector=a%3Db%2Cc&limit=5").list().unwrap().labels, "a=b,c");
        assert!(query("includeObject=All").include().is_err());
        assert!(!query("watch=0").flag("watch") && query("watch=yes").flag("watch"));
    }
}
