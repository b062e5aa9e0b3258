//! What lies below pods: `storage.k8s.io`, `node.k8s.io` and `coordination.k8s.io`.

use super::super::ResourceType;
use super::describe::{CLUSTER, PLAIN, STATUS, Traits, describe, text};

/// `storage.k8s.io/v1` CSIDriver.
pub static CSI_DRIVER: ResourceType =
    describe(("storage.k8s.io", "v1", "csidrivers"), "csidriver", "CSIDriver", CLUSTER);

/// `storage.k8s.io/v1` CSINode.
pub static CSI_NODE: ResourceType =
    describe(("storage.k8s.io", "v1", "csinodes"), "csinode", "CSINode", CLUSTER);

/// `storage.k8s.io/v1` CSIStorageCapacity.
pub static CSI_STORAGE_CAPACITY: ResourceType = describe(
    ("storage.k8s.io", "v1", "csistoragecapacities"),
    "csistoragecapacity",
    "CSIStorageCapacity",
    PLAIN,
);

/// `storage.k8s.io/v1` StorageClass.
pub static STORAGE_CLASS: ResourceType = describe(
    ("storage.k8s.io", "v1", "storageclasses"),
    "storageclass",
    "StorageClass",
    Traits { short_names: const { &[text("sc")] }, ..CLUSTER },
);

/// `storage.k8s.io/v1` VolumeAttachment.
pub static VOLUME_ATTACHMENT: ResourceType = describe(
    ("storage.k8s.io", "v1", "volumeattachments"),
    "volumeattachment",
    "VolumeAttachment",
    Traits { subresources: const { &[STATUS] }, ..CLUSTER },
);

/// `node.k8s.io/v1` RuntimeClass.
pub static RUNTIME_CLASS: ResourceType =
    describe(("node.k8s.io", "v1", "runtimeclasses"), "runtimeclass", "RuntimeClass", CLUSTER);

/// `coordination.k8s.io/v1` Lease.
pub static LEASE: ResourceType = describe(("coordination.k8s.io", "v1", "leases"), "lease", "Lease", PLAIN);
