//! The client examples, in Rust and in Python, against a whole platform.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::Path;
use std::process::Command;

use strata_tests::platform::Platform;
use strata_tests::tools;

/// What both examples say.
const STEPS: &[&str] = &[
    "applied, changed: true",
    "applied again, changed: false",
    "got red",
    "there is red",
    "it became green",
    "hung up",
    "it became blue",
    "deleted, gone: true",
];

fn check(said: &str) {
    let told: Vec<String> = said.lines().map(str::to_lowercase).collect();
    let mut rest = told.iter();
    for step in STEPS {
        let mut shown = told.iter().filter(|line| *line == step);
        assert!(rest.any(|line| line == step), "{step:?} in its place; it said\n{said}");
        assert!(shown.next().is_some() && shown.next().is_none(), "{step:?} once; it said\n{said}");
    }
}

#[test]
fn the_rust_example_gets_applies_watches_and_resumes() {
    let platform = Platform::start(&["--runtime", "simulated"]);
    let program = tools::example("follow");
    let said = platform.run(Command::new(program).arg(platform.kubeconfig())).ok();
    check(&said);
}

#[test]
fn the_python_example_gets_applies_watches_and_resumes() {
    let Some(python) = tools::python("grpc") else { return };
    let platform = Platform::start(&["--runtime", "simulated"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../proto/wire/examples/python/follow.py");
    let said = platform.run(Command::new(python).arg(script).arg(platform.kubeconfig())).ok();
    check(&said);
    assert!(said.ends_with("refused: NOT_FOUND NotFound\n"), "{said}");
}
