//! The server under test.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use strata_apiserver::server::config::{Identity, NodeAccess, ServiceAccounts};
use strata_apiserver::server::{Config, Pem, Server};
use strata_store::engine::memory::Memory;
use strata_store::store::{EngineChoice, Store};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::authority::{Authority, Pair};

/// A token that the server knows, of somebody without rights.
pub const TOKEN: &str = "let-me-in";

/// Small segments, so that a test fills a disk with few writes.
const SEGMENT_BYTES: u64 = 128 << 10;

/// A running server.
pub struct TestServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who signs everybody's certificates.
    pub authority: Authority,
    /// The key that signs tokens of service accounts.
    pub accounts: ServiceAccounts,
    /// The store behind it.
    pub store: Store,
    /// The store's memory.
    pub memory: Memory,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    _tokens: tempfile::NamedTempFile,
}

pub fn identity(pair: &Pair) -> Identity {
    Identity { certificate: Pem::Text(pair.certificate.clone()), key: Pem::Text(pair.key.clone()) }
}

impl TestServer {
    /// Starts one.
    pub async fn start() -> Self {
        let authority = Authority::new().unwrap();
        let tokens = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            tokens.path(),
            format!("{TOKEN},eve,7,people\nboss-token,boss,8,\"system:masters\"\n"),
        )
        .unwrap();
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let accounts = ServiceAccounts { signing_key: Some(Pem::Text(key)), ..ServiceAccounts::default() };
        let to_nodes = authority.identity("to-nodes", "system:masters", &[]).unwrap();
        let config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            identity: identity(&authority.identity("server", "servers", &["127.0.0.1"]).unwrap()),
            client_authority: Some(Pem::Text(authority.pem())),
            token_file: Some(tokens.path().to_owned()),
            nodes: Some(NodeAccess { identity: identity(&to_nodes), authority: Pem::Text(authority.pem()) }),
            service_accounts: accounts.clone(),
        };
        let memory = Memory::new();
        let store_config = strata_store::config::Config {
            history_transactions: 1,
            segment_bytes: SEGMENT_BYTES,
            ..Default::default()
        };
        let store = Store::open(store_config, EngineChoice::Memory(memory.clone())).unwrap();
        let server = Server::start(config, store.clone()).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            server.run(async { stopped.await.unwrap_or_default() }).await.unwrap();
        });
        Self { address, authority, accounts, store, memory, stop: Some(stop), task, _tokens: tokens }
    }

    /// A second server over the same store, with an authority of its own.
    pub async fn beside(&self) -> Self {
        let tokens = tempfile::NamedTempFile::new().unwrap();
        let (authority, accounts) = (Authority::new().unwrap(), self.accounts.clone());
        let config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            identity: identity(&authority.identity("server", "servers", &["127.0.0.1"]).unwrap()),
            client_authority: Some(Pem::Text(authority.pem())),
            token_file: None,
            nodes: None,
            service_accounts: accounts.clone(),
        };
        let server = Server::start(config, self.store.clone()).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            server.run(async { stopped.await.unwrap_or_default() }).await.unwrap();
        });
        let (store, memory) = (self.store.clone(), self.memory.clone());
        Self { address, authority, accounts, store, memory, stop: Some(stop), task, _tokens: tokens }
    }

    /// Ends it in order, and waits until it has ended.
    pub async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap();
    }

    /// TLS as somebody in a group, or as nobody.
    pub fn tls(&self, who: Option<(&str, &str)>, protocol: &str) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.pem().as_bytes()).unwrap()).unwrap();
        let builder =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let builder = builder.with_root_certificates(roots);
        let mut tls = match who {
            None => builder.with_no_client_auth(),
            Some((name, group)) => {
                let pair = self.authority.identity(name, group, &[]).unwrap();
                let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Arc::new(tls)
    }
}

/// A TLS connection.
pub async fn connect(address: SocketAddr, tls: Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(tls).connect(ServerName::IpAddress(address.ip().into()), stream).await
}
