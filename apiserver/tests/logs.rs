//! Logs, through the server, from a node agent that checks who asks.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::sync::Arc;

use common::authority::Pair;
use common::rest::Rest;
use common::server::TestServer;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;
use strata_wire::v1::node_server::{Node, NodeServer};
use strata_wire::v1::{LogChunk, LogsRequest};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tonic::{Request, Response, Status};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// An agent that answers with what it was asked.
struct Echo;

#[tonic::async_trait]
impl Node for Echo {
    type LogsStream = tokio_stream::Iter<std::vec::IntoIter<Result<LogChunk, Status>>>;

    async fn logs(&self, request: Request<LogsRequest>) -> Result<Response<Self::LogsStream>, Status> {
        let asked = request.into_inner();
        if asked.container == "gone" {
            return Err(Status::not_found("no such log"));
        }
        let text = format!("{} {} {:?}\n", asked.name, asked.container, asked.tail_lines);
        let chunks = [text, asked.pod_uid].map(|text| Ok(LogChunk { data: text.into() }));
        Ok(Response::new(tokio_stream::iter(chunks.to_vec())))
    }
}

/// Starts an agent that believes the authority; gives its port.
async fn agent(server: &TestServer) -> u16 {
    let Pair { certificate, key } = server.authority.identity("n1", "system:nodes", &["127.0.0.1"]).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(server.authority.pem().as_bytes()).unwrap()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut tls = builder.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(tls)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = acceptor.accept(stream).await.unwrap();
            let routes = tonic::service::Routes::new(NodeServer::new(Echo)).into_axum_router();
            let service = TowerToHyperService::new(routes);
            tokio::spawn(async move {
                let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                builder.serve_connection(TokioIo::new(stream), service).await.unwrap_or_default();
            });
        }
    });
    port
}

async fn place(admin: &Rest, port: u16) {
    let node = json!({"metadata": {"name": "n1"}, "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
    assert_eq!(admin.post("/api/v1/nodes", &node).await.code, 201);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "a", "image": "host"}, {"name": "gone", "image": "host"}, {"name": "waiting", "image": "host"}]}});
    assert_eq!(admin.post(PODS, &pod).await.code, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_come_from_the_pods_node() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    let port = agent(&server).await;
    place(&admin, port).await;
    let log = |query: &str| {
        let (admin, path) = (admin.clone(), format!("{PODS}/p/log?{query}"));
        async move { admin.get(&path).await }
    };
    let unbound = log("container=a").await;
    assert_eq!(unbound.code, 400, "{}", unbound.text);
    assert!(unbound.text.contains("does not have a host assigned"), "{}", unbound.text);
    let binding = json!({"target": {"kind": "Node", "name": "n1"}});
    assert_eq!(admin.post(&format!("{PODS}/p/binding"), &binding).await.code, 201);
    let uid = admin.get(&format!("{PODS}/p")).await.json()["metadata"]["uid"].as_str().unwrap().to_owned();
    let found = log("container=a&tailLines=3").await;
    assert_eq!((found.code, found.text), (200, format!("p a Some(3)\n{uid}")));
    assert_eq!(found.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(log("container=gone").await.code, 404);
    let waiting = json!({"status": {"containerStatuses": [
        {"name": "waiting", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}]}});
    assert_eq!(admin.merge(&format!("{PODS}/p/status"), &waiting).await.code, 200);
    for (query, part) in [
        ("", "a container name must be specified for pod p, choose one of: [a gone waiting]"),
        ("container=zz", "container zz is not valid for pod p"),
        ("container=waiting", "is waiting to start: ContainerCreating"),
        ("container=waiting&previous=true", "previous terminated container"),
    ] {
        let refused = log(query).await;
        assert_eq!(refused.code, 400, "{query}: {}", refused.text);
        assert!(refused.text.contains(part), "{query}: {}", refused.text);
    }
    assert_eq!(log("container=a&tailLines=-1").await.code, 422);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_be_reached_is_named() {
    let server = TestServer::start().await;
    let admin = Rest::admin(&server);
    // A port that was free a moment ago, and that nobody listens on.
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    place(&admin, port).await;
    let binding = json!({"target": {"kind": "Node", "name": "n1"}});
    assert_eq!(admin.post(&format!("{PODS}/p/binding"), &binding).await.code, 201);
    let refused = admin.get(&format!("{PODS}/p/log?container=a")).await;
    assert_eq!(refused.code, 503, "{}", refused.text);
    assert!(refused.text.contains("the agent of node \\\"n1\\\" cannot be asked"), "{}", refused.text);
    assert_eq!(admin.delete("/api/v1/nodes/n1").await.code, 200);
    assert_eq!(admin.get(&format!("{PODS}/p/log?container=a")).await.code, 503);
    server.stop().await;
}
