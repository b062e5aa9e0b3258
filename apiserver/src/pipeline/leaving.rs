//! Definitions of custom types on their way out. Plain data.

use std::sync::Arc;

use crate::custom::definition::Definition;
use crate::types::catalogue::Served;

/// A definition that is being deleted.
#[derive(Clone)]
pub struct Leaving {
    /// The definition.
    pub definition: Arc<Definition>,
    /// The type in its stored version; `None` where it was never served.
    pub stored: Option<Arc<Served>>,
}
