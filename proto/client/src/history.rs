//! Time travel: which revision a moment was, and what happened to objects within the kept history. The state of then
//! is read by [`Client::get`] and [`Client::list`] with an exact revision.

use std::time::Duration;

use bytes::Bytes;
use strata_model::object::ObjectKey;
use strata_model::resource::ResourceType;
use strata_wire::convert;
use strata_wire::v1;
use strata_wire::v1::history_client::HistoryClient;
use strata_wire::v1::moment_request::Which;

use crate::client::Client;
use crate::connect::MAX_MESSAGE;
use crate::error::ClientError;

/// A moment of the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// The newest state.
    #[default]
    Now,
    /// Right after this revision.
    Revision(u64),
    /// So long ago, by the server's clock.
    Ago(Duration),
    /// At this instant, RFC 3339.
    Time(String),
}

/// A moment, found in history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The newest revision of the moment.
    pub revision: u64,
    /// When its transaction was taken, RFC 3339; empty where history has only what came after it.
    pub time: String,
    /// The oldest revision that is kept.
    pub oldest: u64,
}

/// Which changes are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangesOptions {
    /// Changes after this revision; 0 is all that are kept.
    pub after: u64,
    /// Changes up to this revision; 0 is the newest.
    pub through: u64,
    /// The newest so many; 0 is the server's default.
    pub limit: u64,
    /// Whether the objects before and after are wanted.
    pub include_objects: bool,
}

/// What a change did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object came into being.
    Added,
    /// It was changed.
    #[default]
    Modified,
    /// It went.
    Deleted,
}

/// What one transaction did to one object.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The revision of the transaction.
    pub revision: u64,
    /// When, RFC 3339.
    pub time: String,
    /// What it did.
    pub kind: ChangeKind,
    /// The object.
    pub key: ObjectKey,
    /// Who wrote; empty where that is not known.
    pub user: String,
    /// `create`, `update`, `patch`, `apply` or `delete`.
    pub verb: String,
    /// The subresource that was written through, or empty.
    pub subresource: String,
    /// Who manages what was written.
    pub manager: String,
    /// The id of the request.
    pub request: String,
    /// Why, in the writer's words.
    pub cause: String,
    /// The fields that got another value or went.
    pub fields: Vec<String>,
    /// Whether there were more fields than are named.
    pub more_fields: bool,
    /// The object after it, where it was asked for and is there.
    pub object: Bytes,
    /// The object before it, where it was asked for and was there.
    pub previous: Bytes,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Oldest first.
    pub changes: Vec<Change>,
    /// The oldest revision that is kept.
    pub oldest: u64,
    /// Everything up to this revision is told.
    pub through: u64,
    /// Whether older changes were left out.
    pub truncated: bool,
}

impl Client {
    /// Finds a moment in the kept history.
    pub async fn moment(&self, when: &When) -> Result<Moment, ClientError> {
        let which = match when {
            When::Now => None,
            When::Revision(revision) => Some(Which::Revision(*revision)),
            When::Ago(ago) => {
                Some(Which::MillisecondsAgo(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX)))
            }
            When::Time(time) => Some(Which::Time(time.clone())),
        };
        let mut history = HistoryClient::new(self.channels.next());
        let call = history.moment(self.request(v1::MomentRequest { which }));
        let v1::MomentResponse { revision, time, oldest_revision } = self.answer("moment", call).await?;
        Ok(Moment { revision, time, oldest: oldest_revision })
    }

    /// What happened to one object, or (with an empty name) to all of a type.
    pub async fn changes(
        &self,
        resource: &ResourceType,
        key: &ObjectKey,
        options: ChangesOptions,
    ) -> Result<Changes, ClientError> {
        let message = v1::ChangesRequest {
            resource: Some(convert::resource_ref(resource)),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            after_revision: options.after,
            through_revision: options.through,
            limit: options.limit,
            include_objects: options.include_objects,
        };
        let mut history = HistoryClient::new(self.channels.next()).max_decoding_message_size(MAX_MESSAGE);
        let mut chunks = self.answer("history", history.changes(self.open_request(message))).await?;
        let mut all = Changes::default();
        while let Some(chunk) =
            self.in_time("history", chunks.message()).await?.map_err(|e| self.failed(e))?
        {
            all.changes.extend(chunk.changes.into_iter().map(change));
            all.oldest = chunk.oldest_revision;
            all.through = chunk.through_revision;
            all.truncated = chunk.truncated;
        }
        Ok(all)
    }
}

fn change(told: v1::ObjectChange) -> Change {
    let kind = match told.r#type() {
        v1::EventType::Added => ChangeKind::Added,
        v1::EventType::Deleted => ChangeKind::Deleted,
        v1::EventType::Modified | v1::EventType::Unspecified => ChangeKind::Modified,
    };
    Change {
        revision: told.revision,
        time: told.time,
        kind,
        key: ObjectKey::new(told.namespace, told.name),
        user: told.user,
        verb: told.verb,
        subresource: told.subresource,
        manager: told.manager,
        request: told.request,
        cause: told.cause,
        fields: told.fields,
        more_fields: told.more_fields,
        object: told.object,
        previous: told.previous,
    }
}
