//! An object as a whole: its bytes, plus the metadata parsed from them. Fields that we do not know survive, as the
//! bytes are never rebuilt from a struct. Knows nothing of kinds.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::meta::Meta;

/// Namespace and name: which object of a type. The namespace is empty for cluster-scoped types.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Namespace, or empty.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// A key; pass an empty namespace for cluster-scoped types.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// Bytes that are no object, or an object that is not of the type asked for.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what}")]
pub struct ObjectError {
    /// What was being read, for people: a type, or a type and a name.
    pub what: String,
    /// Where and why, from the parser.
    #[source]
    pub source: serde_json::Error,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: Meta,
}

/// Where the managers of the fields stand.
#[derive(Deserialize)]
struct Managed<'a> {
    #[serde(borrow, default)]
    metadata: Option<Managers<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Managers<'a> {
    #[serde(borrow, default)]
    managed_fields: Option<&'a RawValue>,
}

/// The member of metadata with the managers of the fields, up to its value, as the server writes it.
const MANAGERS: &[u8] = b"\"managedFields\":";

/// One object: JSON bytes and what was parsed of them. Share it by `Arc`; a typed view is parsed once and kept.
pub struct Object {
    bytes: Bytes,
    api_version: String,
    kind: String,
    meta: Meta,
    typed: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Object {
    /// Parses the head (type and metadata) of an object in JSON.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, ObjectError> {
        let bytes = bytes.into();
        let head: Head = serde_json::from_slice(&bytes)
            .map_err(|source| ObjectError { what: "an object's metadata".to_owned(), source })?;
        let Head { api_version, kind, metadata } = head;
        Ok(Self { bytes, api_version, kind, meta: metadata, typed: OnceLock::new() })
    }

    /// The object of a JSON value.
    pub fn from_value(value: &Value) -> Result<Self, ObjectError> {
        let bytes = serde_json::to_vec(value)
            .map_err(|source| ObjectError { what: "an object's value".to_owned(), source })?;
        Self::from_bytes(bytes)
    }

    /// The JSON, as stored and sent.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// `group/version` or `v1`; empty where the bytes have none.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Kind; empty where the bytes have none.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Parsed metadata.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.meta.namespace.clone(), self.meta.name.clone())
    }

    /// The whole object as a JSON value, parsed anew.
    pub fn to_value(&self) -> Result<Value, ObjectError> {
        self.decode()
    }

    /// The object as a `T`, parsed anew.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, ObjectError> {
        serde_json::from_slice(&self.bytes).map_err(|source| ObjectError {
            what: format!("{} {} as {}", self.kind, self.key(), std::any::type_name::<T>()),
            source,
        })
    }

    /// The object as a `T`, parsed at most once for the life of this value. The first type asked for is kept, so ask
    /// for one type per object; a second type is an error of ours, answered by `None` in [`Object::typed_ref`].
    pub fn typed<T: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<&T, ObjectError> {
        if self.typed.get().is_none() {
            let parsed: T = self.decode()?;
            // Two threads may parse at once; the first one's result stays.
            self.typed.get_or_init(|| Box::new(parsed));
        }
        self.typed_ref::<T>().ok_or_else(|| ObjectError {
            what: format!("{} {} as a second type", self.kind, self.key()),
            source: <serde_json::Error as serde::de::Error>::custom("another typed view is already kept"),
        })
    }

    /// The same without `metadata.managedFields`, for those who keep many objects: as a typed view that member takes
    /// several times as much memory as everything else. Objects that are not in the server's own form stay whole.
    pub fn without_managers(mut self) -> Self {
        if let Some((start, end)) = managers(&self.bytes) {
            self.bytes = [&self.bytes[..start], &self.bytes[end..]].concat().into();
            self.typed = OnceLock::new();
        }
        self
    }

    /// The typed view, if one of this type was made before.
    pub fn typed_ref<T: 'static>(&self) -> Option<&T> {
        self.typed.get().and_then(|any| any.downcast_ref())
    }
}

/// The span of `managedFields` in metadata, with the comma behind it; there is one, as a name follows.
fn managers(bytes: &[u8]) -> Option<(usize, usize)> {
    let raw = serde_json::from_slice::<Managed<'_>>(bytes).ok()?.metadata?.managed_fields?.get();
    // A view of the same buffer.
    let value = raw.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
    let (start, end) = (value.checked_sub(MANAGERS.len())?, value + raw.len());
    let is_plain = bytes.get(start..value)? == MANAGERS && bytes.get(end) == Some(&b',');
    is_plain.then_some((start, end + 1))
}

impl Clone for Object {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            meta: self.meta.clone(),
            typed: OnceLock::new(),
        }
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} @{}", self.kind, self.key(), self.meta.resource_version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    fn sample() -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n",
            "labels": null, "creationTimestamp": "2026-11-30T20:00:00Z", "resourceVersion": "7"},
            "data": {"k": "v"}, "novel": [1, 2]})
    }

    #[test]
    fn unknown_fields_survive_and_metadata_is_parsed() {
        let object = Object::from_value(&sample()).unwrap();
        assert_eq!(object.key().to_string(), "n/a");
        assert_eq!(object.meta().revision(), Some(7));
        assert_eq!(object.to_value().unwrap(), sample());
    }

    #[test]
    fn the_managers_of_fields_can_be_left_out() {
        let mut value = sample();
        let plain = Object::from_value(&value).unwrap();
        value["metadata"]["managedFields"] = json!([{"fieldsV1": {"f:data": {"f:managedFields": {}}}}]);
        let lean = Object::from_value(&value).unwrap().without_managers();
        assert_eq!((lean.bytes(), lean.meta()), (plain.bytes(), plain.meta()));
        assert_eq!(plain.clone().without_managers().bytes(), plain.bytes());
        let spaced = Object::from_bytes(serde_json::to_vec_pretty(&value).unwrap()).unwrap();
        assert_eq!(spaced.clone().without_managers().bytes(), spaced.bytes());
    }

    #[test]
    fn the_typed_view_is_parsed_once() {
        let object = Object::from_value(&sample()).unwrap();
        let first: *const ConfigMap = object.typed::<ConfigMap>().unwrap();
        assert!(std::ptr::eq(first, object.typed::<ConfigMap>().unwrap()));
        assert!(object.typed::<k8s_openapi::api::core::v1::Secret>().is_err());
        assert!(Object::from_bytes(&b"[1"[..]).is_err());
    }
}
