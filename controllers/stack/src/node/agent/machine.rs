//! What there is to say about the machine (or the simulated ones) that a node stands for, read once at start.
//! It must never know pods.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use strata_plan::node::NodeDescription;

/// How many pods a real node takes.
const PROCESS_PODS: u32 = 110;
/// How many pods a simulated node takes.
const SIMULATED_PODS: u32 = 1000;
/// The version of the Kubernetes node contract that the agent keeps.
const NODE_VERSION: &str = concat!("v1.33.0+strata.", env!("CARGO_PKG_VERSION"));
/// The address of a node: everything is on this machine. Pods have addresses of their own beside it.
pub const ADDRESS: &str = "127.0.0.1";

/// The machine's own name, lower-cased, as node names must be.
pub fn host_name() -> String {
    let name = read("/proc/sys/kernel/hostname");
    if name.is_empty() { "localhost".to_owned() } else { name.to_lowercase() }
}

/// Describes a node of this machine, or a simulated one of the same size.
pub fn describe(name: &str, runtime: &str, simulated: bool, port: u16) -> NodeDescription {
    let os = os_release();
    let release = |key: &str| os.get(key).cloned().unwrap_or_default();
    let labels = [
        ("kubernetes.io/arch", go_architecture().to_owned()),
        ("kubernetes.io/hostname", name.to_owned()),
        ("kubernetes.io/os", "linux".to_owned()),
        ("strata.dev/runtime", runtime.to_owned()),
    ];
    let machine_id = if simulated { name.to_owned() } else { read("/etc/machine-id") };
    let info = BTreeMap::from([
        ("architecture", go_architecture().to_owned()),
        ("bootID", read("/proc/sys/kernel/random/boot_id")),
        ("containerRuntimeVersion", format!("{runtime}://{}", env!("CARGO_PKG_VERSION"))),
        ("kernelVersion", read("/proc/sys/kernel/osrelease")),
        ("kubeProxyVersion", String::new()),
        ("kubeletVersion", NODE_VERSION.to_owned()),
        ("machineID", machine_id.clone()),
        ("operatingSystem", "linux".to_owned()),
        ("osImage", release("PRETTY_NAME")),
        ("systemUUID", machine_id),
    ]);
    let host = if simulated { name.to_owned() } else { host_name() };
    NodeDescription {
        name: name.to_owned(),
        labels: labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        addresses: vec![("InternalIP", ADDRESS.to_owned()), ("Hostname", host)],
        port,
        capacity: capacity(simulated),
        info,
        not_ready: None,
    }
}

fn capacity(simulated: bool) -> BTreeMap<String, String> {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let pods = if simulated { SIMULATED_PODS } else { PROCESS_PODS };
    let kibibytes = total_memory(&read("/proc/meminfo")).unwrap_or(0);
    BTreeMap::from([
        ("cpu".to_owned(), cpus.to_string()),
        ("memory".to_owned(), format!("{kibibytes}Ki")),
        ("pods".to_owned(), pods.to_string()),
    ])
}

/// The machine's memory in KiB.
fn total_memory(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()
}

/// The architecture as the label of a node spells it.
fn go_architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn os_release() -> BTreeMap<String, String> {
    let text = read("/etc/os-release");
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect()
}

/// A small file's text, trimmed; empty where it cannot be read.
fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    match fs::read_to_string(path) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "unknown about this machine");
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{describe, total_memory};

    #[test]
    fn the_machine_is_described_with_what_a_scheduler_needs() {
        let node = describe("n1", "process", false, 4000);
        assert_eq!(node.labels["kubernetes.io/hostname"], "n1");
        assert!(node.capacity["cpu"].parse::<u32>().unwrap() >= 1);
        assert!(node.capacity["memory"].trim_end_matches("Ki").parse::<u64>().unwrap() > 0);
        assert!(!node.info["kernelVersion"].is_empty());
        assert_eq!(total_memory("MemFree: 1 kB\nMemTotal:       24600 kB\n"), Some(24600));
    }
}
