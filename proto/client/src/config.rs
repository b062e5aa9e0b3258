//! Where a server is and who one is there: plain values, ready to connect with. Reads nothing by itself.

use http::Uri;

/// A certificate chain and its key, PEM.
#[derive(Clone)]
pub struct Identity {
    /// Chain, leaf first.
    pub certificate_pem: Vec<u8>,
    /// Private key.
    pub key_pem: Vec<u8>,
}

/// Does not show the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({} bytes of certificate)", self.certificate_pem.len())
    }
}

/// A secret that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A server, and an identity there.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// `https://host:port`; `http` works too and has no identity.
    pub server: Uri,
    /// Authorities to trust, PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// The name in the server's certificate, where it is not the host.
    pub tls_server_name: Option<String>,
    /// Client certificate.
    pub identity: Option<Identity>,
    /// Bearer token.
    pub token: Option<Token>,
    /// Default namespace; `default` if the context names none.
    pub namespace: String,
    /// Sent as user agent.
    pub user_agent: String,
    /// Connections for unary calls and watches; 1 is right for all but load generators.
    pub connections: usize,
    /// Most seconds an answer may take (each piece of a list; not logs and watches).
    pub request_timeout_seconds: u64,
}

/// Seconds an answer may take, if nobody says otherwise.
pub const REQUEST_TIMEOUT_SECONDS: u64 = 30;

impl ClientConfig {
    /// A server without identity.
    pub fn new(server: Uri) -> Self {
        Self {
            server,
            ca_pem: None,
            tls_server_name: None,
            identity: None,
            token: None,
            namespace: "default".to_owned(),
            user_agent: concat!("strata/", env!("CARGO_PKG_VERSION")).to_owned(),
            connections: 1,
            request_timeout_seconds: REQUEST_TIMEOUT_SECONDS,
        }
    }
}
