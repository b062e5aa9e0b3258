//! The term of a lease that a client's writes are fenced with: the server refuses them once the lease is another's.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tonic::metadata::{Ascii, MetadataValue};

/// One term of a lease: from when its holder took it until another does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Where the Lease is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `spec.acquireTime`, letter by letter.
    pub acquired: String,
    /// `spec.holderIdentity`.
    pub holder: String,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name, acquired, holder } = self;
        write!(f, "{namespace}/{name} {acquired} {holder}")
    }
}

/// A term that cannot be sent: the identity of its holder holds more than visible ASCII.
#[derive(Debug, thiserror::Error)]
#[error("the identity {holder:?} cannot fence writes: it must be visible ASCII")]
pub struct Unsendable {
    /// Whose.
    pub holder: String,
}

/// The term of one client, shared with whoever holds the lease. Without a term its writes are not fenced.
#[derive(Clone, Debug, Default)]
pub struct Fence(Arc<RwLock<Option<MetadataValue<Ascii>>>>);

impl Fence {
    /// From now on writes are made in this term.
    pub fn set(&self, term: &Term) -> Result<(), Unsendable> {
        let value = MetadataValue::try_from(term.to_string())
            .map_err(|_| Unsendable { holder: term.holder.clone() })?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(value);
        Ok(())
    }

    pub(crate) fn value(&self) -> Option<MetadataValue<Ascii>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_header_can_carry_is_refused_and_changes_nothing() {
        let fence = Fence::default();
        let term = |holder: &str| Term {
            namespace: "kube-system".to_owned(),
            name: "deployment".to_owned(),
            acquired: "2026-11-30T10:00:00.000000Z".to_owned(),
            holder: holder.to_owned(),
        };
        fence.set(&term("host_1")).expect("a term");
        assert!(fence.set(&term("host\n1")).is_err());
        let value = fence.value().expect("the first term");
        assert_eq!(value.to_str().ok(), Some("kube-system/deployment 2026-11-30T10:00:00.000000Z host_1"));
    }
}
