//! The five types. The definitions that the server needs are derived from the structs.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strata_model::condition::{self, Condition};
use strata_model::resource::ResourceType;

/// Label of everything that belongs to a track: its name.
pub const TRACK: &str = "examples.strata.dev/track";
/// Finalizer of what holds an image on disk: the image is taken away first.
pub const HELD: &str = "examples.strata.dev/image";
/// Names that are safe as a folder.
const SAFE: &str = "^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$";

/// The wish that every version of a program is built and published.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.strata.dev", version = "v1", kind = "ReleaseTrack", namespaced)]
#[kube(status = "TrackStatus", derive = "Default")]
#[kube(printcolumn = r#"{"name": "Image", "type": "string", "jsonPath": ".spec.image"}"#)]
#[kube(printcolumn = r#"{"name": "Versions", "type": "integer", "jsonPath": ".status.versions"}"#)]
#[kube(printcolumn = r#"{"name": "Published", "type": "integer", "jsonPath": ".status.published"}"#)]
pub struct ReleaseTrackSpec {
    /// The folder with the sources: each folder in it is a version.
    pub upstream: String,
    /// Name of the image.
    #[schemars(regex(pattern = SAFE))]
    pub image: String,
}

/// How far a track is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrackStatus {
    /// Versions that upstream has.
    pub versions: i64,
    /// Those of them that are published as they are.
    pub published: i64,
    /// The generation that was looked at.
    pub observed_generation: i64,
    /// `Ready` once all are published.
    pub conditions: Vec<Said>,
}

/// The wish that one version is built. Made by its track.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.strata.dev", version = "v1", kind = "ImageBuild", namespaced)]
#[kube(status = "HeldStatus", derive = "Default")]
#[kube(printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".spec.version"}"#)]
#[kube(printcolumn = r#"{"name": "Digest", "type": "string", "jsonPath": ".status.digest"}"#)]
#[serde(rename_all = "camelCase")]
pub struct ImageBuildSpec {
    /// Name of the image.
    #[schemars(regex(pattern = SAFE))]
    pub image: String,
    /// The version.
    #[schemars(regex(pattern = SAFE))]
    pub version: String,
    /// The folder with its sources.
    pub source: String,
    /// Digest of what is in that folder: other sources are another build.
    pub source_digest: String,
}

/// The wish that a built image is published under its version. Made by its track.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.strata.dev", version = "v1", kind = "Publication", namespaced)]
#[kube(status = "HeldStatus", derive = "Default")]
#[kube(printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".spec.version"}"#)]
#[kube(printcolumn = r#"{"name": "Digest", "type": "string", "jsonPath": ".status.digest"}"#)]
pub struct PublicationSpec {
    /// Name of the image.
    #[schemars(regex(pattern = SAFE))]
    pub image: String,
    /// The version.
    #[schemars(regex(pattern = SAFE))]
    pub version: String,
    /// Digest of the image.
    pub digest: String,
}

/// The wish that a customer has all that a track publishes.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.strata.dev", version = "v1", kind = "Entitlement", namespaced)]
#[kube(status = "EntitlementStatus", derive = "Default")]
#[kube(printcolumn = r#"{"name": "Customer", "type": "string", "jsonPath": ".spec.customer"}"#)]
#[kube(printcolumn = r#"{"name": "Published", "type": "integer", "jsonPath": ".status.published"}"#)]
#[kube(printcolumn = r#"{"name": "Delivered", "type": "integer", "jsonPath": ".status.delivered"}"#)]
pub struct EntitlementSpec {
    /// Who.
    #[schemars(regex(pattern = SAFE))]
    pub customer: String,
    /// Name of the track, in the same namespace.
    pub track: String,
}

/// How far an entitlement is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EntitlementStatus {
    /// Versions that are published.
    pub published: i64,
    /// Those of them that the customer has.
    pub delivered: i64,
    /// The generation that was looked at.
    pub observed_generation: i64,
    /// `Ready` once the customer has all.
    pub conditions: Vec<Said>,
}

/// The wish that a customer has one image. Made by an entitlement.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.strata.dev", version = "v1", kind = "Delivery", plural = "deliveries", namespaced)]
#[kube(status = "HeldStatus", derive = "Default")]
#[kube(printcolumn = r#"{"name": "Customer", "type": "string", "jsonPath": ".spec.customer"}"#)]
#[kube(printcolumn = r#"{"name": "Version", "type": "string", "jsonPath": ".spec.version"}"#)]
#[kube(printcolumn = r#"{"name": "Digest", "type": "string", "jsonPath": ".status.digest"}"#)]
pub struct DeliverySpec {
    /// Who.
    #[schemars(regex(pattern = SAFE))]
    pub customer: String,
    /// Name of the image.
    #[schemars(regex(pattern = SAFE))]
    pub image: String,
    /// The version.
    #[schemars(regex(pattern = SAFE))]
    pub version: String,
    /// Digest of the image.
    pub digest: String,
}

/// What is on disk.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HeldStatus {
    /// Digest of the image that is there; empty: none.
    pub digest: String,
    /// The generation that was looked at.
    pub observed_generation: i64,
    /// `Ready` once it is there.
    pub conditions: Vec<Said>,
}

/// A condition, as the schema tells it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Said {
    /// Which.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True` or `False`.
    pub status: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when, RFC 3339.
    pub last_transition_time: String,
}

/// The conditions of an object with `Ready` as it is now.
pub fn ready(object: &Value, is: bool, reason: &str, message: &str, now: Timestamp) -> Value {
    let mut list: Vec<Condition> =
        serde_json::from_value(object["status"]["conditions"].clone()).unwrap_or_default();
    let new = Condition {
        type_: "Ready".to_owned(),
        status: if is { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    };
    condition::set(&mut list, new, now);
    // Whole, as the schema has them: a field that is left out comes back as its default.
    let all = list.into_iter().map(|c| Said {
        type_: c.type_,
        status: c.status,
        reason: c.reason,
        message: c.message,
        last_transition_time: c.last_transition_time.unwrap_or_default(),
    });
    json!(all.collect::<Vec<_>>())
}

/// All definitions, as they are applied to a server.
pub fn definitions() -> [CustomResourceDefinition; 5] {
    [ReleaseTrack::crd(), ImageBuild::crd(), Publication::crd(), Entitlement::crd(), Delivery::crd()]
}

fn custom(plural: &str, kind: &str) -> ResourceType {
    ResourceType::custom("examples.strata.dev", "v1", plural, kind)
}

/// The type of tracks.
pub fn tracks() -> ResourceType {
    custom("releasetracks", "ReleaseTrack")
}

/// The type of builds.
pub fn builds() -> ResourceType {
    custom("imagebuilds", "ImageBuild")
}

/// The type of publications.
pub fn publications() -> ResourceType {
    custom("publications", "Publication")
}

/// The type of entitlements.
pub fn entitlements() -> ResourceType {
    custom("entitlements", "Entitlement")
}

/// The type of deliveries.
pub fn deliveries() -> ResourceType {
    custom("deliveries", "Delivery")
}
