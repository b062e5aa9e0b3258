//! Refusals: the one error type of the request path, and how failures of the store read in it.
//! Knows no HTTP and no gRPC; the facades turn a refusal into their own form, once, last.

use strata_model::field::FieldError;
use strata_model::resource::ResourceType;
use strata_model::status::{About, Details, Reason, Status};
use strata_store::error::{CommitError, EngineError, ReadError, WatchError};

/// Why a request got no object.
pub type Refusal = Box<Status>;

/// The outcome of a request or a part of it.
pub type Outcome<T> = Result<T, Refusal>;

/// Seconds after which a client may try again what failed for a passing reason.
pub const RETRY_SECONDS: u32 = 1;

/// What a refusal about an object of a type speaks of.
pub fn about<'a>(resource: &'a ResourceType, name: &'a str) -> About<'a> {
    About { group: &resource.id.group, resource: &resource.id.resource, kind: &resource.kind, name }
}

/// A request that cannot be understood.
pub fn bad_request(message: impl Into<String>) -> Refusal {
    Box::new(Status::failure(Reason::BadRequest, message))
}

/// A fault of the server; the text is all that is told.
pub fn internal(message: impl Into<String>) -> Refusal {
    Box::new(Status::failure(Reason::InternalError, format!("Internal error occurred: {}", message.into())))
}

/// No such object.
pub fn not_found(resource: &ResourceType, name: &str) -> Refusal {
    Box::new(Status::not_found(about(resource, name)))
}

/// Nothing is served at this place of a known group.
pub fn no_such_place() -> Refusal {
    let status = Status::failure(Reason::NotFound, "the server could not find the requested resource");
    Box::new(status.with_details(Details::default()))
}

/// The place is served, the verb is not.
pub fn method_not_allowed() -> Refusal {
    let message = "the server does not allow this method on the requested resource";
    Box::new(Status::failure(Reason::MethodNotAllowed, message).with_details(Details::default()))
}

/// Faults of the fields of an object.
pub fn invalid(resource: &ResourceType, name: &str, faults: &[FieldError]) -> Refusal {
    Box::new(Status::invalid(about(resource, name), faults))
}

/// Faults of the options of a request; `kind` is such as `ListOptions`.
pub fn invalid_options(kind: &str, faults: &[FieldError]) -> Refusal {
    let about = About { group: "meta.k8s.io", resource: "", kind, name: "" };
    Box::new(Status::invalid(about, faults))
}

/// A body of more bytes than the limit.
pub fn too_large(limit: usize) -> Refusal {
    let message = format!("Request entity too large: limit is {limit} bytes");
    Box::new(Status::failure(Reason::RequestEntityTooLarge, message))
}

/// More than the server takes at a time.
pub fn too_many_requests(message: &str) -> Refusal {
    let details = Details { retry_after_seconds: RETRY_SECONDS, ..Details::default() };
    Box::new(Status::failure(Reason::TooManyRequests, message).with_details(details))
}

/// A request that took too long.
pub fn timeout(message: &str) -> Refusal {
    Box::new(Status::failure(Reason::Timeout, message).with_details(Details::default()))
}

/// A read or watch of history that is not kept any more.
pub fn expired(message: impl Into<String>) -> Refusal {
    Box::new(Status::failure(Reason::Expired, message))
}

/// A transaction that failed for another reason than its conditions.
pub fn of_commit(error: &CommitError) -> Refusal {
    match error {
        CommitError::Failed { .. } => {
            Box::new(Status::failure(Reason::Conflict, "the object has been modified"))
        }
        CommitError::Invalid { reason } => {
            bad_request(format!("the write is too large or malformed: {reason}"))
        }
        CommitError::NoSpace { missing, .. } => storage_full(*missing),
        CommitError::Closed => shutting_down(),
        CommitError::Engine(error) => of_engine(error),
    }
}

/// A read that failed.
pub fn of_read(error: &ReadError) -> Refusal {
    match error {
        ReadError::Compacted { .. } => expired("The resourceVersion for the provided list is too old."),
        ReadError::Future { current } => {
            timeout(&format!("Timeout: Too large resource version, current: {current}"))
        }
        ReadError::Closed => shutting_down(),
        ReadError::Engine(error) => of_engine(error),
    }
}

/// A watch that ended or never began.
pub fn of_watch(error: &WatchError, asked: u64) -> Refusal {
    match error {
        WatchError::Compacted { oldest } => expired(format!("too old resource version: {asked} ({oldest})")),
        WatchError::Future { current } => too_new(asked, current.get()),
        WatchError::Closed => shutting_down(),
        WatchError::Engine(error) => of_engine(error),
    }
}

/// A revision that the store has not reached in time.
pub fn too_new(asked: u64, current: u64) -> Refusal {
    let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
    let cause = strata_model::status::Cause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    let details = Details { causes: vec![cause], retry_after_seconds: RETRY_SECONDS, ..Details::default() };
    Box::new(Status::failure(Reason::Timeout, message).with_details(details))
}

/// The server is about to end.
pub fn shutting_down() -> Refusal {
    Box::new(Status::failure(Reason::ServiceUnavailable, "the server is shutting down"))
}

fn storage_full(missing: Option<u64>) -> Refusal {
    let more = missing.map(|bytes| {
        let mebibytes = bytes.div_ceil(1 << 20);
        format!(", {bytes} bytes ({mebibytes} MiB) more than are free now")
    });
    let message = format!(
        "the disk that holds the store is full: nothing was written; deletes still work, other writes work again when there \
         is space{}",
        more.unwrap_or_default()
    );
    Box::new(Status::failure(Reason::InsufficientStorage, message))
}

fn of_engine(error: &EngineError) -> Refusal {
    match error {
        EngineError::NoSpace { missing, .. } => storage_full(*missing),
        EngineError::Compacted { .. } => expired("The provided resource version is too old."),
        EngineError::Corrupt { .. } => internal(format!("stored data is damaged: {error}")),
        EngineError::Unavailable { .. } | EngineError::Refused { .. } => {
            let details = Details { retry_after_seconds: RETRY_SECONDS, ..Details::default() };
            let message = format!("the store cannot be reached: {error}");
            Box::new(Status::failure(Reason::ServiceUnavailable, message).with_details(details))
        }
        EngineError::Uncertain { .. } => {
            let message = format!("the write may or may not have happened: {error}");
            Box::new(Status::failure(Reason::Timeout, message))
        }
        EngineError::Io { .. } | EngineError::Stopped { .. } => {
            let message = format!("the store cannot write: {error}; restart the server when this is mended");
            Box::new(Status::failure(Reason::ServiceUnavailable, message))
        }
    }
}
