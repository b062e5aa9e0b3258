//! Every way a command can fail, and what the user reads about it: one line that says what is wrong, and where there is
//! something to do about it, what. Knows no command.

use std::io;
use std::process::ExitCode;

use strata_client::connect::SetupError;
use strata_client::error::{ClientError, ConnectFault};
use strata_client::kubeconfig::ConfigError;
use strata_model::object::ObjectError;
use strata_model::status::{Reason, Status};

use crate::manifest::ManifestError;
use strata_model::jsonpath::JsonPathError;

/// Longest chain of causes that is shown.
const MAX_CAUSES: usize = 4;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// What was asked for makes no sense; the text says what would.
    #[error("{0}")]
    Usage(String),
    /// The server, or the way to it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The kubeconfig.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Certificates and the like.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A template that does not fit the object.
    #[error("error executing jsonpath: {0}")]
    Template(#[from] JsonPathError),
    /// An object that is not of the shape its type has.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Output or a local file.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Something on this machine.
    #[error(transparent)]
    Local(Box<dyn std::error::Error + Send + Sync>),
    /// An error that is about a manifest or a name, told with it.
    #[error("{about}: {error}")]
    About {
        /// What it is about.
        about: String,
        /// The error.
        error: Box<CliError>,
    },
    /// Several things failed; the rest was done.
    #[error("{} errors", .0.len())]
    Many(Vec<CliError>),
    /// An error with an exit code of its own.
    #[error("{error}")]
    Exit {
        /// The exit code.
        code: u8,
        /// The error.
        error: Box<CliError>,
    },
    /// Nothing is to be said any more.
    #[error("exit code {0}")]
    Silent(u8),
}

impl From<strata_model::selector::SelectorError> for CliError {
    fn from(error: strata_model::selector::SelectorError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// A command's outcome.
pub type CliResult<T = ()> = Result<T, CliError>;

/// A mistake in what was asked for.
pub fn usage(text: impl Into<String>) -> CliError {
    CliError::Usage(text.into())
}

impl CliError {
    /// Whether the server refused for a reason.
    pub fn is(&self, reason: Reason) -> bool {
        match self {
            Self::Client(error) => error.is(reason),
            Self::About { error, .. } | Self::Exit { error, .. } => error.is(reason),
            _ => false,
        }
    }

    /// The lines for stderr. `origin` is where the address of the server came from.
    pub fn lines(&self, origin: &str) -> Vec<String> {
        match self {
            Self::Many(errors) => errors.iter().flat_map(|e| e.lines(origin)).collect(),
            Self::Silent(_) => Vec::new(),
            Self::Exit { error, .. } => error.lines(origin),
            Self::Client(ClientError::Refused { status }) => refused("", status),
            Self::About { about, error } => match error.as_ref() {
                Self::Client(ClientError::Refused { status }) => {
                    refused(&format!("error when {about}: "), status)
                }
                other => other.lines(origin),
            },
            Self::Client(ClientError::Connect { server, fault: ConnectFault::Broken, .. })
                if server.starts_with("http://") =>
            {
                let secure = server.replacen("http", "https", 1);
                vec![format!(
                    "error: cannot reach {server}{}: the connection broke; API servers speak TLS: name it as {secure}",
                    of(origin)
                )]
            }
            Self::Client(ClientError::Connect { server, fault, .. }) => {
                vec![format!("error: cannot reach {server}{}: {fault}; {}", of(origin), reach(*fault))]
            }
            Self::Client(ClientError::Timeout { server, what, seconds }) => vec![format!(
                "error: {server} did not answer within {seconds} s ({what}); \
                 it may be busy: try again, or wait longer with --request-timeout=2m"
            )],
            Self::Client(ClientError::Rpc { server, code, message }) => vec![format!(
                "error: {server}{} answered {code:?}: {message}; is that a Strata API server? `strata up` prints the \
                 address of yours, --server chooses another",
                of(origin)
            )],
            Self::Setup(_) => vec![format!(
                "error: {}; check the certificate, key and authority in {}",
                chain(self),
                if origin.is_empty() { "the kubeconfig or the flags" } else { origin }
            )],
            other => vec![format!("error: {}", chain(other))],
        }
    }

    /// The same error, its fault told more exactly: a server that does not take a certificate may just close, and if
    /// ours has `expired` that is why.
    #[must_use]
    pub fn knowing(self, expired: bool) -> Self {
        match self {
            Self::Client(ClientError::Connect { server, fault: ConnectFault::Broken, source }) if expired => {
                ClientError::Connect { server, fault: ConnectFault::ClientExpired, source }.into()
            }
            Self::Exit { code, error } => Self::Exit { code, error: Box::new(error.knowing(expired)) },
            other => other,
        }
    }

    /// The exit code.
    pub fn code(&self) -> ExitCode {
        match self {
            Self::Silent(code) | Self::Exit { code, .. } => ExitCode::from(*code),
            _ => ExitCode::FAILURE,
        }
    }
}

fn of(origin: &str) -> String {
    if origin.is_empty() { String::new() } else { format!(" (from {origin})") }
}

/// An error with its causes, in one line.
pub fn chain(error: &CliError) -> String {
    let mut text = error.to_string();
    let mut at = std::error::Error::source(error);
    for _ in 0..MAX_CAUSES {
        let Some(cause) = at else { break };
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        at = cause.source();
    }
    text.replace('\n', " ")
}

/// What to do where there is no connection.
fn reach(fault: ConnectFault) -> &'static str {
    match fault {
        ConnectFault::Refused => {
            "is `strata up` running, and on this port? start it, or name another server with --server or --kubeconfig"
        }
        ConnectFault::UnknownHost | ConnectFault::Unreachable => {
            "check the host in the kubeconfig or --server, and the network"
        }
        ConnectFault::Timeout => "check the address and port, and that no firewall is between",
        ConnectFault::UntrustedServer => {
            "the kubeconfig is of another server, or of an earlier data directory: use the one that `strata up` printed \
             (--kubeconfig), or name its authority with --certificate-authority"
        }
        ConnectFault::WrongHost => "use a host name or address that the server's certificate is for",
        ConnectFault::ServerExpired => {
            "check the clocks of both machines; restarting `strata up` renews its certificates"
        }
        ConnectFault::ClientExpired => {
            "restart `strata up`, which renews the kubeconfig in its data directory, or use another one (--kubeconfig)"
        }
        ConnectFault::ClientRejected => {
            "the client certificate is not of this server's authority: use the kubeconfig that `strata up` printed \
             (--kubeconfig)"
        }
        ConnectFault::NotTls => {
            "another program listens there: check the port with the address that `strata up` printed"
        }
        ConnectFault::Broken => {
            "the server may have just stopped, or not accept the client certificate: try again, see what `strata up` says, \
             and use the kubeconfig that it printed"
        }
    }
}

fn reason_word(status: &Status) -> String {
    status.reason.map_or_else(|| "Unknown".to_owned(), |reason| format!("{reason:?}"))
}

/// A refusal, in kubectl's words, and a hint on a line of its own where there is one.
fn refused(about: &str, status: &Status) -> Vec<String> {
    let details = status.details.as_deref();
    let first = match status.reason {
        Some(Reason::Unauthorized) => "error: You must be logged in to the server (Unauthorized)".to_owned(),
        Some(Reason::Invalid) if about.is_empty() => match details {
            Some(details) if !details.causes.is_empty() => invalid(status, &details.kind, &details.name),
            _ => format!("The request is invalid: {}", status.message),
        },
        _ => format!("Error from server ({}): {about}{}", reason_word(status), status.message),
    };
    let kind = details.map_or("", |d| d.kind.as_str());
    let name = details.map_or("", |d| d.name.as_str());
    let hint = match status.reason {
        Some(Reason::NotFound) if kind == "namespaces" => {
            format!("hint: `strata create namespace {name}` makes it, `strata get namespaces` lists those there are")
        }
        Some(Reason::NotFound) if !kind.is_empty() => {
            format!("hint: `strata get {kind} -A` lists all there are; -n chooses the namespace of a name")
        }
        Some(Reason::Unauthorized) => {
            "hint: this server does not know the certificate or token; use the kubeconfig `strata up` printed (--kubeconfig)"
                .to_owned()
        }
        Some(Reason::Forbidden) if status.message.contains("User ") => {
            "hint: this identity may not do that; `strata config view` shows which one is used, --context or --kubeconfig \
             chooses another"
                .to_owned()
        }
        Some(Reason::AlreadyExists) => {
            format!("hint: `strata apply -f FILE` changes one that exists, `strata delete {kind} {name}` removes it")
        }
        Some(Reason::Conflict) if status.message.starts_with("Apply failed with ") => {
            "hint: others manage these fields: take them over with --force-conflicts, or leave them out of the manifest"
                .to_owned()
        }
        Some(Reason::Conflict) => "hint: somebody changed it meanwhile; run the command again".to_owned(),
        Some(Reason::InsufficientStorage) => {
            "hint: the server's disk is full: free space there; deleting objects still works".to_owned()
        }
        _ => return vec![first],
    };
    vec![first, hint]
}

/// `The Deployment "web" is invalid: …`, one line a cause where there are several.
fn invalid(status: &Status, kind: &str, name: &str) -> String {
    let causes = status.details.iter().flat_map(|d| &d.causes);
    let causes: Vec<String> = causes
        .map(|cause| match cause.field.is_empty() {
            true => cause.message.clone(),
            false => format!("{}: {}", cause.field, cause.message),
        })
        .collect();
    match causes.as_slice() {
        [one] => format!("The {kind} \"{name}\" is invalid: {one}"),
        many => format!("The {kind} \"{name}\" is invalid: \n* {}", many.join("\n* ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strata_model::status::{About, Details};

    const WEB: About<'_> = About { group: "apps", resource: "deployments", kind: "Deployment", name: "web" };

    fn lines(status: Status) -> Vec<String> {
        CliError::from(ClientError::refused(status)).lines("")
    }

    #[test]
    fn refusals_read_as_in_kubectl_and_say_what_to_do() {
        let not_found = lines(Status::not_found(WEB));
        assert_eq!(not_found[0], "Error from server (NotFound): deployments.apps \"web\" not found");
        assert!(not_found[1].contains("strata get deployments"), "{not_found:?}");
        assert!(lines(Status::already_exists(WEB))[1].contains("apply -f"));
        let namespace = Details { kind: "namespaces".into(), name: "x".into(), ..Details::default() };
        let status = Status::failure(Reason::NotFound, "namespaces \"x\" not found").with_details(namespace);
        assert!(lines(status)[1].contains("strata create namespace x"));
        let full = Status::failure(Reason::InsufficientStorage, "no space left");
        assert!(lines(full)[1].contains("free space"));
    }

    #[test]
    fn a_missing_server_names_itself_and_the_way_out() {
        let error = CliError::from(ClientError::Connect {
            server: "https://127.0.0.1:6443".into(),
            fault: ConnectFault::Refused,
            source: Box::new(io::Error::from(io::ErrorKind::ConnectionRefused)),
        });
        let lines = error.lines("/d/kubeconfig");
        assert_eq!(lines.len(), 1);
        for part in
            ["https://127.0.0.1:6443 (from /d/kubeconfig)", "connection refused", "`strata up`", "--server"]
        {
            assert!(lines[0].contains(part), "{lines:?}");
        }
    }

    #[test]
    fn an_address_without_tls_is_told_how_it_is_written() {
        let error = CliError::from(ClientError::Connect {
            server: "http://127.0.0.1:6443".into(),
            fault: ConnectFault::Broken,
            source: Box::new(io::Error::from(io::ErrorKind::ConnectionReset)),
        });
        assert!(error.lines("--server")[0].ends_with("name it as https://127.0.0.1:6443"));
    }

    #[test]
    fn causes_are_said_once_in_one_line() {
        let source = io::Error::other("disk\non fire");
        let error = CliError::from(ConfigError::Read { path: "/x".into(), source });
        assert_eq!(error.lines(""), ["error: cannot read /x: disk on fire"]);
    }
}
