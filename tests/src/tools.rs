//! Programs that tests drive but do not hold: kubectl. Found by environment or PATH; with `CI=true` a missing one fails.

use std::path::PathBuf;

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

/// The `strata` program of this build, which cargo puts beside the tests' folder, and beside other programs.
pub fn strata() -> PathBuf {
    let own = std::env::current_exe().expect("a program knows its own path");
    let mut folders = own.ancestors().skip(1).take(2);
    let program = folders.find_map(|folder| Some(folder.join("strata")).filter(|path| path.is_file()));
    program
        .unwrap_or_else(|| panic!("no strata beside {}: run `cargo build --bin strata` first", own.display()))
}
