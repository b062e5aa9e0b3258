//! Following one object until something holds of it: a level is looked at again with every change, nothing is polled.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use strata_client::error::ClientError;
use strata_client::event::{Event, WatchOptions};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::session::Session;
use crate::commands::target::value_of;
use crate::output::stdout;

/// How following ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The look at it was satisfied.
    Done(T),
    /// The time was over first.
    TimedOut,
}

/// Shows `look` the object as it is, and again with every change, until it breaks: `None` is that there is none.
/// Without a timeout it may go on for ever.
pub async fn object<T>(
    session: &Session,
    resource: &ResourceType,
    key: &ObjectKey,
    timeout: Option<Duration>,
    mut look: impl FnMut(Option<&Value>) -> CliResult<ControlFlow<T>>,
) -> CliResult<Outcome<T>> {
    let options = WatchOptions {
        namespace: key.namespace.clone(),
        field_selector: format!("metadata.name={}", key.name),
        ..WatchOptions::default()
    };
    let mut watch = session.watches().open(resource, options);
    let follow = async {
        let mut seen = false;
        loop {
            let state: Option<Arc<Object>> = match watch.next().await {
                None => return Err(usage("the watch ended; try again")),
                Some(Event::Failed(error)) => return Err(shared(error)),
                Some(Event::Lost(error)) => {
                    stdout::say(&format!("Warning: {error}; trying again"));
                    continue;
                }
                Some(Event::Restarted) => {
                    seen = false;
                    continue;
                }
                Some(Event::Initial(object)) | Some(Event::Applied(object, _)) => {
                    seen = true;
                    Some(object)
                }
                Some(Event::InitialEnd(_)) if seen => continue,
                Some(Event::InitialEnd(_)) | Some(Event::Deleted(..)) => None,
                Some(Event::Progress(_)) => continue,
            };
            let value = state.map(|object| value_of(resource, &object)).transpose()?;
            if let ControlFlow::Break(done) = look(value.as_ref())? {
                return Ok(done);
            }
        }
    };
    match timeout {
        None => follow.await.map(Outcome::Done),
        Some(limit) => match tokio::time::timeout(limit, follow).await {
            Ok(done) => done.map(Outcome::Done),
            Err(_) => Ok(Outcome::TimedOut),
        },
    }
}

/// Waits until the object of this uid is gone (an empty uid: any of the name).
pub async fn gone(
    session: &Session,
    resource: &ResourceType,
    key: &ObjectKey,
    uid: &str,
    timeout: Option<Duration>,
) -> CliResult<Outcome<()>> {
    object(session, resource, key, timeout, |state| {
        let there = state.is_some_and(|value| uid.is_empty() || value["metadata"]["uid"] == uid);
        Ok(if there { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })
    .await
}

/// An error that several watches share.
pub fn shared(error: Arc<ClientError>) -> CliError {
    match Arc::try_unwrap(error) {
        Ok(error) => error.into(),
        Err(shared) => match shared.status() {
            Some(status) => ClientError::refused(status.clone()).into(),
            None => usage(shared.to_string()),
        },
    }
}
