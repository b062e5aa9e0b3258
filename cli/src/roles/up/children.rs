//! Children: the process of each role, with the flags that anybody could give it by hand. Pure.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use strata_stack::process::Name;

use super::args::Config;
use crate::roles::datadir::Layout;
use crate::roles::identities;
use crate::roles::pki::store::Pki;
use crate::roles::supervise::child::{Inherits, Spec};
use crate::roles::telemetry::LogArgs;

/// The API server's name among the children.
pub const APISERVER: &str = "apiserver";
/// The node agent's.
pub const NODE: &str = "node";

/// A list of arguments in the making.
#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn of(words: &[&str]) -> Words {
        Words(words.iter().map(OsString::from).collect())
    }

    fn flag(mut self, name: &str, value: impl AsRef<OsStr>) -> Words {
        self.0.push(name.into());
        self.0.push(value.as_ref().to_owned());
        self
    }

    fn flag_if(self, name: &str, value: Option<impl AsRef<OsStr>>) -> Words {
        match value {
            Some(value) => self.flag(name, value),
            None => self,
        }
    }

    fn switch(mut self, name: &str, on: bool) -> Words {
        self.0.extend(on.then(|| name.into()));
        self
    }

    fn log(self, log: &LogArgs) -> Words {
        let verbose = (1..=log.verbose.min(3)).fold(self, |words, _| words.switch("-v", true));
        verbose.flag("--log-format", log.log_format.as_str()).flag_if("--log-level", log.log_level.as_ref())
    }

    fn child(self, name: &str, inherits: Inherits) -> Spec {
        Spec { name: name.to_owned(), args: self.0, inherits }
    }
}

/// What the children of one `strata up` share.
pub struct Platform<'a> {
    /// What the flags said.
    pub config: &'a Config,
    /// Where the files are.
    pub layout: &'a Layout,
    /// Where the certificates are.
    pub pki: &'a Pki,
    /// The node's name.
    pub node: &'a str,
    /// Who holds the leader leases: the same over restarts of a child, since two never run at a time.
    pub identity: &'a str,
    /// The API server's socket, and its address.
    pub listener: (Arc<TcpListener>, SocketAddr),
    /// What the other children hold.
    pub lock: Arc<File>,
}

/// All children, in the stages in which they are stopped: the node agent, the controllers, the API server.
pub fn stages(platform: &Platform<'_>) -> Vec<Vec<Spec>> {
    let mut homes: Vec<(&'static str, Vec<&'static str>)> = Vec::new();
    for name in &platform.config.controllers {
        let home = name.home();
        match homes.iter_mut().find(|(known, _)| *known == home) {
            Some((_, names)) => names.push(name.as_str()),
            None => homes.push((home, vec![name.as_str()])),
        }
    }
    let controllers = homes.iter().map(|(home, names)| controllers(platform, home, names));
    vec![vec![node(platform)], controllers.collect(), vec![apiserver(platform)]]
}

fn apiserver(platform: &Platform<'_>) -> Spec {
    let Platform { config, layout, pki, listener: (listener, address), .. } = platform;
    let (certificate, key) = pki.files(identities::SERVER);
    let (to_nodes, to_nodes_key) = pki.files(identities::TO_NODES);
    let words = Words::of(&["apiserver"]).flag("--listen", address.to_string());
    let etcd = config.server.etcd.words(absolute);
    let words = match etcd.is_empty() {
        true if config.server.in_memory => words.switch("--in-memory", true),
        true => words.flag("--store", layout.store()),
        false => etcd.into_iter().fold(words, |words, (flag, value)| words.flag(flag, value)),
    };
    words
        .flag("--tls-cert-file", certificate)
        .flag("--tls-private-key-file", key)
        .flag("--client-ca-file", pki.authority_file())
        .flag("--kubelet-client-certificate", to_nodes)
        .flag("--kubelet-client-key", to_nodes_key)
        .flag("--kubelet-certificate-authority", pki.authority_file())
        .flag("--service-account-signing-key-file", pki.files(identities::SERVICE_ACCOUNTS).1)
        .flag_if("--token-auth-file", config.server.token_auth_file.as_deref().map(absolute))
        .flag("--history-minutes", config.server.history_minutes.to_string())
        .log(&config.log)
        .child(APISERVER, Inherits::Listener(Arc::clone(listener)))
}

fn controllers(platform: &Platform<'_>, home: &str, names: &[&str]) -> Spec {
    let layout = platform.layout;
    let kubeconfig = match names {
        [one] => layout.role_kubeconfig(one),
        _ => layout.roles(),
    };
    let words = Words::of(&["controller", &names.join(",")]).flag("--kubeconfig", kubeconfig);
    let words = match names.contains(&Name::CertificateSigning.as_str()) {
        true => words
            .flag("--cluster-signing-cert-file", platform.pki.authority_file())
            .flag("--cluster-signing-key-file", platform.pki.authority_key_file()),
        false => words,
    };
    words
        .flag("--identity", platform.identity)
        .flag_if("--admin-socket", layout.admin_socket(home))
        .flag_if("--repository-cache", (home == "application").then(|| layout.repositories()))
        .log(&platform.config.log)
        .child(home, Inherits::Lock(Arc::clone(&platform.lock)))
}

fn node(platform: &Platform<'_>) -> Spec {
    let Platform { config, layout, pki, .. } = platform;
    let (certificate, key) = pki.files(identities::NODE);
    Words::of(&["node"])
        .flag("--kubeconfig", layout.role_kubeconfig(identities::NODE))
        .flag("--root", layout.node())
        .flag_if("--admin-socket", layout.admin_socket(NODE))
        .flag("--name", platform.node)
        .flag("--tls-cert-file", certificate)
        .flag("--tls-private-key-file", key)
        .flag("--client-ca-file", pki.authority_file())
        .flag("--runtime", config.agent.runtime.as_str())
        .flag("--nodes", config.agent.nodes.to_string())
        .switch("--keep-workloads", config.agent.keep_workloads)
        .log(&config.log)
        .child(NODE, Inherits::Lock(Arc::clone(&platform.lock)))
}

/// A path that stays right in a process list.
fn absolute(path: &Path) -> OsString {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).into_os_string()
}
