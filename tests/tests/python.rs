//! Python clients that nobody here wrote: the official one, and an operator by kopf from its first object to its last.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use strata_tests::platform::{Platform, signal};
use strata_tests::{tools, wait};

const LIMIT: Duration = Duration::from_secs(60);

const PETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: pets, singular: pet, kind: Pet}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {name: {type: string}, kind: {type: string}}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

const REX: &str = r#"
apiVersion: example.com/v1
kind: Pet
metadata: {name: rex}
spec: {name: Rex, kind: dog}
"#;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(name)
}

fn apply(platform: &Platform, manifest: &str) {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), manifest).unwrap();
    platform.strata(&["apply", "-f", &file.path().to_string_lossy()]).ok();
}

#[test]
fn the_official_client_lists_watches_patches_and_applies() {
    let Some(python) = tools::python("kubernetes") else { return };
    let platform = Platform::start(&["--runtime", "simulated"]);
    let said = platform.run(Command::new(python).arg(script("official.py")).arg(platform.kubeconfig()));
    assert!(said.ok().contains("all as it should be"));
}

/// An operator that is ended with the test.
struct Operator(Child);

impl Drop for Operator {
    fn drop(&mut self) {
        signal(self.0.id() as i32, Signal::KILL);
        if let Err(error) = self.0.wait() {
            eprintln!("waiting for the operator: {error}");
        }
    }
}

#[test]
fn an_operator_by_kopf_answers_changes_and_lets_go_at_the_end() {
    let Some(python) = tools::python("kopf") else { return };
    let platform = Platform::start(&["--runtime", "simulated"]);
    apply(&platform, PETS);
    let operator = Command::new(python)
        .args(["-m", "kopf", "run", "--standalone", "--namespace", "default"])
        .arg(script("pets.py"))
        .env("KUBECONFIG", platform.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut operator = Operator(operator);
    apply(&platform, REX);
    let tag = |wanted: &str| {
        wait::until(&format!("the tag {wanted:?}"), LIMIT, || {
            let said = platform.strata(&["get", "pet", "rex", "-o", "jsonpath={.status.tag}"]);
            if said.out == wanted { Ok(()) } else { Err(said) }
        });
    };
    tag("Rex the dog");
    platform.strata(&["patch", "pet", "rex", "--type", "merge", "-p", r#"{"spec":{"name":"Max"}}"#]).ok();
    tag("now Max");
    let finalizers = platform.strata(&["get", "pet", "rex", "-o", "jsonpath={.metadata.finalizers}"]).ok();
    assert!(finalizers.contains("kopf"), "{finalizers}");
    platform.strata(&["delete", "pet", "rex", "--timeout", "60s"]).ok();
    signal(operator.0.id() as i32, Signal::TERM);
    let mut said = String::new();
    operator.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("goodbye rex"), "{said}");
}
