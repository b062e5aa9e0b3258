//! The way to a node's agent: a channel over TLS with the identity that agents accept. Knows nothing of what is asked.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

/// How long a node may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How nodes are reached: with the identity that their agents accept, or not at all.
#[derive(Clone, Default)]
pub struct Nodes {
    /// TLS towards the agents.
    pub tls: Option<Arc<rustls::ClientConfig>>,
}

impl Nodes {
    /// A channel to the agent at an address; it connects when it is first used.
    ///
    /// # Errors
    /// A sentence that says why there can be none.
    pub fn connect(&self, (ip, port): (IpAddr, u16)) -> Result<Channel, String> {
        let tls = self.tls.clone().ok_or("this server has no client certificate for nodes")?;
        let host = std::net::SocketAddr::new(ip, port);
        let endpoint = Endpoint::from_shared(format!("http://{host}")).map_err(|error| error.to_string())?;
        let connector = service_fn(move |_: Uri| {
            let tls = TlsConnector::from(Arc::clone(&tls));
            async move {
                let stream = tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(host))
                    .await
                    .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the connection timed out"))??;
                stream.set_nodelay(true)?;
                let stream = tls.connect(ServerName::IpAddress(ip.into()), stream).await?;
                Ok::<_, io::Error>(TokioIo::new(stream))
            }
        });
        Ok(endpoint.connect_with_connector_lazy(connector))
    }
}
