//! Who may do what: `rbac.authorization.k8s.io` and `certificates.k8s.io`.

use super::super::{READ_WRITE, ResourceType};
use super::describe::{CLUSTER, PLAIN, STATUS, Traits, describe, part, text};

/// `rbac.authorization.k8s.io/v1` ClusterRoleBinding.
pub static CLUSTER_ROLE_BINDING: ResourceType = describe(
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
    "clusterrolebinding",
    "ClusterRoleBinding",
    CLUSTER,
);

/// `rbac.authorization.k8s.io/v1` ClusterRole.
pub static CLUSTER_ROLE: ResourceType =
    describe(("rbac.authorization.k8s.io", "v1", "clusterroles"), "clusterrole", "ClusterRole", CLUSTER);

/// `rbac.authorization.k8s.io/v1` RoleBinding.
pub static ROLE_BINDING: ResourceType =
    describe(("rbac.authorization.k8s.io", "v1", "rolebindings"), "rolebinding", "RoleBinding", PLAIN);

/// `rbac.authorization.k8s.io/v1` Role.
pub static ROLE: ResourceType = describe(("rbac.authorization.k8s.io", "v1", "roles"), "role", "Role", PLAIN);

/// `certificates.k8s.io/v1` CertificateSigningRequest.
pub static CERTIFICATE_SIGNING_REQUEST: ResourceType = describe(
    ("certificates.k8s.io", "v1", "certificatesigningrequests"),
    "certificatesigningrequest",
    "CertificateSigningRequest",
    Traits {
        short_names: const { &[text("csr")] },
        subresources: const { &[part("approval", READ_WRITE), STATUS] },
        ..CLUSTER
    },
);
