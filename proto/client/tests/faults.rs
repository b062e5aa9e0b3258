//! Every way in which there is no connection has a name of its own, so that a person can be told what to do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    date_time_ymd,
};
use strata_client::client::Client;
use strata_client::config::{ClientConfig, Identity};
use strata_client::error::{Class, ClientError, ConnectFault};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

type Ca = CertifiedIssuer<'static, KeyPair>;

fn ca() -> Ca {
    let mut params = CertificateParams::new(Vec::new()).expect("params");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "test");
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("key")).expect("ca")
}

/// A leaf, as PEM: certificate and key.
fn leaf(ca: &Ca, host: &str, use_: ExtendedKeyUsagePurpose, expired: bool) -> (String, String) {
    let mut params = CertificateParams::new(vec![host.to_owned()]).expect("params");
    params.extended_key_usages = vec![use_];
    if expired {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 2);
    }
    let key = KeyPair::generate().expect("key");
    (params.signed_by(&key, ca).expect("leaf").pem(), key.serialize_pem())
}

/// A server that finishes handshakes and nothing else.
async fn server(certificate: (String, String), clients: &Ca) -> SocketAddr {
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(clients.der().clone()).expect("root");
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let chain = vec![CertificateDer::from_pem_slice(certificate.0.as_bytes()).expect("certificate")];
    let key = PrivateKeyDer::from_pem_slice(certificate.1.as_bytes()).expect("key");
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("verifier"))
        .with_single_cert(chain, key)
        .expect("config");
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
    let address = listener.local_addr().expect("address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A handshake that fails is what these tests are about.
            drop(acceptor.accept(stream).await);
        }
    });
    address
}

async fn fault(config: &ClientConfig) -> (ConnectFault, Class) {
    let client = Client::new(config).expect("client");
    let asked = tokio::time::timeout(Duration::from_secs(20), client.version()).await.expect("in time");
    match asked {
        Err(error @ ClientError::Connect { fault, .. }) => (fault, error.class()),
        other => panic!("expected no connection, got {other:?}"),
    }
}

fn config(address: SocketAddr, host: &str, trusted: &Ca, identity: Option<(String, String)>) -> ClientConfig {
    let uri = format!("https://{host}:{}", address.port()).parse().expect("uri");
    ClientConfig {
        ca_pem: Some(trusted.pem().into_bytes()),
        identity: identity
            .map(|(c, k)| Identity { certificate_pem: c.into_bytes(), key_pem: k.into_bytes() }),
        ..ClientConfig::new(uri)
    }
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
    let address = listener.local_addr().expect("address");
    drop(listener);
    assert_eq!(
        fault(&config(address, "127.0.0.1", &ca(), None)).await,
        (ConnectFault::Refused, Class::Transient)
    );
}

#[tokio::test]
async fn no_such_host() {
    let address = SocketAddr::from(([127, 0, 0, 1], 6443));
    let (fault, class) = fault(&config(address, "no-such-host.invalid", &ca(), None)).await;
    assert_eq!((fault, class), (ConnectFault::UnknownHost, Class::Transient));
}

#[tokio::test]
async fn no_tls_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
    let address = listener.local_addr().expect("address");
    tokio::spawn(async move {
        use tokio::io::AsyncWriteExt as _;
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        }
    });
    assert_eq!(fault(&config(address, "127.0.0.1", &ca(), None)).await.0, ConnectFault::NotTls);
}

#[tokio::test]
async fn certificates_of_every_wrong_kind() {
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let (ours, other) = (ca(), ca());
    let good = server(leaf(&ours, "127.0.0.1", ServerAuth, false), &ours).await;
    let expired = server(leaf(&ours, "127.0.0.1", ServerAuth, true), &ours).await;
    let me = || Some(leaf(&ours, "me", ClientAuth, false));
    for (address, host, trusted, identity, expected) in [
        (good, "127.0.0.1", &other, me(), ConnectFault::UntrustedServer),
        (good, "localhost", &ours, me(), ConnectFault::WrongHost),
        (expired, "127.0.0.1", &ours, me(), ConnectFault::ServerExpired),
        (good, "127.0.0.1", &ours, Some(leaf(&ours, "me", ClientAuth, true)), ConnectFault::ClientExpired),
        (good, "127.0.0.1", &ours, Some(leaf(&other, "me", ClientAuth, false)), ConnectFault::ClientRejected),
        (good, "127.0.0.1", &ours, None, ConnectFault::ClientRejected),
    ] {
        let found = fault(&config(address, host, trusted, identity)).await;
        assert_eq!(found, (expected, Class::Terminal));
    }
    let found = fault(&config(good, "127.0.0.1", &ours, me())).await;
    assert_eq!(found, (ConnectFault::Broken, Class::Transient), "the handshake is fine, then it hangs up");
}
