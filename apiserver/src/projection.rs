//! Other forms of objects: Tables as people read them, and metadata alone. Pure; knows types only by their rules.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::types::catalogue::Served;
use crate::types::pod_row;

/// What a row of a Table carries beside its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Metadata.
    Metadata,
    /// The whole object.
    Object,
}

/// Type and metadata of an object.
pub fn metadata_only(object: &Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// A list of such.
pub fn metadata_list(objects: &[Value], meta: Value) -> Value {
    let items: Vec<Value> = objects.iter().map(metadata_only).collect();
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": meta, "items": items})
}

/// A Table of objects. `version` is `v1` or `v1beta1`; `columns` is false where an earlier Table had them.
pub fn table(served: &Served, objects: &[Value], meta: Value, form: TableForm, now: Timestamp) -> Value {
    let definitions = form.columns.then(|| served.columns());
    let rows: Vec<Value> = objects.iter().map(|object| row(served, object, form.include, now)).collect();
    json!({
        "apiVersion": format!("meta.k8s.io/{}", form.version),
        "kind": "Table",
        "metadata": meta,
        "columnDefinitions": definitions,
        "rows": rows,
    })
}

/// How a Table is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableForm {
    /// `v1` or `v1beta1`.
    pub version: &'static str,
    /// What rows carry.
    pub include: Include,
    /// Whether the columns are described.
    pub columns: bool,
}

fn row(served: &Served, object: &Value, include: Include, now: Timestamp) -> Value {
    let mut row = json!({"cells": served.row(object, now)});
    match include {
        Include::None => {}
        Include::Metadata => row["object"] = metadata_only(object),
        Include::Object => row["object"] = object.clone(),
    }
    if served.rules.graceful
        && let Some((reason, message)) = pod_row::ended(object)
    {
        row["conditions"] =
            json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_model::resource::{Registry, builtin};

    use crate::types::catalogue::Catalogue;

    #[test]
    fn every_type_fills_every_column() {
        let catalogue = Catalogue::new(&Registry::builtin());
        for served in catalogue.all() {
            let cells = (served.rules.row)(&json!({"metadata": {"name": "x"}}), Timestamp::UNIX_EPOCH);
            assert_eq!(cells.len(), served.rules.columns.len(), "{}", served.resource.kind);
        }
    }

    #[test]
    fn every_form_of_another_type_is_converted() {
        let catalogue = Catalogue::new(&Registry::builtin());
        for (form, stored) in builtin::FORMS {
            let served = catalogue.find(&form.id.group, &form.version, &form.id.resource).unwrap();
            assert_eq!(served.form.as_ref().unwrap().stored.resource, **stored);
        }
    }

    #[test]
    fn tables_carry_rows_and_what_was_asked_for() {
        let catalogue = Catalogue::new(&Registry::builtin());
        let served = catalogue.by_id(&builtin::POD.id).unwrap();
        let pod = json!({"metadata": {"name": "p"}, "status": {"phase": "Succeeded"}, "spec": {}});
        let form = TableForm { version: "v1", include: Include::Metadata, columns: true };
        let table = table(served, &[pod], json!({"resourceVersion": "3"}), form, Timestamp::UNIX_EPOCH);
        assert_eq!(table["columnDefinitions"][0]["format"], "name");
        assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert_eq!(table["rows"][0]["conditions"][0]["reason"], "Succeeded");
        assert_eq!(table["metadata"]["resourceVersion"], "3");
    }
}
