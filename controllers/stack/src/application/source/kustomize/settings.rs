//! A source's Kustomize settings, written into its kustomization. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use strata_plan::application::rendered::{Fault, RenderError};
use strata_plan::application::spec::Kustomize;

/// The kustomization with the settings in it. `exists` says which components are there.
pub fn apply(
    kustomization: Value,
    settings: &Kustomize,
    exists: impl Fn(&str) -> bool,
) -> Result<Value, RenderError> {
    let mut all = match kustomization {
        Value::Object(all) => all,
        Value::Null => Map::new(),
        _ => return Err(wrong("the kustomization is no object".to_owned())),
    };
    if settings.common_annotations_envsubst {
        return Err(wrong("kustomize.commonAnnotationsEnvsubst is not supported".to_owned()));
    }
    for (field, value) in [
        ("namePrefix", &settings.name_prefix),
        ("nameSuffix", &settings.name_suffix),
        ("namespace", &settings.namespace),
    ] {
        if !value.is_empty() {
            all.insert(field.to_owned(), json!(value));
        }
    }
    if settings.label_without_selector && !settings.common_labels.is_empty() {
        let labels = json!({"pairs": settings.common_labels, "includeSelectors": false,
            "includeTemplates": settings.label_include_templates});
        list(&mut all, "labels")?.push(labels);
    } else {
        merge(&mut all, "commonLabels", &settings.common_labels, settings.force_common_labels)?;
    }
    merge(&mut all, "commonAnnotations", &settings.common_annotations, settings.force_common_annotations)?;
    for text in &settings.images {
        let (name, image) = image(text)?;
        let images = list(&mut all, "images")?;
        images.retain(|one| one["name"] != json!(name));
        images.push(image);
    }
    for replica in &settings.replicas {
        let count = match &replica.count {
            Value::String(text) => text.trim().parse::<i64>().ok(),
            number => number.as_i64(),
        };
        let count = count.filter(|count| *count >= 0).ok_or_else(|| {
            wrong(format!("kustomize.replicas: the count of {} is no number", replica.name))
        })?;
        let replicas = list(&mut all, "replicas")?;
        replicas.retain(|one| one["name"] != json!(replica.name));
        replicas.push(json!({"name": replica.name, "count": count}));
    }
    for patch in &settings.patches {
        list(&mut all, "patches")?.push(patch.clone());
    }
    for component in &settings.components {
        if !settings.ignore_missing_components || exists(component) {
            list(&mut all, "components")?.push(json!(component));
        }
    }
    Ok(Value::Object(all))
}

fn wrong(message: String) -> RenderError {
    RenderError::new(Fault::Settings, message)
}

fn list<'a>(all: &'a mut Map<String, Value>, field: &str) -> Result<&'a mut Vec<Value>, RenderError> {
    match all.entry(field).or_insert_with(|| json!([])) {
        Value::Array(items) => Ok(items),
        _ => Err(wrong(format!("{field} of the kustomization is no list"))),
    }
}

fn merge(
    all: &mut Map<String, Value>,
    field: &str,
    wanted: &BTreeMap<String, String>,
    force: bool,
) -> Result<(), RenderError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let Value::Object(present) = all.entry(field).or_insert_with(|| json!({})) else {
        return Err(wrong(format!("{field} of the kustomization is no object")));
    };
    for (key, value) in wanted {
        if !force && present.get(key).is_some_and(|old| old != value) {
            return Err(wrong(format!(
                "kustomize.{field}: {key} is in the kustomization already, with another value; set force{} to replace it",
                field.replacen('c', "C", 1)
            )));
        }
        present.insert(key.clone(), json!(value));
    }
    Ok(())
}

/// `name`, `name:tag`, `name@digest`, each also behind `old=`.
fn image(text: &str) -> Result<(String, Value), RenderError> {
    let (name, new) = match text.split_once('=') {
        Some((name, new)) => (Some(name), new),
        None => (None, text),
    };
    let (rest, digest) = match new.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (new, None),
    };
    // A colon before the last slash is that of a port.
    let name_from = rest.rfind('/').map_or(0, |slash| slash + 1);
    let (new_name, tag) = match rest[name_from..].split_once(':') {
        Some((short, tag)) => (&rest[..name_from + short.len()], Some(tag)),
        None => (rest, None),
    };
    let name = name.unwrap_or(new_name);
    if name.is_empty() {
        return Err(wrong(format!("kustomize.images: {text:?} names no image")));
    }
    let mut image = json!({"name": name});
    if new_name != name && !new_name.is_empty() {
        image["newName"] = json!(new_name);
    }
    if let Some(tag) = tag {
        image["newTag"] = json!(tag);
    }
    if let Some(digest) = digest {
        image["digest"] = json!(digest);
    }
    Ok((name.to_owned(), image))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_read_in_all_forms() {
        for (text, expected) in [
            ("a:1", json!({"name": "a", "newTag": "1"})),
            ("h:5000/a", json!({"name": "h:5000/a"})),
            ("a=h:5000/b:2", json!({"name": "a", "newName": "h:5000/b", "newTag": "2"})),
            ("a@sha256:0", json!({"name": "a", "digest": "sha256:0"})),
        ] {
            assert_eq!(image(text).unwrap().1, expected, "{text}");
        }
        assert!(image("=a").is_err());
    }

    #[test]
    fn settings_are_added_and_conflicts_said() {
        let settings: Kustomize = serde_json::from_value(json!({"namePrefix": "p-", "images": ["a:2"],
            "commonLabels": {"x": "1"}, "replicas": [{"name": "w", "count": "3"}], "components": ["c", "gone"],
            "ignoreMissingComponents": true}))
        .unwrap();
        let before = json!({"resources": ["a.yaml"], "images": [{"name": "a", "newTag": "1"}]});
        let after = apply(before, &settings, |component| component == "c").unwrap();
        assert_eq!(
            after,
            json!({"resources": ["a.yaml"], "namePrefix": "p-", "images": [{"name": "a", "newTag": "2"}],
                "commonLabels": {"x": "1"}, "replicas": [{"name": "w", "count": 3}], "components": ["c"]})
        );
        let error = apply(json!({"commonLabels": {"x": "2"}}), &settings, |_| true).unwrap_err();
        assert!(error.message.contains("forceCommonLabels"), "{error}");
    }
}
