//! Programs that tests drive but do not hold: kubectl, helm, Python with client packages. Found by environment or PATH; with `CI=true` a missing one fails.

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

/// An example program of this build.
pub fn example(name: &str) -> PathBuf {
    let program = strata().with_file_name("examples").join(name);
    assert!(program.is_file(), "{} is missing: run `cargo build --examples` first", program.display());
    program
}

/// Names the helm to test with.
pub const HELM_VARIABLE: &str = "STRATA_TEST_HELM";

/// The helm at hand. `None` only outside CI, where the test then says that it looks at nothing.
pub fn helm() -> Option<PathBuf> {
    let named = std::env::var_os(HELM_VARIABLE).map(PathBuf::from);
    let found = named.or_else(|| on_path("helm")).filter(|path| path.is_file());
    if found.is_none() {
        let lacking = format!("no helm: set {HELM_VARIABLE}, or put one on the PATH");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{lacking}");
        eprintln!("{lacking}; this test looks at nothing");
    }
    found
}

/// Names the Python interpreter that has the client packages.
pub const PYTHON_VARIABLE: &str = "STRATA_TEST_PYTHON";

/// The Python at hand, if it has a module. `None` only outside CI, where the test then says that it looks at nothing.
pub fn python(module: &str) -> Option<PathBuf> {
    let named = std::env::var_os(PYTHON_VARIABLE).map(PathBuf::from);
    let found = named.or_else(|| on_path("python3"));
    let has = |python: &PathBuf| {
        let import = format!("import {module}");
        let asked = std::process::Command::new(python)
            .args(["-c", &import])
            .stderr(std::process::Stdio::null())
            .status();
        asked.is_ok_and(|status| status.success())
    };
    let found = found.filter(has);
    if found.is_none() {
        let lacking =
            format!("no Python with `{module}`: set {PYTHON_VARIABLE}, or run .ci/run, which makes one");
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{lacking}");
        eprintln!("{lacking}; this test looks at nothing");
    }
    found
}
