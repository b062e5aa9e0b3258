//! The rules of the house, held by a test: which floor may import which, the order of modules, the length and the
//! opening of files, licences of dependencies. Knows the repository's files, not what they do.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Most lines of a source file; tests may be longer.
const MAX_LINES: usize = 500;

/// Each crate, its folder, and which of ours it may import. Arrows only go down.
const FLOORS: &[(&str, &str, &[&str])] = &[
    ("strata-model", "proto/model", &[]),
    ("strata-wire", "proto/wire", &["strata-model"]),
    ("strata-store", "store", &[]),
    ("strata-plan", "controllers/plan", &["strata-model"]),
    ("strata-client", "proto/client", &["strata-model", "strata-wire"]),
    ("strata-apiserver", "apiserver", &["strata-model", "strata-wire", "strata-store"]),
    ("strata-runtime", "controllers/runtime", &["strata-model", "strata-plan", "strata-client"]),
    (
        "strata-stack",
        "controllers/stack",
        &["strata-model", "strata-wire", "strata-plan", "strata-runtime", "strata-client"],
    ),
    (
        "strata",
        "cli",
        &[
            "strata-model",
            "strata-client",
            "strata-apiserver",
            "strata-stack",
            "strata-runtime",
            "strata-store",
        ],
    ),
    (
        "images",
        "controllers/examples/images",
        &["strata-model", "strata-plan", "strata-runtime", "strata-client"],
    ),
    (
        "thermostat",
        "controllers/examples/thermostat",
        &["strata-model", "strata-plan", "strata-runtime", "strata-client"],
    ),
    (
        "strata-testing",
        "tests/server",
        &["strata-client", "strata-apiserver", "strata-store", "strata-stack", "strata-runtime"],
    ),
];

/// External packages that pure crates must not see: they would bring time, tasks, randomness or IO.
const IMPURE: &[&str] = &["tokio", "tonic", "axum", "hyper", "rand", "rustix", "sled"];
const PURE: &[&str] = &["strata-model", "strata-plan"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> Metadata {
    // Packages of other platforms are never built, so they are not looked at.
    let options = ["--offline", "--filter-platform", "x86_64-unknown-linux-gnu"].map(str::to_owned).to_vec();
    MetadataCommand::new().current_dir(root()).other_options(options).exec().unwrap()
}

/// All Rust sources of the workspace, as (path from the root, text).
fn sources() -> Vec<(String, String)> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                walk(&path, out);
            } else if name.ends_with(".rs") {
                out.push(path);
            }
        }
    }
    let root = root();
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    paths.sort();
    assert!(paths.len() > 20, "found only {} sources: the walk is broken", paths.len());
    let read = |p: PathBuf| {
        let text = std::fs::read_to_string(&p).unwrap();
        (p.strip_prefix(&root).unwrap().to_string_lossy().into_owned(), text)
    };
    paths.into_iter().map(read).collect()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs") || path.starts_with("tests/")
}

fn complain(faults: &[String]) {
    assert!(faults.is_empty(), "{} fault(s):\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn crates_import_only_from_floors_below() {
    let metadata = metadata();
    let allowed: BTreeMap<&str, &[&str]> = FLOORS.iter().map(|(name, _, may)| (*name, *may)).collect();
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        seen.insert(name.to_owned());
        let Some(may) = allowed.get(name) else {
            if name != "strata-tests" {
                faults.push(format!("{name} stands on no floor"));
            }
            continue;
        };
        for dependency in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            let ours = dependency.name == "strata" || dependency.name.starts_with("strata-");
            if ours && !may.contains(&dependency.name.as_str()) {
                faults.push(format!("{name} imports {}", dependency.name));
            }
            if PURE.contains(&name) && IMPURE.contains(&dependency.name.as_str()) {
                faults.push(format!("{name} is pure, and imports {}", dependency.name));
            }
        }
    }
    for (name, folder, _) in FLOORS {
        if !seen.contains(*name) {
            faults.push(format!("{name} is missing from {folder}"));
        }
    }
    complain(&faults);
}

#[test]
fn modules_import_only_from_those_listed_above_them() {
    let sources = sources();
    let mut faults = Vec::new();
    for (_, folder, _) in FLOORS {
        let lib = format!("{folder}/src/lib.rs");
        let Some((_, text)) = sources.iter().find(|(p, _)| *p == lib) else { continue };
        let order: Vec<&str> = text.lines().filter_map(declared_module).collect();
        for (path, text) in
            sources.iter().filter(|(p, _)| p.starts_with(&format!("{folder}/src/")) && !is_test(p))
        {
            let inside = path.strip_prefix(&format!("{folder}/src/")).unwrap();
            let own = inside.split(['/', '.']).next().unwrap();
            let Some(at) = order.iter().position(|m| *m == own) else { continue };
            let body = text.split("#[cfg(test)]").next().unwrap_or(text);
            for name in body.lines().filter(|l| !l.trim_start().starts_with("//")).flat_map(crate_paths) {
                if order.iter().position(|m| *m == name).is_some_and(|to| to > at) {
                    faults.push(format!("{path}: `{own}` imports `{name}`, which is listed below it"));
                }
            }
        }
    }
    faults.dedup();
    complain(&faults);
}

fn declared_module(line: &str) -> Option<&str> {
    let line = line.trim();
    line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod "))?.strip_suffix(';')
}

fn crate_paths(line: &str) -> Vec<&str> {
    let name_end = |part: &str| part.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(part.len());
    line.split("crate::").skip(1).map(|rest| &rest[..name_end(rest)]).filter(|n| !n.is_empty()).collect()
}

#[test]
fn files_open_with_what_they_hold_and_stay_short() {
    let mut faults = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//!") {
            faults.push(format!(
                "{path}: does not open with `//!`: what it holds, and what it must never know"
            ));
        }
        let lines = text.lines().count();
        if lines > MAX_LINES && !is_test(&path) {
            faults.push(format!("{path}: {lines} lines; split it by noun (limit {MAX_LINES})"));
        }
    }
    complain(&faults);
}

#[test]
fn nothing_is_stubbed_skipped_or_swallowed() {
    // Spelled in pieces, so that this file does not find itself.
    let words = [
        ["todo", "!("].concat(),
        ["unimplemented", "!("].concat(),
        ["FIX", "ME"].concat(),
        ["#[ig", "nore"].concat(),
        ["#[allow(dead", "_code"].concat(),
    ];
    let nap = ["sle", "ep("].concat();
    let mut faults = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            for word in words.iter().filter(|w| line.contains(w.as_str())) {
                faults.push(format!("{path}:{}: {word}", number + 1));
            }
            if is_test(&path) && line.contains(&nap) && path != "tests/src/wait.rs" {
                faults.push(format!("{path}:{}: wait for a state with a limit instead", number + 1));
            }
        }
    }
    complain(&faults);
}

#[test]
fn dependencies_are_licensed_as_deny_toml_allows() {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let list = text.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
    let allowed: BTreeSet<&str> =
        list.lines().filter_map(|l| l.trim().strip_prefix('"')?.strip_suffix("\",")).collect();
    assert!(allowed.contains("MIT"), "deny.toml was not read: {allowed:?}");
    let mut faults = Vec::new();
    for package in metadata().packages {
        let Some(license) = &package.license else {
            faults.push(format!("{} has no licence expression", package.name));
            continue;
        };
        if !is_allowed(&license.replace('/', " OR "), &allowed) {
            faults.push(format!("{}: {license}", package.name));
        }
    }
    complain(&faults);
}

/// An SPDX expression of `AND` over groups of `OR`, or `OR` over groups of `AND`, as the packages in use have them.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let plain = expression.replace(['(', ')'], "");
    if expression.contains('(') {
        return plain.split(" AND ").all(|any| any.split(" OR ").any(|one| allowed.contains(one.trim())));
    }
    plain.split(" OR ").any(|all| all.split(" AND ").all(|one| allowed.contains(one.trim())))
}
