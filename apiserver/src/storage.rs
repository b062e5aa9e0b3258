//! Objects in the store: their keys, their bytes with the place of the revision, and what is kept parsed beside them.
//! The only module that knows how objects lie in the store.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use strata_model::resource::GroupResource;
use strata_store::key::{Key, KeyRange};
use strata_store::record::Record;
use strata_store::txn;

use crate::refusal::{Outcome, internal};
use crate::types::rules::Rules;
use crate::value;

/// The key of an object; the namespace is empty for cluster-scoped types.
pub fn key(id: &GroupResource, namespace: &str, name: &str) -> Key {
    match namespace {
        "" => format!("{}/{}/{name}", id.group, id.resource).into(),
        namespace => format!("{}/{}/{namespace}/{name}", id.group, id.resource).into(),
    }
}

/// The keys of a type, or (with a namespace) of a type in a namespace: one range.
pub fn range(id: &GroupResource, namespace: &str) -> KeyRange {
    KeyRange::prefix(match namespace {
        "" => format!("{}/{}/", id.group, id.resource),
        namespace => format!("{}/{}/{namespace}/", id.group, id.resource),
    })
}

/// What is kept parsed of an object, so that selecting on it costs no parse.
#[derive(Debug, Default)]
pub struct Head {
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Values of the type's selectable fields, in the order of its rules.
    pub fields: Box<[Box<str>]>,
    /// Whether deletion was asked for.
    pub deleting: bool,
    /// Where the digits of the revision are in the bytes.
    stamp: Option<(usize, usize)>,
}

#[derive(Deserialize)]
struct TopProbe<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MetaProbe<'a> {
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(borrow, default)]
    resource_version: Option<&'a RawValue>,
    #[serde(default)]
    deletion_timestamp: Option<serde::de::IgnoredAny>,
}

impl Head {
    fn read(bytes: &Bytes, rules: &Rules) -> Self {
        let meta = serde_json::from_slice::<TopProbe<'_>>(bytes).ok().and_then(|top| top.metadata);
        let meta = meta.and_then(|raw| serde_json::from_str::<MetaProbe<'_>>(raw.get()).ok());
        let Some(meta) = meta else { return Self::default() };
        let stamp = meta.resource_version.map(|raw| {
            // Both are views of one buffer; the quotes stay outside.
            let start = raw.get().as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
            (start + 1, raw.get().len().saturating_sub(2))
        });
        let fields = if rules.fields.is_empty() { Box::default() } else { fields(bytes, rules) };
        Self { labels: meta.labels, fields, deleting: meta.deletion_timestamp.is_some(), stamp }
    }
}

fn fields(bytes: &Bytes, rules: &Rules) -> Box<[Box<str>]> {
    let object: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let value_of = |field: &crate::types::rules::Field| {
        let found =
            field.pointers.iter().map(|p| value::scalar(object.pointer(p))).find(|text| !text.is_empty());
        found.unwrap_or_else(|| field.absent.to_owned()).into_boxed_str()
    };
    rules.fields.iter().map(value_of).collect()
}

/// The parsed head of a record of a type with these rules; parsed once for all readers.
pub fn head<'r>(record: &'r Record, rules: &'static Rules) -> &'r Head {
    record.derived(|bytes| Head::read(bytes, rules))
}

/// The name of a record's object: the last part of its key.
pub fn name_of(record: &Record) -> &str {
    let key = std::str::from_utf8(record.key.as_bytes()).unwrap_or_default();
    key.rsplit('/').next().unwrap_or_default()
}

/// The namespace of a record's object; empty for cluster-scoped types.
pub fn namespace_of(record: &Record) -> &str {
    let key = std::str::from_utf8(record.key.as_bytes()).unwrap_or_default();
    let mut parts = key.rsplit('/');
    // name, namespace, resource, group
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (_, Some(namespace), Some(_), Some(_)) => namespace,
        _ => "",
    }
}

/// The bytes of an object as they were last, with the revision of its deletion.
pub fn with_revision(record: &Record, rules: &'static Rules, revision: u64) -> Bytes {
    let Some((start, length)) = head(record, rules).stamp else { return record.value.clone() };
    let digits = revision.to_string();
    let bytes = &record.value;
    let mut out = Vec::with_capacity(bytes.len() + digits.len());
    out.extend_from_slice(&bytes[..start]);
    out.extend_from_slice(digits.as_bytes());
    out.extend_from_slice(&bytes[start + length..]);
    out.into()
}

/// The object of a record as a value.
pub fn parse(record: &Record) -> Outcome<Value> {
    parse_bytes(&record.value)
}

/// Stored bytes as a value.
pub fn parse_bytes(bytes: &[u8]) -> Outcome<Value> {
    serde_json::from_slice(bytes)
        .map_err(|error| internal(format!("a stored object cannot be read: {error}")))
}

/// The value to store for an object: its JSON, with an empty revision whose place is noted.
pub fn stamped(object: &Value) -> Outcome<txn::Value> {
    let fault = |error: serde_json::Error| internal(format!("an object cannot be written: {error}"));
    let Value::Object(members) = object else { return Err(internal("an object is no JSON object")) };
    let mut out = Vec::with_capacity(1024);
    let mut stamp = None;
    out.push(b'{');
    for (index, (name, member)) in members.iter().enumerate() {
        open(&mut out, index, name).map_err(fault)?;
        match member {
            Value::Object(meta) if name == "metadata" => {
                stamp = Some(metadata(&mut out, meta).map_err(fault)?)
            }
            other => serde_json::to_writer(&mut out, other).map_err(fault)?,
        }
    }
    out.push(b'}');
    let stamp = stamp.and_then(|at| u32::try_from(at).ok());
    Ok(txn::Value { bytes: out.into(), stamp })
}

fn open(out: &mut Vec<u8>, index: usize, name: &str) -> serde_json::Result<()> {
    if index > 0 {
        out.push(b',');
    }
    serde_json::to_writer(&mut *out, name)?;
    out.push(b':');
    Ok(())
}

/// Writes metadata with an empty revision in its alphabetical place; gives the offset between its quotes.
fn metadata(out: &mut Vec<u8>, meta: &serde_json::Map<String, Value>) -> serde_json::Result<usize> {
    const REVISION: &str = "resourceVersion";
    let mut stamp = None;
    let mut written = 0;
    let mut revision = |out: &mut Vec<u8>, written: &mut usize| -> serde_json::Result<()> {
        open(out, *written, REVISION)?;
        stamp = Some(out.len() + 1);
        out.extend_from_slice(b"\"\"");
        *written += 1;
        Ok(())
    };
    let mut done = false;
    out.push(b'{');
    for (name, member) in meta.iter().filter(|(name, _)| *name != REVISION) {
        if !done && name.as_str() > REVISION {
            revision(out, &mut written)?;
            done = true;
        }
        open(out, written, name)?;
        serde_json::to_writer(&mut *out, member)?;
        written += 1;
    }
    if !done {
        revision(out, &mut written)?;
    }
    out.push(b'}');
    Ok(stamp.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use strata_model::resource::builtin;
    use strata_store::revision::Revision;

    use crate::types::pod::POD;

    fn record(object: &Value, revision: u64) -> Record {
        let value = stamped(object).unwrap();
        let at = value.stamp.unwrap() as usize;
        let mut bytes = value.bytes.to_vec();
        bytes.splice(at..at, revision.to_string().into_bytes());
        let key = key(&builtin::POD.id, "n", "p");
        Record::new(key, bytes.into(), Revision::new(revision), Revision::new(revision))
    }

    #[test]
    fn the_revision_lands_in_metadata_whatever_else_looks_like_it() {
        for meta in
            [json!({"name": "p"}), json!({"name": "p", "uid": "u", "resourceVersion": "1"}), json!({})]
        {
            let object = json!({"involvedObject": {"resourceVersion": ""}, "metadata": meta, "a": "\"resourceVersion\":\"\""});
            let record = record(&object, 42);
            let stored = parse(&record).unwrap();
            assert_eq!(stored["metadata"]["resourceVersion"], "42");
            assert_eq!(stored["involvedObject"]["resourceVersion"], "");
            let last: Value = serde_json::from_slice(&with_revision(&record, &POD, 1234)).unwrap();
            assert_eq!(last["metadata"]["resourceVersion"], "1234");
            assert_eq!(serde_json::to_vec(&stored).unwrap(), record.value, "the form is canonical");
        }
    }

    #[test]
    fn heads_hold_labels_and_selectable_fields() {
        let record = record(&json!({"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n1"}}), 1);
        let head = head(&record, &POD);
        assert_eq!(head.labels["a"], "b");
        let at = |name: &str| &*head.fields[POD.fields.iter().position(|f| f.name == name).unwrap()];
        assert_eq!((at("spec.nodeName"), at("spec.hostNetwork"), at("status.phase")), ("n1", "false", ""));
        assert_eq!((namespace_of(&record), name_of(&record)), ("n", "p"));
    }

    #[test]
    fn a_namespace_of_a_type_is_one_range() {
        let id = &builtin::DEPLOYMENT.id;
        assert!(range(id, "a").contains(&key(id, "a", "x")) && range(id, "").contains(&key(id, "a", "x")));
        assert!(!range(id, "a").contains(&key(id, "ab", "x")));
        assert!(!range(&builtin::POD.id, "").contains(&key(id, "a", "x")));
    }
}
