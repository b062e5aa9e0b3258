//! The bench goes on working: each suite in its smallest size, of which no figure is judged. Where etcd is not installed
//! this looks at its command line only.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::process::{Command, Output};

// Tells whether etcd is there in one way only, wherever it is tested with.
#[path = "../../store/tests/support/etcd.rs"]
mod etcd;

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bench")).args(args).output().unwrap()
}

fn said(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_store_suite_gives_a_table_and_lines_for_machines() {
    if !etcd::is_there() {
        return;
    }
    let names = ["put1_latency_vs_etcd", "range10k_vs_etcd", "http_put64_vs_etcd", "watch_p99_vs_etcd"];
    let args = [&["store", "--quick", "--rounds", "1", "--only"], names.as_slice()].concat();
    let output = bench(&args);
    let (out, err) = (said(&output.stdout), said(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    for name in names {
        let line = out.lines().find_map(|line| line.strip_prefix(&format!("ratio {name} ")));
        let value: f64 = line.unwrap_or_else(|| panic!("no {name} in {out}")).parse().unwrap();
        assert!(value.is_finite() && value >= 0.0, "{name} {value}");
    }
}

#[test]
fn what_there_is_not_is_refused_by_name() {
    let unknown = bench(&["stores"]);
    assert!(!unknown.status.success() && said(&unknown.stderr).contains("'stores'"), "{unknown:?}");
    let unknown = bench(&["store", "--only", "put65_vs_etcd"]);
    let err = said(&unknown.stderr);
    assert!(
        !unknown.status.success() && err.contains("put65_vs_etcd") && err.contains("put64_vs_etcd"),
        "{err}"
    );
}
