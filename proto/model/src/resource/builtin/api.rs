//! What shapes the API itself: `apiregistration.k8s.io`, `apiextensions.k8s.io`, `admissionregistration.k8s.io` and
//! `flowcontrol.apiserver.k8s.io`.

use super::super::ResourceType;
use super::describe::{API_CATEGORY, CLUSTER, STATUS, Traits, describe, text};

/// `apiregistration.k8s.io/v1` APIService.
pub static API_SERVICE: ResourceType = describe(
    ("apiregistration.k8s.io", "v1", "apiservices"),
    "apiservice",
    "APIService",
    Traits { categories: API_CATEGORY, subresources: const { &[STATUS] }, ..CLUSTER },
);

/// `apiextensions.k8s.io/v1` CustomResourceDefinition.
pub static CUSTOM_RESOURCE_DEFINITION: ResourceType = describe(
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
    "customresourcedefinition",
    "CustomResourceDefinition",
    Traits {
        short_names: const { &[text("crd"), text("crds")] },
        categories: API_CATEGORY,
        subresources: const { &[STATUS] },
        counts_generation: true,
        ..CLUSTER
    },
);

/// `admissionregistration.k8s.io/v1` MutatingWebhookConfiguration.
pub static MUTATING_WEBHOOK_CONFIGURATION: ResourceType = describe(
    ("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"),
    "mutatingwebhookconfiguration",
    "MutatingWebhookConfiguration",
    Traits { categories: API_CATEGORY, counts_generation: true, ..CLUSTER },
);

/// `admissionregistration.k8s.io/v1` ValidatingAdmissionPolicy.
pub static VALIDATING_ADMISSION_POLICY: ResourceType = describe(
    ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"),
    "validatingadmissionpolicy",
    "ValidatingAdmissionPolicy",
    Traits {
        categories: API_CATEGORY,
        subresources: const { &[STATUS] },
        counts_generation: true,
        ..CLUSTER
    },
);

/// `admissionregistration.k8s.io/v1` ValidatingAdmissionPolicyBinding.
pub static VALIDATING_ADMISSION_POLICY_BINDING: ResourceType = describe(
    ("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"),
    "validatingadmissionpolicybinding",
    "ValidatingAdmissionPolicyBinding",
    Traits { categories: API_CATEGORY, counts_generation: true, ..CLUSTER },
);

/// `admissionregistration.k8s.io/v1` ValidatingWebhookConfiguration.
pub static VALIDATING_WEBHOOK_CONFIGURATION: ResourceType = describe(
    ("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"),
    "validatingwebhookconfiguration",
    "ValidatingWebhookConfiguration",
    Traits { categories: API_CATEGORY, counts_generation: true, ..CLUSTER },
);

/// `flowcontrol.apiserver.k8s.io/v1` FlowSchema.
pub static FLOW_SCHEMA: ResourceType = describe(
    ("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"),
    "flowschema",
    "FlowSchema",
    Traits { subresources: const { &[STATUS] }, counts_generation: true, ..CLUSTER },
);

/// `flowcontrol.apiserver.k8s.io/v1` PriorityLevelConfiguration.
pub static PRIORITY_LEVEL_CONFIGURATION: ResourceType = describe(
    ("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"),
    "prioritylevelconfiguration",
    "PriorityLevelConfiguration",
    Traits { subresources: const { &[STATUS] }, counts_generation: true, ..CLUSTER },
);
