//! The log server over real mutual TLS, and its choice of attempts.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use strata_model::object::ObjectKey;
use strata_plan::pod::observed::{ContainerKey, ContainerState, ObservedContainer};
use strata_plan::pod::{environment, observed::Launch};
use strata_wire::v1::LogsRequest;
use strata_wire::v1::node_client::NodeClient;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity};

use super::{LogServer, Tls, bind, choose, options};
use crate::node::agent::index::Index;
use crate::node::runtime::Runtime;
use crate::node::runtime::simulated::SimulatedRuntime;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for localhost in an organisation, and its key, PEM.
    fn issue(&self, organisation: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::OrganizationName, organisation);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

fn launch() -> Launch {
    environment::bare(&Default::default(), &Default::default(), ContainerKey::new("u", "c", 0).unwrap())
}

async fn read(channel: Channel, request: LogsRequest) -> Result<String, tonic::Status> {
    let mut chunks = NodeClient::new(channel).logs(request).await?.into_inner();
    let mut text = Vec::new();
    while let Some(chunk) = chunks.message().await? {
        text.extend_from_slice(&chunk.data);
    }
    Ok(String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn logs_go_to_the_api_server_and_to_nobody_else() {
    let authority = Authority::new();
    let runtime: Arc<dyn Runtime> = Arc::new(SimulatedRuntime::new(Duration::ZERO));
    runtime.start(&launch()).unwrap();
    let index = Arc::new(Index::default());
    index.put("u", &ObjectKey::new("default", "web-0"));
    let (listener, address) = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let (certificate, key) = authority.issue("system:nodes");
    let tls = Tls {
        certificate_pem: certificate.into(),
        key_pem: key.into(),
        client_ca_pem: authority.0.pem().into(),
    };
    let server = LogServer::new(runtime, index).serve(listener, tls, std::future::pending());
    let server = tokio::spawn(server);

    let connect = async |organisation: Option<&str>| {
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(authority.0.pem()))
            .domain_name("localhost");
        if let Some(organisation) = organisation {
            let (certificate, key) = authority.issue(organisation);
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        let endpoint = Channel::from_shared(format!("https://{address}")).unwrap();
        endpoint.tls_config(tls).unwrap().connect_lazy()
    };
    let by_uid = || LogsRequest { pod_uid: "u".into(), ..LogsRequest::default() };
    let by_name =
        || LogsRequest { namespace: "default".into(), name: "web-0".into(), ..LogsRequest::default() };
    for request in [by_uid(), by_name()] {
        let text = read(connect(Some("system:masters")).await, request).await.unwrap();
        assert!(text.contains("simulated"), "{text}");
    }
    let missing = LogsRequest { name: "other".into(), ..by_name() };
    let error = read(connect(Some("system:masters")).await, missing).await.unwrap_err();
    assert_eq!((error.code(), error.message()), (tonic::Code::NotFound, "pods \"other\" not found"));
    let error = read(connect(Some("system:nodes")).await, by_uid()).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::PermissionDenied);
    assert!(read(connect(None).await, by_uid()).await.is_err());
    server.abort();
}

fn attempt(container: &str, number: u32, created: bool) -> ObservedContainer {
    let started_at = Timestamp::UNIX_EPOCH;
    ObservedContainer {
        key: ContainerKey::new("u", container, number).unwrap(),
        state: if created { ContainerState::Created } else { ContainerState::Running { started_at } },
        id: String::new(),
        backoff_seconds: 0,
        stop_by: None,
    }
}

#[test]
fn the_newest_attempt_is_meant_or_the_one_before() {
    let all = || vec![attempt("a", 2, false), attempt("a", 3, false), attempt("b", 0, true)];
    let ask = |container: &str, previous| {
        let request =
            LogsRequest { name: "p".into(), container: container.into(), previous, ..Default::default() };
        choose(&request, all()).map(|found| found.key.to_string()).map_err(|refused| refused.to_string())
    };
    assert_eq!(ask("a", false).unwrap(), "u/a/3");
    assert_eq!(ask("a", true).unwrap(), "u/a/2");
    assert_eq!(
        ask("b", false).unwrap_err(),
        "container \"b\" in pod \"p\" is waiting to start: ContainerCreating"
    );
    assert_eq!(ask("b", true).unwrap_err(), "previous terminated container \"b\" in pod \"p\" not found");
    assert!(ask("", false).unwrap_err().contains("choose one of: [\"a\", \"b\"]"));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let now: Timestamp = "2026-11-30T20:00:00Z".parse().unwrap();
    let read = |request: LogsRequest| options(&request, now);
    let since = read(LogsRequest { since_seconds: Some(60), ..Default::default() }).unwrap().since;
    assert_eq!(since, Some("2026-11-30T19:59:00Z".parse().unwrap()));
    assert!(read(LogsRequest { tail_lines: Some(-1), ..Default::default() }).is_err());
    assert!(read(LogsRequest { since_time: "yesterday".into(), ..Default::default() }).is_err());
    let both = LogsRequest { since_time: now.to_string(), since_seconds: Some(1), ..Default::default() };
    assert!(read(both).is_err());
}
