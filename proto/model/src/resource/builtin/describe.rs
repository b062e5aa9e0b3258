//! How the constants of built-in types are written down. Knows no type.

use std::borrow::Cow;

use super::super::{
    ALL_VERBS, CREATE_ONLY, GroupResource, READ_WRITE, ResourceType, Scope, Subresource, Text, Verb,
};

pub(super) const fn text(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

/// A subresource whose body is of its parent's kind.
pub(super) const fn part(name: &'static str, verbs: &'static [Verb]) -> Subresource {
    Subresource { name: text(name), body: None, verbs }
}

/// A subresource with a body of another kind.
pub(super) const fn part_as(
    name: &'static str,
    verbs: &'static [Verb],
    (group, version, kind): (&'static str, &'static str, &'static str),
) -> Subresource {
    Subresource { name: text(name), body: Some((text(group), text(version), text(kind))), verbs }
}

/// The subresource `status`.
pub(super) const STATUS: Subresource = part("status", READ_WRITE);
/// The subresource `scale`.
pub(super) const SCALE: Subresource = part_as("scale", READ_WRITE, ("autoscaling", "v1", "Scale"));
/// The subresource `binding` of pods.
pub(super) const BINDING: Subresource = part_as("binding", CREATE_ONLY, ("", "v1", "Binding"));
/// The subresource `eviction` of pods.
pub(super) const EVICTION: Subresource = part_as("eviction", CREATE_ONLY, ("policy", "v1", "Eviction"));

/// What is in `kubectl get all`.
pub(super) const ALL_CATEGORY: &[Text] = &[text("all")];
/// What shapes the API itself.
pub(super) const API_CATEGORY: &[Text] = &[text("api-extensions")];

/// Where a type differs from the plain one. Holds references alone, so that constants can be built from it.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    pub short_names: &'static [Text],
    pub categories: &'static [Text],
    pub scope: Scope,
    pub verbs: &'static [Verb],
    pub subresources: &'static [Subresource],
    pub counts_generation: bool,
}

/// Namespaced, all verbs, nothing else.
pub(super) const PLAIN: Traits = Traits {
    short_names: &[],
    categories: &[],
    scope: Scope::Namespaced,
    verbs: ALL_VERBS,
    subresources: &[],
    counts_generation: false,
};

/// Beside all namespaces, all verbs, nothing else.
pub(super) const CLUSTER: Traits = Traits { scope: Scope::Cluster, ..PLAIN };

pub(super) const fn describe(
    (group, version, plural): (&'static str, &'static str, &'static str),
    singular: &'static str,
    kind: &'static str,
    traits: Traits,
) -> ResourceType {
    ResourceType {
        id: GroupResource::constant(group, plural),
        version: text(version),
        kind: text(kind),
        singular: text(singular),
        short_names: Cow::Borrowed(traits.short_names),
        categories: Cow::Borrowed(traits.categories),
        scope: traits.scope,
        verbs: traits.verbs,
        subresources: Cow::Borrowed(traits.subresources),
        counts_generation: traits.counts_generation,
    }
}
