//! The order of a sync: phases, within them waves, within those what others need before what needs it. Pruning comes
//! last, in the opposite order.

use super::desired::{Desired, Phase};
use super::identity::ObjectId;

/// What is needed by others, by group and kind, in the order in which it is made within a wave.
const NEEDED: [(u8, &str, &[&str]); 5] = [
    (0, "", &["Namespace"]),
    (1, "apiextensions.k8s.io", &["CustomResourceDefinition"]),
    (
        2,
        "",
        &[
            "ResourceQuota",
            "LimitRange",
            "ServiceAccount",
            "Secret",
            "ConfigMap",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Service",
        ],
    ),
    (2, "rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]),
    (2, "storage.k8s.io", &["StorageClass"]),
];
/// The rank of all that nothing else needs.
const REST: u8 = 3;
/// The rank of definitions of types.
pub const DEFINITIONS: u8 = 1;

/// The rank within a wave.
pub fn rank(id: &ObjectId) -> u8 {
    let is_it =
        |(_, group, kinds): &&(u8, &str, &[&str])| *group == id.group && kinds.contains(&id.kind.as_str());
    NEEDED.iter().find(is_it).map_or(REST, |(rank, _, _)| *rank)
}

/// Where in a sync a thing is done: everything of one stage side by side, stages one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stage {
    /// Phase.
    pub phase: Phase,
    /// Pruning comes after everything else of its phase.
    pub prunes: bool,
    /// Wave; turned round where it prunes.
    pub wave: i64,
    /// Rank; turned round where it prunes.
    pub rank: u8,
}

/// The stage of an object in a phase.
pub fn applied(desired: &Desired, phase: Phase) -> Stage {
    Stage { phase, prunes: false, wave: desired.wave, rank: rank(&desired.id) }
}

/// The stage in which an object is pruned.
pub fn pruned(id: &ObjectId, wave: i64) -> Stage {
    Stage { phase: Phase::Sync, prunes: true, wave: wave.saturating_neg(), rank: REST - rank(id) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(group: &str, kind: &str) -> ObjectId {
        ObjectId { group: group.to_owned(), kind: kind.to_owned(), ..ObjectId::default() }
    }

    #[test]
    fn what_is_needed_comes_first_and_goes_last() {
        let namespace = id("", "Namespace");
        let definition = id("apiextensions.k8s.io", "CustomResourceDefinition");
        let deployment = id("apps", "Deployment");
        let ranks = [&namespace, &definition, &id("", "Secret"), &deployment].map(rank);
        assert!(ranks.is_sorted());
        assert_eq!(ranks[1], DEFINITIONS);
        let mut stages = [pruned(&namespace, 0), pruned(&deployment, 0), pruned(&deployment, 5)];
        stages.sort();
        assert_eq!(stages, [pruned(&deployment, 5), pruned(&deployment, 0), pruned(&namespace, 0)]);
    }
}
