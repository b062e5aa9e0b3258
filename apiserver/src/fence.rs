//! Fencing: a writer that says which lease it acts under is refused once the lease is another's. The check is part of
//! the transaction, so that no write of an old leader comes after the first of the new one. Pure; knows no controller.

use serde_json::Value;
use strata_model::resource::builtin;
use strata_model::status::{Details, Reason, Status};
use strata_store::key::Key;
use strata_store::snapshot::Snapshot;
use strata_store::txn::Condition;
use strata_wire::FENCE_HEADER;

use crate::refusal::{Outcome, Refusal, bad_request};
use crate::storage;
use crate::value::text;

/// Longest header, bytes.
const MAX_HEADER: usize = 1024;

/// One term of a lease: from when its holder took it until another does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Where the Lease is.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `spec.acquireTime`, letter by letter.
    pub acquired: String,
    /// `spec.holderIdentity`.
    pub holder: String,
}

impl Fence {
    /// Reads a header's value.
    pub fn parse(header: &str) -> Outcome<Self> {
        let wrong = || {
            let form = "NAMESPACE/NAME ACQUIRE-TIME HOLDER-IDENTITY";
            bad_request(format!(
                "the header {FENCE_HEADER} must be of the form \"{form}\", at most {MAX_HEADER} bytes"
            ))
        };
        if header.len() > MAX_HEADER {
            return Err(wrong());
        }
        let mut words = header.splitn(3, ' ');
        let (Some(lease), Some(acquired), Some(holder)) = (words.next(), words.next(), words.next()) else {
            return Err(wrong());
        };
        let (namespace, name) = lease.split_once('/').ok_or_else(wrong)?;
        if [namespace, name, acquired, holder].contains(&"") {
            return Err(wrong());
        }
        let [namespace, name, acquired, holder] = [namespace, name, acquired, holder].map(str::to_owned);
        Ok(Self { namespace, name, acquired, holder })
    }

    /// The key of the Lease.
    pub fn key(&self) -> Key {
        storage::key(&builtin::LEASE.id, &self.namespace, &self.name)
    }

    /// The condition under which the term goes on; refused where it is over.
    pub fn holds(&self, snapshot: &Snapshot) -> Outcome<Condition> {
        let Some(record) = snapshot.get(&self.key()) else {
            return Err(self.over("it is gone"));
        };
        let lease = storage::parse(&record)?;
        self.check(&lease)?;
        Ok(Condition::At(record.modified))
    }

    fn check(&self, lease: &Value) -> Outcome<()> {
        let holder = text(lease, &["spec", "holderIdentity"]);
        if holder.is_empty() {
            return Err(self.over("nobody holds it"));
        }
        if holder != self.holder {
            return Err(self.over(&format!("{holder} holds it")));
        }
        if text(lease, &["spec", "acquireTime"]) != self.acquired {
            return Err(self.over("its holder has taken it anew"));
        }
        Ok(())
    }

    fn over(&self, why: &str) -> Refusal {
        let message = format!(
            "this writer no longer leads: it acts under the lease {}/{} as {} since {}, and {why}; nothing was written",
            self.namespace, self.name, self.holder, self.acquired
        );
        let details = Details {
            group: builtin::LEASE.id.group.to_string(),
            kind: builtin::LEASE.id.resource.to_string(),
            name: self.name.clone(),
            ..Details::default()
        };
        Box::new(Status::failure(Reason::Conflict, message).with_details(details))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const HEADER_VALUE: &str = "kube-system/deployment 2026-11-30T10:00:00.000000Z host 7_strata";

    #[test]
    fn a_header_names_a_term_and_rubbish_is_refused() {
        let fence = Fence::parse(HEADER_VALUE).expect("a term");
        assert_eq!((fence.namespace.as_str(), fence.name.as_str()), ("kube-system", "deployment"));
        assert_eq!(fence.holder, "host 7_strata");
        for wrong in
            ["", "x", "a/b", "a/b c", "ab c d", "/b c d", "a/ c d", "a/b  d", "a/b c ", &"a".repeat(2000)]
        {
            let refused = Fence::parse(wrong).expect_err(wrong);
            assert_eq!(refused.reason, Some(Reason::BadRequest), "{wrong}");
        }
    }

    #[test]
    fn a_term_ends_when_the_lease_is_given_back_taken_by_another_or_taken_anew() {
        let fence = Fence::parse(HEADER_VALUE).expect("a term");
        let lease = |holder: &str, at: &str| json!({"spec": {"holderIdentity": holder, "acquireTime": at}});
        assert!(fence.check(&lease(&fence.holder, &fence.acquired)).is_ok());
        for (holder, at, says) in [
            ("", fence.acquired.as_str(), "nobody holds it"),
            ("other", &fence.acquired, "other holds it"),
            (&fence.holder, "2026-11-30T10:00:01.000000Z", "taken it anew"),
        ] {
            let refused = fence.check(&lease(holder, at)).expect_err("over");
            assert_eq!(refused.reason, Some(Reason::Conflict));
            assert!(refused.message.contains(says), "{}", refused.message);
        }
    }
}
