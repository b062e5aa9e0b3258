//! Record: one key's value as it was stored at one revision, shared by every reader of it.
//! Knows nothing of what the bytes mean, nor of the form they have on disk.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;

use crate::key::Key;
use crate::revision::Revision;

/// One key's value as it was stored at one revision.
///
/// The same `Arc<Record>` is seen by the live state, the log of recent transactions, snapshots and
/// watchers, so what a reader [derives](Record::derived) from the bytes is computed once for all of them.
pub struct Record {
    /// The key.
    pub key: Key,
    /// The final bytes, with the revision already spliced in where the writer asked for it.
    pub value: Bytes,
    /// Revision at which the key came into being; kept over updates, new after a delete.
    pub created: Revision,
    /// Revision of the transaction that stored this value.
    pub modified: Revision,
    memo: OnceLock<Box<Memo>>,
}

/// One derived value, and the place of the next one of another type.
struct Memo {
    value: Box<dyn Any + Send + Sync>,
    next: OnceLock<Box<Memo>>,
}

impl Record {
    /// A record with nothing derived yet.
    #[must_use]
    pub fn new(key: Key, value: Bytes, created: Revision, modified: Revision) -> Self {
        Record { key, value, created, modified, memo: OnceLock::new() }
    }

    /// What a reader made of the bytes: computed by the first call, the same for all later ones.
    ///
    /// By convention a store's readers use one type `T`. Each further type gets a slot of its own in a
    /// chain that is searched in order, so it is right too, only a little slower. `init` must depend on
    /// the bytes alone: whoever comes first computes it for all. Concurrent first calls wait for one.
    pub fn derived<T: Send + Sync + 'static>(&self, init: impl FnOnce(&Bytes) -> T) -> &T {
        let mut init = Some(init);
        let mut slot = &self.memo;
        loop {
            let memo = slot.get_or_init(|| {
                let made = init.take().map(|init| init(&self.value));
                let value: Box<dyn Any + Send + Sync> = match made {
                    Some(value) => Box::new(value),
                    None => Box::new(()),
                };
                Box::new(Memo { value, next: OnceLock::new() })
            });
            if let Some(value) = memo.value.downcast_ref::<T>() {
                return value;
            }
            slot = &memo.next;
        }
    }

    /// Bytes of key and value together.
    #[must_use]
    pub fn size(&self) -> usize {
        self.key.as_bytes().len() + self.value.len()
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
            && self.value == other.value
            && self.created == other.created
            && self.modified == other.modified
    }
}

impl Eq for Record {}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("key", &self.key)
            .field("value", &self.value)
            .field("created", &self.created)
            .field("modified", &self.modified)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_is_computed_once_per_type() {
        let record = Record::new("k".into(), "12".into(), Revision::ZERO, Revision::ZERO);
        let number: &u32 = record.derived(|bytes| bytes.len() as u32);
        assert_eq!(*number, 2);
        let text: &String = record.derived(|bytes| format!("{bytes:?}"));
        assert_eq!(text, "b\"12\"");
        assert_eq!(record.derived::<u32>(|_| panic!("computed twice")), &2);
        assert_eq!(record.derived::<String>(|_| panic!("computed twice")), text);
    }
}
