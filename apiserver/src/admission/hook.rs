//! Webhooks that are asked about writes: read once of their configurations. Pure; knows not how one is called.

use std::time::Duration;

use serde_json::Value;

use super::asked::Asked;
use super::matching::Matching;
use super::terms::{self, Conditions};
use crate::expression::budget::Budget;
use crate::types::admission::OF_REQUESTS;
use crate::value::{at, int, list, text};

/// Seconds that a webhook gets where it does not say.
const DEFAULT_SECONDS: i64 = 10;

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a URL.
    Url(String),
    /// Behind a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The port of the Service.
        port: u16,
        /// The path, with its `/`.
        path: String,
    },
}

/// A webhook.
#[derive(Debug)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Authorities of its certificate: base64 of PEM.
    pub authority: String,
    /// How long a call may take.
    pub timeout: Duration,
    /// The version of reviews that it understands; `None` where it is none of ours.
    pub review: Option<&'static str>,
    /// Whether a write goes on when it cannot be asked.
    pub lenient: bool,
    /// Whether it leaves nothing behind when it is told of a dry run.
    pub is_pure: bool,
    /// Whether it is asked again when others changed the object after it.
    pub again: bool,
    matching: Matching,
    conditions: Conditions,
}

impl Hook {
    /// The webhooks of a configuration, in its order.
    pub fn all(configuration: &Value) -> Vec<Self> {
        list(configuration, &["webhooks"]).iter().map(Self::read).collect()
    }

    fn read(hook: &Value) -> Self {
        let config = at(hook, &["clientConfig"]).unwrap_or(&Value::Null);
        let place = match at(config, &["service"]) {
            Some(service) => Place::Service {
                namespace: text(service, &["namespace"]).to_owned(),
                name: text(service, &["name"]).to_owned(),
                port: int(service, &["port"]).and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
                path: format!("/{}", text(service, &["path"]).trim_start_matches('/')),
            },
            None => Place::Url(text(config, &["url"]).to_owned()),
        };
        let seconds = int(hook, &["timeoutSeconds"]).unwrap_or(DEFAULT_SECONDS);
        let versions = list(hook, &["admissionReviewVersions"]);
        Self {
            name: text(hook, &["name"]).to_owned(),
            place,
            authority: text(config, &["caBundle"]).to_owned(),
            timeout: Duration::from_secs(u64::try_from(seconds).unwrap_or(1)),
            review: ["v1", "v1beta1"]
                .into_iter()
                .find(|known| versions.iter().any(|version| version == known)),
            lenient: text(hook, &["failurePolicy"]) == "Ignore",
            is_pure: matches!(text(hook, &["sideEffects"]), "None" | "NoneOnDryRun"),
            again: text(hook, &["reinvocationPolicy"]) == "IfNeeded",
            matching: Matching::read(hook),
            conditions: Conditions::read(hook, &OF_REQUESTS),
        }
    }

    /// Whether the webhook is to be asked about a write.
    ///
    /// # Errors
    /// That its conditions cannot be told.
    pub fn is_about(&self, asked: &Asked<'_>) -> Result<bool, String> {
        if !self.matching.matches(asked) {
            return Ok(false);
        }
        if self.conditions.is_empty() {
            return Ok(true);
        }
        let over = terms::prepare(asked, |name| self.conditions.uses(name));
        self.conditions.hold(&over, &mut Budget::default())
    }
}
