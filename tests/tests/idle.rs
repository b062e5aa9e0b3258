//! A converged, idle platform writes nothing but leases: shown by the store's own revision line.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use strata_tests::platform::{Platform, signal};
use strata_tests::{tools, wait};

const LIMIT: Duration = Duration::from_secs(40);
/// How long the platform is looked at. Longer than the renewal time of every lease and than the resync of status.
const LOOK: Duration = Duration::from_secs(25);

/// The revision of the store: one for every transaction there ever was.
fn revision(platform: &Platform) -> u64 {
    let said = platform.strata(&["cluster-info"]).ok();
    let number = said.split("revision ").nth(1).and_then(|rest| rest.split(',').next());
    number.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("no revision in {said:?}"))
}

#[test]
fn nothing_is_written_when_nothing_changes() {
    let platform = Platform::start(&["--runtime", "simulated"]);
    platform.strata(&["create", "deployment", "calm", "--image=nginx", "--replicas=3"]).ok();
    platform.strata(&["wait", "deployment/calm", "--for=condition=Available", "--timeout=40s"]).ok();
    // The last events and the final status of everything may still be on their way: begin when a second is quiet but for leases.
    let quiet = || {
        let before = without_leases(&platform);
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end {
            std::thread::park_timeout(Duration::from_millis(100));
        }
        if before == without_leases(&platform) { Ok(()) } else { Err("still changing") }
    };
    wait::until("the platform to come to rest", LIMIT, quiet);

    let (objects, from) = (without_leases(&platform), revision(&platform));
    let mut watch = Command::new(tools::strata())
        .args(["get", "leases", "-A", "--watch-only", "-o", "name"])
        .env("KUBECONFIG", platform.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let end = Instant::now() + LOOK;
    while Instant::now() < end {
        std::thread::park_timeout(Duration::from_millis(200));
    }
    let to = revision(&platform);
    signal(watch.id() as i32, Signal::TERM);
    watch.wait().unwrap();
    let renewals = lines.map_while(Result::ok).count() as u64;

    assert_eq!(without_leases(&platform), objects, "something other than a lease was written");
    assert!(renewals > 0, "leases are renewed: the look was long enough to see it");
    // The watch begins a moment after the first revision was read, and ends a moment after the last.
    assert!(
        to - from <= renewals + 8,
        "{} transactions in {LOOK:?}, of which {renewals} renew leases",
        to - from
    );
}

/// The revision of every object that is no lease.
fn without_leases(platform: &Platform) -> BTreeMap<String, String> {
    let types = "namespaces,nodes,pods,events,configmaps,secrets,serviceaccounts,deployments,replicasets";
    let all: Value =
        serde_json::from_str(&platform.strata(&["get", types, "-A", "-o", "json"]).ok()).unwrap();
    let of = |o: &Value| {
        let meta = &o["metadata"];
        let name = format!("{}/{}/{}", o["kind"], meta["namespace"], meta["name"]);
        (name, meta["resourceVersion"].as_str().unwrap().to_owned())
    };
    let found: BTreeMap<String, String> = all["items"].as_array().unwrap().iter().map(of).collect();
    assert!(found.len() > 8, "{found:?}");
    found
}
