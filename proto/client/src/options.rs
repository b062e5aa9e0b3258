//! What can be said with a request besides which object is meant; and what comes back with an object.

use bytes::Bytes;
use serde_json::Value;
use strata_model::object::Object;

/// In which form objects are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Projection {
    /// Whole.
    #[default]
    Object,
    /// A PartialObjectMetadata.
    Metadata,
    /// A Table of meta.k8s.io/v1, as printed for people. It comes in the place of the object.
    Table,
}

/// Options of a read of one object.
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// `status`, `scale`, or empty for the object itself.
    pub subresource: String,
    /// Empty: latest; `0`: any; a revision: not older, or exactly that.
    pub resource_version: String,
    /// Empty, `NotOlderThan` or `Exact`.
    pub resource_version_match: String,
    /// Form of the answer.
    pub projection: Projection,
}

/// Options of a list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Empty matches all.
    pub label_selector: String,
    /// Empty matches all.
    pub field_selector: String,
    /// Most objects in the answer; 0 is no limit.
    pub limit: u64,
    /// From the page before; empty for the first.
    pub continue_token: String,
    /// Empty: latest.
    pub resource_version: String,
    /// Empty, `Exact` or `NotOlderThan`.
    pub resource_version_match: String,
    /// Form of the answer; with `Table`, each item is a Table with some of the rows, the first with columns.
    pub projection: Projection,
}

/// A list, or a page of one.
#[derive(Clone, Debug, Default)]
pub struct List {
    /// In the order of the server: by namespace, then name.
    pub items: Vec<Object>,
    /// The revision of the whole list; a watch after it misses nothing.
    pub resource_version: String,
    /// Token of the next page; empty where there is none.
    pub continue_token: String,
    /// How many objects follow; 0 where unknown.
    pub remaining: u64,
}

/// What the server does with unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Warns, and drops them.
    #[default]
    Warn,
    /// Drops them in silence.
    Ignore,
    /// Refuses.
    Strict,
}

impl FieldValidation {
    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warn => "Warn",
            Self::Ignore => "Ignore",
            Self::Strict => "Strict",
        }
    }
}

/// Options of a write.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Everything but the storing.
    pub dry_run: bool,
    /// Who manages the written fields; empty is the server's guess.
    pub field_manager: String,
    /// Unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// Why, in the writer's words; kept with the transaction. Cut at 1 KiB.
    pub cause: String,
}

/// A patch.
#[derive(Clone, Debug)]
pub enum Patch {
    /// JSON merge patch, RFC 7386.
    Merge(Value),
    /// JSON patch, RFC 6902.
    Json(Value),
    /// Strategic merge patch; built-in types only.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// The object as wished, JSON.
        object: Bytes,
        /// Take ownership from others.
        force: bool,
    },
}

/// The answer to a write.
#[derive(Clone, Debug)]
pub struct Written {
    /// As stored; or the Status of a subresource that only acts.
    pub object: Object,
    /// False where nothing was to change, and so nothing was written.
    pub changed: bool,
    /// Sentences the user should see.
    pub warnings: Vec<String>,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Seconds between mark and removal; `None` is what the object asks for.
    pub grace_period_seconds: Option<i64>,
    /// `Background`, `Foreground`, `Orphan`, or empty for the default of the type.
    pub propagation_policy: String,
    /// Only the object with this uid; empty is any.
    pub uid: String,
    /// Only at this revision; empty is any.
    pub resource_version: String,
    /// Everything but the storing.
    pub dry_run: bool,
    /// Why.
    pub cause: String,
}

/// The answer to a deletion.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// As it remains, marked; or a Status where it is gone.
    pub object: Object,
    /// Whether it is gone.
    pub removed: bool,
    /// Sentences the user should see.
    pub warnings: Vec<String>,
}

/// Which log.
#[derive(Clone, Debug, Default)]
pub struct LogOptions {
    /// Empty: the only or default container.
    pub container: String,
    /// Go on as it grows.
    pub follow: bool,
    /// That of the attempt before.
    pub previous: bool,
    /// Only the last lines.
    pub tail_lines: Option<i64>,
    /// Only lines not older.
    pub since_seconds: Option<i64>,
    /// Only lines after this instant, RFC 3339; empty is all.
    pub since_time: String,
    /// Each line begins with its instant.
    pub timestamps: bool,
    /// At most this many bytes.
    pub limit_bytes: Option<i64>,
}

/// The version of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// As `/version` has it.
    pub git_version: String,
    /// Major.
    pub major: String,
    /// Minor.
    pub minor: String,
    /// Version of Strata.
    pub strata: String,
}

/// What the store behind a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// The newest revision.
    pub revision: u64,
    /// The oldest at which reads and watches still work.
    pub oldest_revision: u64,
    /// Live keys.
    pub keys: u64,
    /// Live bytes.
    pub bytes: u64,
    /// Bytes of the log on disk.
    pub log_bytes: u64,
    /// Open watches.
    pub watchers: u64,
    /// Watches that have not delivered everything yet.
    pub watchers_behind: u64,
    /// How many revisions the slowest watch is behind.
    pub watch_lag: u64,
    /// Bytes that the store takes of the server's disk; 0 where it is not there.
    pub disk_bytes: u64,
    /// Bytes that are free on that disk; 0 where the store is not there.
    pub disk_available_bytes: u64,
    /// When the oldest kept revision was made, RFC 3339; empty where that is not known.
    pub oldest_time: String,
}

/// Which history is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compaction {
    /// What came before this revision.
    Below(u64),
    /// What was superseded longer ago than so many seconds, by the server's clock.
    OlderThanSeconds(u64),
}
