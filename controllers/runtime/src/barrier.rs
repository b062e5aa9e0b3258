//! What a key waits for: that the cache shows what the key itself wrote.

use std::collections::BTreeMap;

use strata_model::object::ObjectKey;
use strata_model::resource::GroupResource;

/// What the cache must have seen before a key runs again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Barrier {
    /// Everything of a type up to a revision.
    Revision(GroupResource, u64),
    /// That an object is no longer as it was: writes that answer no revision (a binding, a removal).
    Left {
        /// Type.
        resource: GroupResource,
        /// Which.
        key: ObjectKey,
        /// Its identity.
        uid: String,
        /// The state that is left; `None`: the object goes.
        resource_version: Option<String>,
    },
}

/// Of barriers on the revision of one type the highest stays: it is passed last.
pub fn strongest(barriers: Vec<Barrier>) -> Vec<Barrier> {
    let mut revisions: BTreeMap<GroupResource, u64> = BTreeMap::new();
    let mut strongest = Vec::new();
    for barrier in barriers {
        match barrier {
            Barrier::Revision(resource, at) => {
                let highest = revisions.entry(resource).or_default();
                *highest = at.max(*highest);
            }
            left @ Barrier::Left { .. } => strongest.push(left),
        }
    }
    strongest.extend(revisions.into_iter().map(|(resource, at)| Barrier::Revision(resource, at)));
    strongest
}

#[cfg(test)]
mod tests {
    use strata_model::resource::builtin;

    use super::*;

    #[test]
    fn of_many_revisions_the_highest_counts_and_every_object_counts() {
        let (pods, nodes) = (builtin::POD.id.clone(), builtin::NODE.id.clone());
        let left = |name: &str| Barrier::Left {
            resource: pods.clone(),
            key: ObjectKey::new("n", name),
            uid: name.to_owned(),
            resource_version: None,
        };
        let at = |resource: &GroupResource, revision| Barrier::Revision(resource.clone(), revision);
        let all = vec![at(&pods, 7), left("a"), at(&nodes, 3), at(&pods, 9), left("b"), at(&pods, 8)];
        let mut kept = strongest(all);
        kept.sort();
        assert_eq!(kept, [at(&nodes, 3), at(&pods, 9), left("a"), left("b")]);
    }
}
