//! What a server may be told. A plain value; nothing here reads flags.

use std::net::SocketAddr;
use std::path::PathBuf;

/// PEM text, or the file that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// A file, read at start.
    File(PathBuf),
    /// The text.
    Text(String),
}

impl From<PathBuf> for Pem {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// A certificate chain and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain, the own certificate first.
    pub certificate: Pem,
    /// The key.
    pub key: Pem,
}

/// How node agents are reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAccess {
    /// What the server shows to them.
    pub identity: Identity,
    /// The authorities of their certificates.
    pub authority: Pem,
}

/// How tokens of service accounts are made and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccounts {
    /// The issuer that tokens name.
    pub issuer: String,
    /// The private key that signs; without it no tokens are made.
    pub signing_key: Option<Pem>,
    /// Further keys whose tokens count: public ones, or private ones for their public halves.
    pub keys: Vec<Pem>,
}

impl Default for ServiceAccounts {
    fn default() -> Self {
        Self { issuer: DEFAULT_ISSUER.to_owned(), signing_key: None, keys: Vec::new() }
    }
}

/// The issuer where nobody names one.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// What the server shows to clients.
    pub identity: Identity,
    /// The authorities of client certificates; without them only tokens count.
    pub client_authority: Option<Pem>,
    /// File of bearer tokens, in kube-apiserver's form.
    pub token_file: Option<PathBuf>,
    /// How node agents are reached; without it there are no logs.
    pub nodes: Option<NodeAccess>,
    /// How tokens of service accounts are made and checked; the default knows no keys.
    pub service_accounts: ServiceAccounts,
}
