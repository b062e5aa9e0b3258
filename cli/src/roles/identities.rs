//! Identities: who takes part in a platform, with which certificate, and the kubeconfig by which each finds the server.
//! The lists and texts are pure; `prepare` alone writes them into a data directory.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use super::datadir::Layout;
use super::files;
use super::listen;
use super::pki::leaf::{Leaf, Pair, San, Use};
use super::pki::store::{Pki, PkiError};

/// The user of the administrator's kubeconfig.
const ADMIN: &str = "strata-admin";
/// The group that may do everything.
const MASTERS: &str = "system:masters";
/// The names by which workloads know the API server.
const SERVICE_NAMES: [&str; 4] =
    ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
/// The files of the API server's own certificate, of its identity towards node agents, and of the node agent's.
pub const SERVER: &str = "apiserver";
/// The API server's identity towards node agents.
pub const TO_NODES: &str = "apiserver-kubelet-client";
/// The node agent's certificate.
pub const NODE: &str = "node";
/// The key pair of service accounts.
pub const SERVICE_ACCOUNTS: &str = "sa";

/// What the certificates depend on.
#[derive(Clone, Debug)]
pub struct Names {
    /// The machine's name.
    pub host: String,
    /// The node that the agent speaks for.
    pub node: String,
    /// Where the API server listens.
    pub address: SocketAddr,
    /// Further names and addresses by which it is reached.
    pub more: Vec<San>,
    /// The controllers that run.
    pub controllers: Vec<&'static str>,
}

/// Names by which a server on this machine is reached from it.
fn local(names: &Names) -> BTreeSet<San> {
    let mut sans = BTreeSet::from([
        San::Name("localhost".to_owned()),
        San::Address([127, 0, 0, 1].into()),
        San::Address(std::net::Ipv6Addr::LOCALHOST.into()),
    ]);
    if is_dns_name(&names.host) {
        sans.insert(San::Name(names.host.clone()));
    }
    sans
}

/// A name that a certificate can carry and a client can check; a machine may be called anything.
fn is_dns_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 253
        && name.split('.').all(|label| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}

fn server(names: &Names) -> Leaf {
    let mut sans = local(names);
    sans.extend(SERVICE_NAMES.map(|name| San::Name(name.to_owned())));
    sans.extend(names.more.iter().cloned());
    if !names.address.ip().is_unspecified() {
        sans.insert(San::Address(names.address.ip()));
    }
    let user = "strata-apiserver".to_owned();
    Leaf { file: SERVER.to_owned(), user, group: None, usage: Use::Server, sans }
}

fn client(file: &str, user: String, group: &str) -> Leaf {
    let (file, group) = (file.to_owned(), Some(group.to_owned()));
    Leaf { file, user, group, usage: Use::Client, sans: BTreeSet::new() }
}

fn node(names: &Names) -> Leaf {
    Leaf {
        usage: Use::ClientAndServer,
        sans: local(names),
        ..client(NODE, format!("system:node:{}", names.node), "system:nodes")
    }
}

/// The text of a kubeconfig with one cluster, one user and one context, everything embedded.
pub fn kubeconfig(url: &str, authority: &str, user: &str, pair: &Pair) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: strata\n  \
           cluster:\n    \
             server: {url}\n    \
             certificate-authority-data: {}\n\
         users:\n\
         - name: {user}\n  \
           user:\n    \
             client-certificate-data: {}\n    \
             client-key-data: {}\n\
         contexts:\n\
         - name: strata\n  \
           context:\n    \
             cluster: strata\n    \
             user: {user}\n\
         current-context: strata\n",
        encode(authority),
        encode(&pair.certificate),
        encode(&pair.key)
    )
}

/// Makes or renews everything in the data directory by which the platform's processes know each other. Files that
/// serve as they are stay untouched.
///
/// # Errors
/// Files that cannot be read or written, or a damaged authority.
pub fn prepare(layout: &Layout, names: &Names, now: Timestamp) -> Result<Pki, PkiError> {
    let pki = Pki::open(&layout.pki(), now)?;
    let url = listen::url(names.address);
    pki.ensure(&server(names), now)?;
    pki.ensure(&client(TO_NODES, "kube-apiserver-kubelet-client".to_owned(), MASTERS), now)?;
    pki.ensure_key(SERVICE_ACCOUNTS)?;
    let admin = client("admin", ADMIN.to_owned(), MASTERS);
    let mut files = vec![(layout.kubeconfig(), admin), (layout.role_kubeconfig(NODE), node(names))];
    files.extend(names.controllers.iter().map(|name| {
        let leaf =
            client(&format!("controller-{name}"), format!("system:controller:{name}"), "system:controllers");
        (layout.role_kubeconfig(name), leaf)
    }));
    for (path, leaf) in files {
        let pair = pki.ensure(&leaf, now)?;
        let text = kubeconfig(&url, pki.authority(), &leaf.user, &pair);
        files::write_if_changed(&path, text.as_bytes())?;
    }
    Ok(pki)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::datadir::DataDir;

    fn names(address: &str) -> Names {
        Names {
            host: "machine".to_owned(),
            node: "machine".to_owned(),
            address: address.parse().unwrap(),
            more: vec![],
            controllers: vec!["deployment"],
        }
    }

    #[test]
    fn a_second_start_changes_only_what_must() {
        let now: Timestamp = "2026-11-30T20:00:00Z".parse().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let data = DataDir::open(dir.path()).unwrap();
        let read = |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap();
        let layout = data.layout();

        prepare(layout, &names("127.0.0.1:6443"), now).unwrap();
        let (first, server) = (read(layout.kubeconfig()), read(layout.pki().join("apiserver.crt")));
        assert!(first.contains("server: https://127.0.0.1:6443\n"), "{first}");
        prepare(layout, &names("127.0.0.1:6443"), now).unwrap();
        assert_eq!(read(layout.kubeconfig()), first);

        prepare(layout, &names("127.0.0.1:7000"), now).unwrap();
        let other = read(layout.kubeconfig());
        assert_eq!(other, first.replace(":6443", ":7000"), "the identity stays");
        assert_eq!(read(layout.pki().join("apiserver.crt")), server);
        assert!(read(layout.role_kubeconfig("deployment")).contains("system:controller:deployment"));

        prepare(layout, &names("10.0.0.7:7000"), now).unwrap();
        assert_ne!(read(layout.pki().join("apiserver.crt")), server, "it answers to another address");
    }

    #[test]
    fn odd_machine_names_are_left_out() {
        assert!(is_dns_name("node-1.example.org"));
        for odd in ["", "a_b", "a..b", "ü"] {
            assert!(!is_dns_name(odd), "{odd}");
        }
    }
}
