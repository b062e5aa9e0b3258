//! Tests of the schema: what the built-in types look like as nodes, and that the merge facts hit real fields.

use super::keys;
use super::node::{ListKind, Node};
use super::registry;

fn node(group: &str, kind: &str, path: &str) -> Node {
    let definition = registry::definition(group, "v1", kind).expect("a built-in type");
    let parts = path.split('.').filter(|part| !part.is_empty());
    definition.node().at(parts).unwrap_or_else(|| panic!("{kind} has no {path}")).clone()
}

#[test]
fn every_type_has_a_described_root() {
    for entry in registry::all() {
        let definition = entry.definition();
        assert!(matches!(definition.node(), Node::Object(_)), "{} {}", entry.group, entry.kind);
        assert!(definition.name().starts_with("io.k8s."), "{}", definition.name());
    }
}

#[test]
fn scalars_keep_their_forms() {
    assert!(matches!(node("apps", "Deployment", "spec.replicas"), Node::Integer32));
    assert!(matches!(node("apps", "Deployment", "metadata.generation"), Node::Integer64));
    assert!(matches!(node("", "Pod", "spec.hostNetwork"), Node::Boolean));
    assert!(matches!(node("", "Pod", "metadata.creationTimestamp"), Node::Time));
    assert!(matches!(node("coordination.k8s.io", "Lease", "spec.renewTime"), Node::MicroTime));
    assert!(matches!(node("", "Pod", "spec.containers.0.resources.limits.cpu"), Node::Quantity));
    let surge = node("apps", "Deployment", "spec.strategy.rollingUpdate.maxSurge");
    assert!(matches!(surge, Node::IntOrString));
    assert!(matches!(node("", "Secret", "data.key"), Node::Bytes));
    assert!(matches!(node("", "Secret", "stringData.key"), Node::Text));
    assert!(matches!(node("", "Pod", "metadata.managedFields.0.fieldsV1"), Node::Any));
}

#[test]
fn lists_carry_their_keys() {
    let containers = node("", "Pod", "spec.containers");
    assert!(matches!(containers, Node::List { kind: ListKind::Map(keys), .. } if *keys == ["name".into()]));
    let ports = node("", "Pod", "spec.containers.0.ports");
    let wanted = ["containerPort".into(), "protocol".into()];
    assert!(matches!(ports, Node::List { kind: ListKind::Map(keys), .. } if *keys == wanted));
    let finalizers = node("", "ConfigMap", "metadata.finalizers");
    assert!(matches!(finalizers, Node::List { kind: ListKind::Set, .. }));
    assert!(matches!(node("", "Pod", "spec.tolerations"), Node::List { kind: ListKind::Atomic, .. }));
    assert!(matches!(node("", "Pod", "spec.nodeSelector"), Node::Map { atomic: true, .. }));
    assert!(matches!(node("apps", "Deployment", "spec.selector"), Node::Object(object) if object.atomic));
}

#[test]
fn fields_carry_patch_rules() {
    let spec = node("", "Pod", "spec");
    let volumes = &spec.field("volumes").expect("volumes").patch;
    assert!(volumes.merge && volumes.retain_keys && volumes.merge_key.as_deref() == Some("name"));
    let strategy = node("apps", "Deployment", "spec").field("strategy").expect("strategy").patch.clone();
    assert!(strategy.retain_keys && !strategy.merge && strategy.merge_key.is_none());
}

#[test]
fn lists_of_a_type_hold_the_type() {
    let items = node("apps", "DeploymentList", "items");
    let item = items.item().expect("a list");
    assert!(matches!(&**item, Node::Named(named) if named.name() == "io.k8s.api.apps.v1.Deployment"));
}

#[test]
fn parts_are_found_by_name_and_shared() {
    let spec = registry::by_name("io.k8s.api.core.v1.PodSpec").expect("PodSpec");
    let again = registry::by_name("io.k8s.api.core.v1.PodSpec").expect("PodSpec");
    assert!(std::sync::Arc::ptr_eq(&spec, &again));
    assert!(registry::by_name("io.k8s.api.core.v1.Nothing").is_none());
    assert!(registry::find("meta.k8s.io", "v1", "Status").is_some());
    assert!(registry::find("apps", "v1", "Pod").is_none());
}

#[test]
fn every_line_of_the_table_about_a_known_type_names_a_real_field() {
    let definitions = registry::json_definitions(registry::all());
    let mut hits = 0;
    for (name, schema) in &definitions {
        let prefix = format!("{}.", keys::short(name));
        for (line, _) in keys::all() {
            let Some(field) = line.strip_prefix(&prefix) else { continue };
            assert!(schema["properties"].get(field).is_some(), "{line} is no field of {name}");
            hits += 1;
        }
    }
    assert!(hits > 90, "only {hits} lines met a field");
}
