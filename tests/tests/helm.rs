//! A Helm release goes through its life: install and wait, upgrade, rollback, uninstall.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::Path;
use std::process::Command;

use strata_tests::platform::{Platform, Said};
use strata_tests::tools;

const CHART: &[(&str, &str)] = &[
    ("Chart.yaml", "apiVersion: v2\nname: site\nversion: 0.1.0\n"),
    ("values.yaml", "replicas: 2\nimage: app:1\n"),
    (
        "templates/site.yaml",
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {app: {{ .Release.Name }}}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: c, image: {{ .Values.image | quote }}}]}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: {{ .Release.Name }}}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-settings}
data: {kubernetes: {{ .Capabilities.KubeVersion.Version | quote }}}
"#,
    ),
    (
        "templates/hook.yaml",
        r#"
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: before-hook-creation}
"#,
    ),
];

struct Helm<'a> {
    platform: &'a Platform,
    program: &'a Path,
    chart: &'a Path,
}

impl Helm<'_> {
    fn run(&self, words: &[&str]) -> Said {
        let home = self.platform.data_dir().join("helm");
        let mut command = Command::new(self.program);
        command.env("HELM_CACHE_HOME", &home).env("HELM_CONFIG_HOME", &home).env("HELM_DATA_HOME", &home);
        self.platform.run(command.args(words))
    }

    fn with_chart(&self, words: &[&str], more: &[&str]) -> String {
        let chart = self.chart.to_string_lossy();
        self.run(&[words, &[&*chart, "--wait", "--timeout", "50s"], more].concat()).ok()
    }

    fn image(&self) -> String {
        let path = "jsonpath={.spec.template.spec.containers[0].image}";
        self.platform.strata(&["get", "deployment", "shop", "-o", path]).ok()
    }
}

#[test]
fn a_release_is_installed_upgraded_rolled_back_and_taken_away() {
    let Some(program) = tools::helm() else { return };
    let chart = tempfile::tempdir().unwrap();
    std::fs::create_dir(chart.path().join("templates")).unwrap();
    for (file, text) in CHART {
        std::fs::write(chart.path().join(file), text).unwrap();
    }
    let platform = Platform::start(&["--runtime", "simulated"]);
    let helm = Helm { platform: &platform, program: &program, chart: chart.path() };

    let said = helm.with_chart(&["install", "shop"], &[]);
    assert!(said.contains("STATUS: deployed"), "{said}");
    assert_eq!(helm.image(), "app:1");
    platform.strata(&["get", "configmap", "shop-hook"]).ok();
    let said = helm.with_chart(&["upgrade", "shop"], &["--set", "image=app:2,replicas=3"]);
    assert!(said.contains("REVISION: 2"), "{said}");
    assert_eq!(helm.image(), "app:2");
    helm.run(&["rollback", "shop", "1", "--wait", "--timeout", "50s"]).ok();
    assert_eq!(helm.image(), "app:1");
    let history = helm.run(&["history", "shop"]).ok();
    assert_eq!(history.lines().count(), 4, "{history}");
    helm.run(&["uninstall", "shop", "--wait", "--timeout", "50s"]).ok();
    let left =
        platform.strata(&["get", "deployments,services,configmaps", "-l", "app=shop", "-o", "name"]).ok();
    assert_eq!(left, "");
    assert!(helm.run(&["status", "shop"]).code != Some(0));
}
