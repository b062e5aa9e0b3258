//! Fetches the ConfigMaps and Secrets that variables come from, once, when a container is to be started. It
//! must never keep them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::GetOptions;
use strata_model::object::{Object, ObjectError, ObjectKey};
use strata_model::resource::builtin;
use strata_plan::pod::environment::{SourceRef, Sources};

/// Why a source could not be fetched (that it does not exist is an answer).
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The request failed.
    #[error(transparent)]
    Request(#[from] ClientError),
    /// The object is not what its type says.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Fetches all of them from a namespace.
pub async fn fetch(
    client: &Client,
    namespace: &str,
    needs: &BTreeSet<SourceRef>,
) -> Result<Sources, SourceError> {
    let mut sources = Sources::new();
    for need in needs {
        let resource = match need {
            SourceRef::ConfigMap(_) => &builtin::CONFIG_MAP,
            SourceRef::Secret(_) => &builtin::SECRET,
        };
        let key = ObjectKey::new(namespace, need.name());
        let data = match client.get(resource, &key, &GetOptions::default()).await {
            Ok(object) => Some(texts(need, &object)?),
            Err(error) if error.class() == Class::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        sources.insert(need.clone(), data);
    }
    Ok(sources)
}

/// The entries of an object that are texts.
fn texts(source: &SourceRef, object: &Object) -> Result<BTreeMap<String, String>, ObjectError> {
    match source {
        SourceRef::ConfigMap(_) => Ok(object.decode::<ConfigMap>()?.data.unwrap_or_default()),
        SourceRef::Secret(_) => {
            let data = object.decode::<Secret>()?.data.unwrap_or_default();
            Ok(data
                .into_iter()
                .filter_map(|(key, value)| Some((key, String::from_utf8(value.0).ok()?)))
                .collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::texts;
    use serde_json::json;
    use strata_model::object::Object;
    use strata_plan::pod::environment::SourceRef;

    #[test]
    fn secrets_are_decoded_and_what_is_no_text_is_left_out() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"},
            "data": {"token": "aGk=", "binary": "/w=="}});
        let texts = texts(&SourceRef::Secret("s".into()), &Object::from_value(&secret).unwrap()).unwrap();
        assert_eq!(texts.into_iter().collect::<Vec<_>>(), [("token".to_owned(), "hi".to_owned())]);
    }
}
