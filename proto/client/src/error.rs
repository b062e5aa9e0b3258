//! What can go wrong between a client and a server, sorted by what can be done about it.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use strata_model::object::ObjectError;
use strata_model::status::{Reason, Status};
use strata_wire::convert;

/// What can be done about an error. Queues act on this alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The object is not in the state that was assumed: look again.
    Conflict,
    /// There is no such object (or type, or namespace).
    NotFound,
    /// The request is wrong and stays so until its input changes.
    Invalid,
    /// Likely to pass: try again later.
    Transient,
    /// Does not pass by itself: somebody must act (rights, certificates, versions).
    Terminal,
}

impl Class {
    /// A word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::Transient => "transient",
            Self::Terminal => "terminal",
        }
    }
}

/// Why there is no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectFault {
    /// Nothing listens there.
    Refused,
    /// The host's name does not resolve.
    UnknownHost,
    /// No route, or the network is down.
    Unreachable,
    /// No answer in time.
    Timeout,
    /// The server's certificate is not signed by the authority we trust.
    UntrustedServer,
    /// The server's certificate is not for this host.
    WrongHost,
    /// The server's certificate has expired, or is not yet valid.
    ServerExpired,
    /// The server takes our certificate for expired.
    ClientExpired,
    /// The server does not accept our certificate, or wants one and has none.
    ClientRejected,
    /// What listens there does not speak TLS.
    NotTls,
    /// The connection broke while it was in use.
    Broken,
}

impl fmt::Display for ConnectFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "connection refused: nothing listens there",
            Self::UnknownHost => "no such host",
            Self::Unreachable => "the host cannot be reached",
            Self::Timeout => "no answer in time",
            Self::UntrustedServer => "the server's certificate is not signed by the trusted authority",
            Self::WrongHost => "the server's certificate is not for this host",
            Self::ServerExpired => "the server's certificate is expired or not yet valid",
            Self::ClientExpired => "the client certificate is expired",
            Self::ClientRejected => "the server does not accept the client certificate",
            Self::NotTls => "what listens there does not speak TLS",
            Self::Broken => "the connection broke",
        })
    }
}

/// A boxed cause.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A request that yielded no answer of the wished kind.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The API refused.
    #[error("{status}")]
    Refused {
        /// The whole refusal.
        status: Box<Status>,
    },
    /// There is no connection, or there is none any more.
    #[error("cannot reach {server}: {fault}")]
    Connect {
        /// Address as configured.
        server: String,
        /// Why.
        fault: ConnectFault,
        /// The chain below.
        #[source]
        source: Cause,
    },
    /// Connected, but no answer in the time allowed.
    #[error("{server} did not answer within {seconds} s ({what})")]
    Timeout {
        /// Address as configured.
        server: String,
        /// What was asked.
        what: &'static str,
        /// The time allowed.
        seconds: u64,
    },
    /// A gRPC error that carries no `Status`: of a proxy, or of a server that is no Strata.
    #[error("{server} answered {code:?}: {message}")]
    Rpc {
        /// Address as configured.
        server: String,
        /// Canonical code.
        code: tonic::Code,
        /// Its text.
        message: String,
    },
    /// The answer is not what the contract says.
    #[error("{server} sent an answer that cannot be read")]
    Decode {
        /// Address as configured.
        server: String,
        /// Why.
        #[source]
        source: ObjectError,
    },
    /// The watch stream kept silent for longer than it may.
    #[error("{server}: the watch stream has been silent for {seconds} s")]
    Stalled {
        /// Address as configured.
        server: String,
        /// How long.
        seconds: u64,
    },
}

impl ClientError {
    /// What can be done about it.
    pub fn class(&self) -> Class {
        match self {
            Self::Refused { status } => class_of(status),
            Self::Connect { fault, .. } => match fault {
                ConnectFault::Refused
                | ConnectFault::UnknownHost
                | ConnectFault::Unreachable
                | ConnectFault::Timeout
                | ConnectFault::Broken => Class::Transient,
                ConnectFault::UntrustedServer
                | ConnectFault::WrongHost
                | ConnectFault::ServerExpired
                | ConnectFault::ClientExpired
                | ConnectFault::ClientRejected
                | ConnectFault::NotTls => Class::Terminal,
            },
            Self::Timeout { .. } | Self::Stalled { .. } => Class::Transient,
            Self::Rpc { code, .. } => match code {
                tonic::Code::Unimplemented
                | tonic::Code::Unauthenticated
                | tonic::Code::PermissionDenied
                | tonic::Code::DataLoss => Class::Terminal,
                tonic::Code::InvalidArgument | tonic::Code::FailedPrecondition => Class::Invalid,
                _ => Class::Transient,
            },
            Self::Decode { .. } => Class::Terminal,
        }
    }

    /// The refusal, where the API refused.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status } => Some(status),
            _ => None,
        }
    }

    /// Why the API refused, where it did.
    pub fn reason(&self) -> Option<Reason> {
        self.status().and_then(|s| s.reason)
    }

    /// Whether the API refused for this reason.
    pub fn is(&self, reason: Reason) -> bool {
        self.reason() == Some(reason)
    }

    /// A refusal.
    pub fn refused(status: Status) -> Self {
        Self::Refused { status: Box::new(status) }
    }

    /// The error behind a gRPC error of `server`.
    pub fn from_rpc(server: &str, error: tonic::Status) -> Self {
        if let Some(status) = convert::from_rpc(&error) {
            return Self::refused(status);
        }
        let (code, message) = (error.code(), error.message().to_owned());
        // A cause below means that the transport failed, not that somebody answered.
        let local =
            error.source().is_some() || (code == tonic::Code::Unavailable && message.contains("connection"));
        if local {
            let fault = fault_of(&error);
            return Self::Connect { server: server.to_owned(), fault, source: Box::new(error) };
        }
        Self::Rpc { server: server.to_owned(), code, message }
    }
}

fn class_of(status: &Status) -> Class {
    match status.reason {
        Some(Reason::Conflict | Reason::AlreadyExists) => Class::Conflict,
        Some(Reason::NotFound | Reason::Gone) => Class::NotFound,
        Some(
            Reason::BadRequest
            | Reason::Invalid
            | Reason::NotAcceptable
            | Reason::UnsupportedMediaType
            | Reason::RequestEntityTooLarge,
        ) => Class::Invalid,
        Some(Reason::Unauthorized | Reason::Forbidden | Reason::MethodNotAllowed) => Class::Terminal,
        Some(
            Reason::Expired
            | Reason::TooManyRequests
            | Reason::InternalError
            | Reason::ServerTimeout
            | Reason::ServiceUnavailable
            | Reason::InsufficientStorage
            | Reason::Timeout
            | Reason::Unknown,
        )
        | None => Class::Transient,
    }
}

/// Why a connection failed, from the chain of causes.
fn fault_of(error: &(dyn StdError + 'static)) -> ConnectFault {
    let mut fault = ConnectFault::Broken;
    let mut at = Some(error);
    let mut text = String::new();
    while let Some(error) = at {
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return tls_fault(tls);
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if let Some(tls) = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                return tls_fault(tls);
            }
            fault = match io.kind() {
                io::ErrorKind::ConnectionRefused => ConnectFault::Refused,
                io::ErrorKind::TimedOut => ConnectFault::Timeout,
                io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::NetworkDown => ConnectFault::Unreachable,
                _ => fault,
            };
        }
        text.push_str(&error.to_string());
        text.push(' ');
        at = error.source();
    }
    if fault != ConnectFault::Broken {
        return fault;
    }
    // An alert that comes after the handshake (TLS 1.3 checks client certificates then) and the errors of the resolver
    // and the timer arrive as text alone.
    if let Some((_, alert)) = text.split_once("received fatal alert: ") {
        return match alert.split(|c: char| !c.is_ascii_alphanumeric()).next() {
            Some("CertificateExpired") => ConnectFault::ClientExpired,
            Some(
                "BadCertificate"
                | "UnsupportedCertificate"
                | "CertificateRevoked"
                | "CertificateUnknown"
                | "UnknownCA"
                | "AccessDenied"
                | "CertificateRequired"
                | "DecryptError",
            ) => ConnectFault::ClientRejected,
            _ => ConnectFault::Broken,
        };
    }
    if text.contains("dns error") || text.contains("failed to lookup address") {
        return ConnectFault::UnknownHost;
    }
    if text.contains("deadline has elapsed") || text.contains("timed out") {
        return ConnectFault::Timeout;
    }
    fault
}

fn tls_fault(error: &rustls::Error) -> ConnectFault {
    use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error};
    match error {
        Error::InvalidCertificate(why) => match why {
            Certificate::Expired
            | Certificate::ExpiredContext { .. }
            | Certificate::NotValidYet
            | Certificate::NotValidYetContext { .. } => ConnectFault::ServerExpired,
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                ConnectFault::WrongHost
            }
            _ => ConnectFault::UntrustedServer,
        },
        Error::AlertReceived(alert) => match alert {
            Alert::CertificateExpired => ConnectFault::ClientExpired,
            Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::CertificateRequired
            | Alert::DecryptError => ConnectFault::ClientRejected,
            _ => ConnectFault::Broken,
        },
        Error::InvalidMessage(_) => ConnectFault::NotTls,
        _ => ConnectFault::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_follows_the_reason() {
        for (reason, class) in [
            (Reason::Conflict, Class::Conflict),
            (Reason::AlreadyExists, Class::Conflict),
            (Reason::NotFound, Class::NotFound),
            (Reason::Invalid, Class::Invalid),
            (Reason::Forbidden, Class::Terminal),
            (Reason::ServiceUnavailable, Class::Transient),
        ] {
            let error = ClientError::from_rpc("s", convert::to_rpc(&Status::failure(reason, "no")));
            assert_eq!((error.class(), error.reason()), (class, Some(reason)));
        }
    }

    #[test]
    fn an_answer_without_status_is_told_from_a_broken_connection() {
        let answered = ClientError::from_rpc("s", tonic::Status::unimplemented("what?"));
        assert!(matches!(answered, ClientError::Rpc { .. }));
        assert_eq!(answered.class(), Class::Terminal);
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let broken = ClientError::from_rpc("s", tonic::Status::from_error(Box::new(refused)));
        assert!(matches!(broken, ClientError::Connect { fault: ConnectFault::Refused, .. }), "{broken:?}");
        let tls = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let tls = io::Error::new(io::ErrorKind::InvalidData, tls);
        let untrusted = ClientError::from_rpc("s", tonic::Status::from_error(Box::new(tls)));
        assert_eq!(untrusted.class(), Class::Terminal, "{untrusted:?}");
    }
}
