//! `networking.k8s.io` and `discovery.k8s.io`.

use super::super::ResourceType;
use super::describe::{CLUSTER, PLAIN, STATUS, Traits, describe, text};

/// `networking.k8s.io/v1` IngressClass.
pub static INGRESS_CLASS: ResourceType = describe(
    ("networking.k8s.io", "v1", "ingressclasses"),
    "ingressclass",
    "IngressClass",
    Traits { counts_generation: true, ..CLUSTER },
);

/// `networking.k8s.io/v1` Ingress.
pub static INGRESS: ResourceType = describe(
    ("networking.k8s.io", "v1", "ingresses"),
    "ingress",
    "Ingress",
    Traits {
        short_names: const { &[text("ing")] },
        subresources: const { &[STATUS] },
        counts_generation: true,
        ..PLAIN
    },
);

/// `networking.k8s.io/v1` NetworkPolicy.
pub static NETWORK_POLICY: ResourceType = describe(
    ("networking.k8s.io", "v1", "networkpolicies"),
    "networkpolicy",
    "NetworkPolicy",
    Traits { short_names: const { &[text("netpol")] }, counts_generation: true, ..PLAIN },
);

/// `discovery.k8s.io/v1` EndpointSlice.
pub static ENDPOINT_SLICE: ResourceType = describe(
    ("discovery.k8s.io", "v1", "endpointslices"),
    "endpointslice",
    "EndpointSlice",
    Traits { counts_generation: true, ..PLAIN },
);
