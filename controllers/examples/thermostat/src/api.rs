//! What a Thermostat is. The definition that the server needs is derived from the struct.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strata_model::resource::ResourceType;

/// The wish.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "examples.strata.dev", version = "v1", kind = "Thermostat", namespaced, shortname = "thermo")]
#[kube(status = "ThermostatStatus", derive = "Default")]
#[kube(printcolumn = r#"{"name": "Wanted", "type": "number", "jsonPath": ".spec.degrees"}"#)]
#[kube(printcolumn = r#"{"name": "Actual", "type": "number", "jsonPath": ".status.degrees"}"#)]
#[kube(printcolumn = r#"{"name": "Heating", "type": "boolean", "jsonPath": ".status.heating"}"#)]
pub struct ThermostatSpec {
    /// How warm it should be, in degrees Celsius.
    #[schemars(range(min = 5.0, max = 30.0))]
    pub degrees: f64,
}

/// The actual state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ThermostatStatus {
    /// How warm it is.
    pub degrees: f64,
    /// Whether the heating is on.
    pub heating: bool,
    /// When that was measured, RFC 3339.
    pub measured_at: String,
    /// The generation of the wish that was looked at.
    pub observed_generation: i64,
}

/// The definition, as it is applied to a server.
pub fn definition() -> CustomResourceDefinition {
    Thermostat::crd()
}

/// The type, as the runtime watches it.
pub fn resource() -> ResourceType {
    ResourceType::custom("examples.strata.dev", "v1", "thermostats", "Thermostat")
}
