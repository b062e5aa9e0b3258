//! What all of the REST facade shares.

use std::sync::Arc;

use tokio::sync::watch;

use crate::gate::{Gate, ended};

/// The REST facade.
pub struct Rest {
    /// What it shares with the other facade.
    pub gate: Arc<Gate>,
    /// Turns true when the server ends.
    pub ending: watch::Receiver<bool>,
}

impl Rest {
    /// Done when the server ends.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ending = self.ending.clone();
        async move { ended(&mut ending).await }
    }
}
