//! Kustomizations and charts, by the real programs.

use serde_json::json;
use std::sync::Arc;

use strata_plan::application::rendered::{Fault, SourceType};

use crate::repository::{Reader, Repository, config_map, has, names, source};

fn kustomizations() -> Repository {
    let repository = Repository::new();
    repository.write("base/kustomization.yaml", "resources: [map.yaml]\n");
    repository.write("base/map.yaml", config_map("base"));
    repository.write("prod/kustomization.yaml", "resources: [../base, own.yaml]\nnamePrefix: p-\n");
    repository.write("prod/own.yaml", config_map("own"));
    repository.commit();
    repository
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kustomization_is_built_with_what_it_refers_to() {
    if !has("kubectl") {
        return;
    }
    let repository = kustomizations();
    let reader = Reader::new();
    let first = reader.one(source(repository.url(), "prod")).await.unwrap();
    assert_eq!(first.source_type, SourceType::Kustomize);
    assert_eq!(names(&first), ["p-base", "p-own"]);
    assert_eq!(&*first.manifests[0].file, "prod/kustomization.yaml");
    // A commit elsewhere builds nothing; one in what is referred to does.
    repository.write("other/a.yaml", config_map("x"));
    repository.commit();
    let second = reader.one(source(repository.url(), "prod")).await.unwrap();
    assert!(Arc::ptr_eq(&first.manifests, &second.manifests));
    repository.write("base/map.yaml", config_map("changed"));
    repository.commit();
    let third = reader.one(source(repository.url(), "prod")).await.unwrap();
    assert_ne!(third.key, second.key);
    assert_eq!(names(&third), ["p-changed", "p-own"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_source_are_in_the_kustomization() {
    if !has("kubectl") {
        return;
    }
    let repository = kustomizations();
    let mut one = source(repository.url(), "prod");
    one.kustomize = serde_json::from_value(json!({"namePrefix": "q-", "nameSuffix": "-z", "namespace": "ns",
        "commonLabels": {"a": "b"}, "commonAnnotations": {"c": "d"},
        "patches": [{"target": {"kind": "ConfigMap", "name": "own"},
            "patch": "- op: add\n  path: /data\n  value: {k: v}\n"}]}))
    .unwrap();
    let rendered = Reader::new().one(one).await.unwrap();
    assert_eq!(names(&rendered), ["q-base-z", "q-own-z"]);
    let own = &rendered.manifests[1].object;
    assert_eq!(own["metadata"]["namespace"], "ns");
    assert_eq!(own["metadata"]["labels"]["a"], "b");
    assert_eq!(own["metadata"]["annotations"]["c"], "d");
    assert_eq!(own["data"]["k"], "v");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_kustomizations_are_said() {
    if !has("kubectl") {
        return;
    }
    let repository = Repository::new();
    repository.write("gone/kustomization.yaml", "resources: [none.yaml]\n");
    repository.write("yaml/kustomization.yaml", "resources: [\n");
    repository.write("far/kustomization.yaml", "resources: ['https://github.com/a/b//c?ref=v1']\n");
    repository.write("circle/kustomization.yaml", "resources: [../circle]\n");
    repository.write("link/kustomization.yaml", "resources: [a.yaml]\n");
    repository.link("link/a.yaml", "../../../../../etc/passwd");
    repository.commit();
    let reader = Reader::new();
    for (folder, fault, says) in [
        ("gone", Fault::Broken, "none.yaml"),
        ("yaml", Fault::Broken, "yaml/kustomization.yaml"),
        ("far", Fault::Settings, "github.com"),
        ("circle", Fault::Broken, "cycle"),
        ("link", Fault::Broken, "leads out"),
    ] {
        let error = reader.fault(source(repository.url(), folder)).await;
        assert!(error.fault == fault && error.message.contains(says), "{folder}: {error:?}");
        assert!(!error.message.contains("strata-kustomize"), "{error}");
    }
}

fn chart() -> Repository {
    let repository = Repository::new();
    repository.write("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n");
    repository.write("chart/values.yaml", "a: default\nlist: x\n");
    repository.write("chart/prod.yaml", "a: prod\n");
    repository.write(
        "chart/crds/crd.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: crd}\n",
    );
    repository.write(
        "chart/templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-{{ .Values.a }}\n  namespace: {{ .Release.Namespace }}\ndata:\n  list: {{ .Values.list | quote }}\n",
    );
    repository.commit();
    repository
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_is_rendered_as_asked_for() {
    if !has("helm") {
        return;
    }
    let repository = chart();
    let reader = Reader::new();
    let rendered = reader.one(source(repository.url(), "chart")).await.unwrap();
    assert_eq!(rendered.source_type, SourceType::Helm);
    assert_eq!(names(&rendered), ["crd", "app-default"]);
    assert_eq!(&*rendered.manifests[1].file, "chart/templates/map.yaml");
    assert_eq!(rendered.manifests[1].object["metadata"]["namespace"], "there");
    let mut one = source(repository.url(), "chart");
    one.helm = serde_json::from_value(json!({"releaseName": "r", "valueFiles": ["prod.yaml", "none.yaml"],
        "ignoreMissingValueFiles": true, "skipCrds": true, "parameters": [{"name": "list", "value": "a,b"}]}))
    .unwrap();
    let rendered = reader.one(one.clone()).await.unwrap();
    assert_eq!(names(&rendered), ["r-prod"]);
    assert_eq!(rendered.manifests[0].object["data"]["list"], "a,b");
    one.helm.as_mut().unwrap().values_object = Some(json!({"a": "own"}));
    assert_eq!(names(&reader.one(one.clone()).await.unwrap()), ["r-own"]);
    one.helm.as_mut().unwrap().ignore_missing_value_files = false;
    let error = reader.fault(one).await;
    assert!(error.fault == Fault::Missing && error.message.contains("none.yaml"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_from_other_sources() {
    if !has("helm") {
        return;
    }
    let (repository, values) = (chart(), Repository::new());
    values.write("env/prod.yaml", "a: elsewhere\n");
    values.commit();
    let reader = Reader::new();
    let mut main = source(repository.url(), "chart");
    main.helm =
        serde_json::from_value(json!({"valueFiles": ["$values/env/prod.yaml"], "skipCrds": true})).unwrap();
    let mut other = source(values.url(), "");
    other.reference = "values".into();
    let first = reader.all(vec![main.clone(), other.clone()]).await.unwrap();
    assert_eq!(names(&first[0]), ["app-elsewhere"]);
    assert!(first[1].manifests.is_empty());
    values.write("else.yaml", "x: y\n");
    values.commit();
    let second = reader.all(vec![main.clone(), other.clone()]).await.unwrap();
    assert!(Arc::ptr_eq(&first[0].manifests, &second[0].manifests));
    values.write("env/prod.yaml", "a: again\n");
    values.commit();
    let third = reader.all(vec![main.clone(), other]).await.unwrap();
    assert_eq!(names(&third[0]), ["app-again"]);
    let error = reader.fault(main).await;
    assert!(error.fault == Fault::Settings && error.message.contains("ref: values"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_beside_a_chart_are_built_into_it() {
    if !has("helm") {
        return;
    }
    let repository = chart();
    repository.write("parent/Chart.yaml", "apiVersion: v2\nname: p\nversion: 1.0.0\ndependencies:\n- {name: c, version: 1.0.0, repository: 'file://../chart'}\n");
    repository.write("broken/Chart.yaml", "apiVersion: v2\nname: b\nversion: 1.0.0\n");
    repository.write("broken/templates/a.yaml", "{{ .Values.x | nope }}\n");
    repository.commit();
    let reader = Reader::new();
    let rendered = reader.one(source(repository.url(), "parent")).await.unwrap();
    assert_eq!(names(&rendered), ["crd", "app-default"]);
    let error = reader.fault(source(repository.url(), "broken")).await;
    assert!(error.fault == Fault::Broken && error.message.contains("templates/a.yaml"), "{error}");
}
