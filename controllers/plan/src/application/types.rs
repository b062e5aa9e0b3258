//! The types of the outer loop, and the words by which they are found: labels, annotations, the finalizer. Holds no rule.

use std::sync::LazyLock;

use strata_model::resource::ResourceType;

/// API group of all three types.
pub const GROUP: &str = "argoproj.io";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// The namespace in which Applications live. Those of other namespaces need a project that allows it.
pub const NAMESPACE: &str = "argocd";
/// The destination server that is the platform itself.
pub const IN_CLUSTER: &str = "https://kubernetes.default.svc";
/// The destination name that is the platform itself.
pub const IN_CLUSTER_NAME: &str = "in-cluster";
/// The project of Applications that name none.
pub const DEFAULT_PROJECT: &str = "default";

/// Field manager of everything that is applied from a repository, and name of the controller.
pub const MANAGER: &str = "application";

/// Annotation that says which Application an object belongs to: `app:group/kind:namespace/name`.
pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
/// Annotation of an Application that asks for a refresh: `normal`, or `hard` which forgets renders as well.
pub const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Annotation of a resource: its wave, a number.
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// Annotation of a resource that runs at a phase of a sync.
pub const HOOK: &str = "argocd.argoproj.io/hook";
/// Annotation of a hook: when it is deleted.
pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
/// Annotation of a resource: options of its sync, separated by commas.
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
/// Annotation of a resource: options of its comparison, separated by commas.
pub const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
/// Annotation of an Application: most objects that one sync may prune, a number or a percentage.
pub const MAX_PRUNE: &str = "strata.dev/max-prune";
/// Finalizer of an Application whose objects go with it, in the foreground.
pub const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
/// The same, in the background.
pub const FINALIZER_BACKGROUND: &str = "resources-finalizer.argocd.argoproj.io/background";
/// The same by its older name.
pub const FINALIZER_FOREGROUND: &str = "resources-finalizer.argocd.argoproj.io/foreground";

/// Applications.
pub static APPLICATION: LazyLock<ResourceType> = LazyLock::new(|| one("applications", "Application"));
/// AppProjects.
pub static APP_PROJECT: LazyLock<ResourceType> = LazyLock::new(|| one("appprojects", "AppProject"));
/// ApplicationSets.
pub static APPLICATION_SET: LazyLock<ResourceType> =
    LazyLock::new(|| ResourceType::custom(GROUP, VERSION, "applicationsets", "ApplicationSet"));

/// Applications and projects have no status subresource, as with Argo CD: their status is written with the object.
fn one(plural: &str, kind: &str) -> ResourceType {
    let mut resource = ResourceType::custom(GROUP, VERSION, plural, kind);
    resource.subresources = Vec::new().into();
    resource
}
