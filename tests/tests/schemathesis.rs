//! The served OpenAPI in the hands of a tester that nobody here wrote: no request that it makes of it may be answered by
//! a server error, or by nothing.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::path::Path;
use std::process::Command;

use strata_tests::platform::Platform;
use strata_tests::tools;

/// The groups that are tested, and how long each may take, in seconds.
const DOCUMENTS: [&str; 3] = ["api/v1", "apis/apps/v1", "apis/apiextensions.k8s.io/v1"];
const SECONDS: &str = "60";

#[test]
fn whatever_the_served_schemas_allow_is_answered() {
    let Some(python) = tools::python("schemathesis") else { return };
    let platform = Platform::start(&["--runtime", "simulated"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join("schema_tester.py");
    for document in DOCUMENTS {
        let mut command = Command::new(&python);
        command.arg(&script).arg(platform.kubeconfig()).args([SECONDS, document]);
        let said = platform.run_within(&mut command, 4 * strata_tests::platform::COMMAND_LIMIT);
        assert!(said.out.contains("no server error, and an answer to everything"), "{document}: {said:?}");
    }
}
