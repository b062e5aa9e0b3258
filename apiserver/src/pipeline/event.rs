//! Events of watches. Plain data.

use bytes::Bytes;

/// What happened to an object, as the watcher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It came, or came to be selected.
    Added,
    /// It changed.
    Modified,
    /// It went, or is selected no more.
    Deleted,
}

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// The object, as JSON; of one that went, its last state with the revision of its end.
    pub bytes: Bytes,
    /// The revision of the transaction.
    pub revision: u64,
}
