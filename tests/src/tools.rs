//! Programs that tests drive but do not hold: kubectl. Found by environment or PATH; with `CI=true` a missing one fails.

use std::path::{Path, PathBuf};

/// Names the kubectl binaries to test with, separated by colons.
pub const KUBECTL_VARIABLE: &str = "STRATA_TEST_KUBECTL";

/// All kubectl binaries at hand. Empty only outside CI, where a test then says that it looks at nothing.
pub fn kubectls() -> Vec<PathBuf> {
    let named = std::env::var(KUBECTL_VARIABLE).unwrap_or_default();
    let mut found: Vec<PathBuf> = named.split(':').filter(|p| !p.is_empty()).map(PathBuf::from).collect();
    if let Some(missing) = found.iter().find(|p| !p.is_file()) {
        panic!("{KUBECTL_VARIABLE} names {}, which is no file", missing.display());
    }
    if found.is_empty() {
        found.extend(on_path("kubectl"));
    }
    if found.is_empty() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "no kubectl: set {KUBECTL_VARIABLE}, or put one on the PATH"
        );
        eprintln!("no kubectl at hand: these tests look at nothing (set {KUBECTL_VARIABLE} to change that)");
    }
    found
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file())
}

/// The `strata` program of this build, which cargo puts beside the tests.
pub fn strata() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.ancestors().nth(2).map(Path::to_owned).expect("tests lie in target/<profile>/deps");
    let program = folder.join("strata");
    assert!(program.is_file(), "{} is missing: run `cargo build --bin strata` first", program.display());
    program
}
