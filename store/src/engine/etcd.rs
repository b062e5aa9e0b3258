//! What of the etcd engine speaks with etcd: connections, the form of what is kept there, opening,
//! history. etcd owns the line of revisions, so there is no writing half here: see `remote`.
//! Any cluster of version 3.4 or newer will do. Knows nothing of callers or watchers.

use std::fmt;

pub(crate) mod wire;
pub(crate) mod layout;
pub(crate) mod members;
pub(crate) mod events;
pub(crate) mod load;
pub(crate) mod history;
pub(crate) mod import;

/// Where a cluster is, and which part of it is the store's.
///
/// The store may share the cluster with other users under other prefixes, but not its history: it gives
/// back the whole cluster's, and another user who does the same shortens the store's.
#[derive(Clone)]
pub struct EtcdConfig {
    /// Addresses of the servers, `http://HOST:PORT` or `https://HOST:PORT`; one is used at a time.
    pub servers: Vec<String>,
    /// Prefix of all keys; stores with the same prefix are the same store. Default `/strata`.
    pub prefix: String,
    /// Authorities that signed the servers' certificates, PEM; needed for https.
    pub authority_pem: Option<Vec<u8>>,
    /// What to prove to the servers who this is with; none by default.
    pub identity: Option<EtcdIdentity>,
}

/// A client's certificate and its key.
#[derive(Clone)]
pub struct EtcdIdentity {
    /// The certificate, PEM.
    pub certificate_pem: Vec<u8>,
    /// Its private key, PEM.
    pub key_pem: Vec<u8>,
}

impl EtcdConfig {
    /// A cluster without TLS, default prefix.
    #[must_use]
    pub fn new(servers: Vec<String>) -> Self {
        EtcdConfig { servers, prefix: "/strata".to_owned(), authority_pem: None, identity: None }
    }
}

impl fmt::Debug for EtcdConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdConfig")
            .field("servers", &self.servers)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
