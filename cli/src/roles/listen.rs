//! Listen: the address that the API server is to listen at, as it is written in a flag, and as clients are told. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The port of a Kubernetes API server.
pub const DEFAULT: &str = "127.0.0.1:6443";

/// An address to listen at; port 0 takes a free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

/// An address that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "give an address and a port, as {DEFAULT}, or `:PORT` for this machine alone; port 0 takes a free one"
)]
pub struct ListenError;

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if let Ok(address) = text.parse() {
            return Ok(Listen(address));
        }
        let (host, port) = text.rsplit_once(':').ok_or(ListenError)?;
        if !matches!(host, "" | "localhost") {
            return Err(ListenError);
        }
        let port = port.parse().map_err(|_| ListenError)?;
        Ok(Listen(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where clients on this machine find a server that listens at `address`.
pub fn url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(text: &str) -> Option<String> {
        text.parse::<Listen>().ok().map(|listen| listen.to_string())
    }

    #[test]
    fn addresses_in_all_their_forms() {
        assert_eq!(listen(":0").as_deref(), Some("127.0.0.1:0"));
        assert_eq!(listen("localhost:6443").as_deref(), Some("127.0.0.1:6443"));
        assert_eq!(listen("0.0.0.0:1").as_deref(), Some("0.0.0.0:1"));
        assert_eq!(listen("[::1]:6443").as_deref(), Some("[::1]:6443"));
        for wrong in ["", "6443", "example:6443", ":70000", "127.0.0.1", ":x"] {
            assert_eq!(listen(wrong), None, "{wrong}");
        }
        assert_eq!(url("0.0.0.0:7".parse().unwrap()), "https://127.0.0.1:7");
        assert_eq!(url("[::]:7".parse().unwrap()), "https://[::1]:7");
        assert_eq!(url("10.0.0.1:7".parse().unwrap()), "https://10.0.0.1:7");
    }
}
