//! A gRPC channel to the server under test.

use hyper_util::rt::TokioIo;
use strata_wire::v1::resources_client::ResourcesClient;
use strata_wire::v1::{self, ResourceRef};
use tonic::transport::{Channel, Endpoint, Uri};

use super::server::{TestServer, connect};

/// A channel as somebody in a group.
pub fn channel(server: &TestServer, who: Option<(&str, &str)>) -> Channel {
    let (address, tls) = (server.address, server.tls(who, "h2"));
    let connector = tower::service_fn(move |_: Uri| {
        let tls = tls.clone();
        async move { connect(address, tls).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://test").connect_with_connector_lazy(connector)
}

/// A client of objects that may do everything.
pub fn admin(server: &TestServer) -> ResourcesClient<Channel> {
    ResourcesClient::new(channel(server, Some(("admin", "system:masters"))))
}

/// The place of a type.
pub fn resource(group: &str, resource: &str) -> Option<ResourceRef> {
    Some(ResourceRef { group: group.to_owned(), version: "v1".to_owned(), resource: resource.to_owned() })
}

/// A message that opens a watch of config maps in `default`.
pub fn open_watch(watch_id: u64, open: v1::WatchOpen) -> v1::WatchRequest {
    let open = v1::WatchOpen {
        resource: open.resource.or_else(|| resource("", "configmaps")),
        namespace: "default".to_owned(),
        ..open
    };
    v1::WatchRequest { watch_id, say: Some(v1::watch_request::Say::Open(open)) }
}
