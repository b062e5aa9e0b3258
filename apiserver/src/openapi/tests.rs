//! Tests of the OpenAPI documents: what `kubectl` looks for in them.

use serde_json::Value;

use super::documents::Documents;
use super::published::{PublishedResource, PublishedSubresource};
use crate::protobuf::reader::{Reader, Wire};

fn owned(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

const ALL: [&str; 8] = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn resource(group: &str, kind: &str, plural: &str, namespaced: bool) -> PublishedResource {
    let (group, kind, plural) = (group.to_owned(), kind.to_owned(), plural.to_owned());
    PublishedResource {
        group,
        version: "v1".into(),
        kind,
        plural,
        namespaced,
        verbs: owned(&ALL),
        subresources: Vec::new(),
        custom: None,
    }
}

fn below(name: &str, group: &str, kind: &str, verbs: &[&str]) -> PublishedSubresource {
    PublishedSubresource {
        name: name.into(),
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        verbs: owned(verbs),
    }
}

fn published() -> Vec<PublishedResource> {
    let mut deployment = resource("apps", "Deployment", "deployments", true);
    deployment.subresources = vec![
        below("status", "apps", "Deployment", &["get", "update", "patch"]),
        below("scale", "autoscaling", "Scale", &["get", "update", "patch"]),
    ];
    let mut pod = resource("", "Pod", "pods", true);
    pod.subresources = vec![
        below("binding", "", "Binding", &["create"]),
        below("eviction", "policy", "Eviction", &["create"]),
    ];
    vec![
        deployment,
        resource("apps", "ReplicaSet", "replicasets", true),
        pod,
        resource("", "Namespace", "namespaces", false),
        resource("", "ConfigMap", "configmaps", true),
        resource("", "Secret", "secrets", true),
        resource("", "Node", "nodes", false),
        resource("coordination.k8s.io", "Lease", "leases", true),
    ]
}

fn read(documents: &Documents, path: &str) -> Value {
    let document = documents.document(path).unwrap_or_else(|| panic!("no document {path}"));
    serde_json::from_slice(&document.bytes).expect("the document is JSON")
}

#[test]
fn the_index_leads_to_every_document_by_its_hash() {
    let documents = Documents::new("v1", published());
    let index: Value = serde_json::from_slice(&documents.index().bytes).unwrap();
    let paths = index["paths"].as_object().unwrap();
    assert_eq!(paths.keys().collect::<Vec<_>>(), ["api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1"]);
    for (path, entry) in paths {
        let hash = &documents.document(path).unwrap().hash;
        assert_eq!(entry["serverRelativeURL"], format!("/openapi/v3/{path}?hash={hash}"));
    }
    assert!(documents.document("apis/nothing/v1").is_none());
    let again = Documents::new("v1", published());
    assert_eq!(again.index().hash, documents.index().hash);
    let fewer = Documents::new("v1", published().into_iter().skip(1));
    assert_ne!(fewer.index().hash, documents.index().hash);
}

#[test]
fn schemas_carry_names_kinds_and_merge_facts() {
    let documents = Documents::new("v1", published());
    let document = read(&documents, "apis/apps/v1");
    let schemas = &document["components"]["schemas"];
    let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
    let gvk = serde_json::json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
    assert_eq!(deployment["x-kubernetes-group-version-kind"], gvk);
    assert_eq!(
        deployment["properties"]["spec"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"
    );
    let list = &schemas["io.k8s.api.apps.v1.DeploymentList"]["x-kubernetes-group-version-kind"];
    assert_eq!(list[0]["kind"], "DeploymentList");
    let pod = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"];
    assert_eq!(pod["containers"]["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(pod["containers"]["x-kubernetes-list-map-keys"], serde_json::json!(["name"]));
    assert_eq!(pod["volumes"]["x-kubernetes-patch-strategy"], "merge,retainKeys");
    assert_eq!(pod["nodeSelector"]["x-kubernetes-map-type"], "atomic");
    let selector = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    let int_or_string = &schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(int_or_string["oneOf"][0]["type"], "integer");
    let options = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"];
    assert_eq!(options["x-kubernetes-group-version-kind"].as_array().unwrap().len(), 3);
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let documents = Documents::new("v1", published());
    for path in ["api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1"] {
        let document = read(&documents, path);
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 10, "{path}");
        for reference in found {
            let name = reference.strip_prefix("#/components/schemas/").expect("a reference to a schema");
            assert!(document["components"]["schemas"].get(name).is_some(), "{path}: {reference}");
        }
    }
}

#[test]
fn operations_list_the_parameters_and_kinds_that_kubectl_checks() {
    let documents = Documents::new("v1", published());
    let document = read(&documents, "apis/apps/v1");
    let names = |operation: &Value| -> Vec<String> {
        let parameters = operation["parameters"].as_array().expect("parameters");
        parameters.iter().map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect()
    };
    let base = "/apis/apps/v1/namespaces/{namespace}/deployments";
    let collection = &document["paths"][base];
    let object = &document["paths"][format!("{base}/{{name}}")];
    for operation in [&collection["post"], &object["put"], &object["patch"]] {
        let names = names(operation);
        for wanted in ["fieldValidation", "fieldManager", "dryRun"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted}");
        }
        assert_eq!(operation["x-kubernetes-group-version-kind"]["kind"], "Deployment");
    }
    assert!(names(&object["patch"]).contains(&"force".to_owned()));
    assert!(names(&collection["get"]).contains(&"labelSelector".to_owned()));
    let scale = &document["paths"][format!("{base}/{{name}}/scale")];
    assert_eq!(scale["get"]["x-kubernetes-group-version-kind"]["group"], "autoscaling");
    assert_eq!(object["get"]["operationId"], "readAppsV1NamespacedDeployment");
    let everywhere = &document["paths"]["/apis/apps/v1/deployments"];
    assert_eq!(everywhere["get"]["operationId"], "listAppsV1DeploymentForAllNamespaces");
    assert!(everywhere.get("post").is_none());
    let core = read(&documents, "api/v1");
    assert!(core["paths"]["/api/v1/namespaces/{name}"]["patch"].is_object());
    assert!(core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/binding"]["post"].is_object());
}

#[test]
fn version_2_has_the_same_definitions_and_paths() {
    let documents = Documents::new("v1", published());
    let document: Value = serde_json::from_slice(&documents.version2_json().bytes).unwrap();
    let definitions = document["definitions"].as_object().unwrap();
    let spec = &definitions["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"];
    assert_eq!(spec["$ref"], "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
    assert!(spec["description"].is_string());
    let int_or_string = &definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(
        (&int_or_string["type"], &int_or_string["format"]),
        (&"string".into(), &"int-or-string".into())
    );
    let version3: usize = ["api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1"]
        .map(|path| read(&documents, path)["paths"].as_object().unwrap().len())
        .iter()
        .sum();
    assert_eq!(document["paths"].as_object().unwrap().len(), version3);
    let patch = &document["paths"]["/api/v1/nodes/{name}"]["patch"];
    assert_eq!(patch["consumes"].as_array().unwrap().len(), 4);
    let body =
        patch["parameters"].as_array().unwrap().iter().find(|parameter| parameter["in"] == "body").unwrap();
    assert_eq!(body["schema"]["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch");
}

#[test]
fn the_protobuf_form_holds_every_definition_by_name() {
    let documents = Documents::new("v1", published());
    let json: Value = serde_json::from_slice(&documents.version2_json().bytes).unwrap();
    let mut reader = Reader::new(&documents.version2_protobuf().bytes, 0);
    let mut names = Vec::new();
    while let Some((number, wire)) = reader.field().unwrap() {
        if number != 9 {
            reader.skip(wire).unwrap();
            continue;
        }
        let mut definitions = reader.delimited().unwrap();
        while definitions.field().unwrap().is_some() {
            let mut entry = definitions.delimited().unwrap();
            assert_eq!(entry.field().unwrap(), Some((1, Wire::Delimited)));
            names.push(entry.delimited().unwrap().text().unwrap().to_owned());
        }
    }
    assert!(names.iter().eq(json["definitions"].as_object().unwrap().keys()));
}
