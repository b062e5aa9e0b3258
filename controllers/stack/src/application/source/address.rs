//! Where a repository is: what its URL says, and when two URLs are the same repository. Connects to nothing.

use std::path::PathBuf;

use strata_plan::application::rendered::{Fault, RenderError};

/// A repository's URL, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// On this machine; read where it lies.
    File(PathBuf),
    /// Over `https` or `http`.
    Http(Web),
    /// Over ssh.
    Ssh(Shell),
}

/// A repository over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    /// With TLS.
    pub tls: bool,
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, beginning with `/`, without one at its end.
    pub path: String,
    /// User and password that stand in the URL itself.
    pub user: Option<(String, String)>,
}

/// A repository over ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// User; that of this process where empty.
    pub user: String,
    /// Name or address, without brackets.
    pub host: String,
    /// Port; ssh's own where absent.
    pub port: Option<u16>,
    /// Path as the server is told it.
    pub path: String,
}

impl Web {
    /// `host` or `host:port` as a URL has it.
    pub fn authority(&self) -> String {
        let host = bracketed(&self.host);
        if self.port == default_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }

    /// The URL, without user and password.
    pub fn url(&self) -> String {
        format!("{}://{}{}", if self.tls { "https" } else { "http" }, self.authority(), self.path)
    }
}

fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

impl Address {
    /// Reads a URL: `https://…`, `http://…`, `ssh://…`, `user@host:path`, `file:///…`.
    pub fn parse(url: &str) -> Result<Self, RenderError> {
        let fail = |why: &str| {
            let url = without_password(url);
            Err(RenderError::new(Fault::Settings, format!("repoURL {url:?}: {why}")))
        };
        if url.is_empty() {
            return fail("is empty: write where the repository is, as https://host/path.git");
        }
        if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return fail("has blanks or control characters");
        }
        match url.split_once("://") {
            Some(("file", rest)) => match rest.strip_prefix("localhost").unwrap_or(rest) {
                path if path.starts_with('/') => Ok(Self::File(PathBuf::from(decode(path)))),
                _ => fail("a file:// URL has an absolute path: file:///path/to/repository"),
            },
            Some((scheme @ ("https" | "http"), rest)) => match web(scheme == "https", rest) {
                Some(web) => Ok(Self::Http(web)),
                None => fail("has no host, or a port that is no number"),
            },
            Some(("ssh" | "git+ssh", rest)) => match shell(rest) {
                Some(shell) => Ok(Self::Ssh(shell)),
                None => fail("has no host or path, or one that begins with a dash"),
            },
            Some((scheme, _)) => fail(&format!("{scheme}:// is not supported; use https, ssh or file")),
            None => match short_shell(url) {
                Some(shell) => Ok(Self::Ssh(shell)),
                None => {
                    fail("is no URL; write https://host/path.git, ssh://user@host/path.git or file:///path")
                }
            },
        }
    }

    /// The host that is connected to; none for a file.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::File(_) => None,
            Self::Http(web) => Some(&web.host),
            Self::Ssh(shell) => Some(&shell.host),
        }
    }
}

fn web(tls: bool, rest: &str) -> Option<Web> {
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    let (host, port) = host_and_port(place)?;
    let user = user.map(|user| user.split_once(':').unwrap_or((user, "")));
    let user = user.map(|(name, password)| (decode(name), decode(password)));
    let path = path.trim_end_matches('/').to_owned();
    Some(Web { tls, host, port: port.unwrap_or(default_port(tls)), path, user })
}

fn shell(rest: &str) -> Option<Shell> {
    let (authority, path) = rest.split_at(rest.find('/')?);
    let (user, place) = authority.split_once('@').unwrap_or(("", authority));
    let user = user.split_once(':').map_or(user, |(name, _)| name);
    let (host, port) = host_and_port(place)?;
    // `/~user/…` is relative to somebody's home, as git has it.
    let path = if path.starts_with("/~") { &path[1..] } else { path };
    checked(Shell { user: decode(user), host, port, path: decode(path) })
}

fn short_shell(url: &str) -> Option<Shell> {
    let (place, path) = url.split_once(':')?;
    if place.contains('/') || path.is_empty() {
        return None;
    }
    let (user, host) = place.split_once('@').unwrap_or(("", place));
    checked(Shell { user: user.to_owned(), host: host.to_owned(), port: None, path: path.to_owned() })
}

/// Nothing that `ssh` or the far shell could take for an option.
fn checked(shell: Shell) -> Option<Shell> {
    let dashed = [&shell.user, &shell.host, &shell.path].iter().any(|part| part.starts_with('-'));
    (!dashed && !shell.host.is_empty() && !shell.path.trim_matches('/').is_empty()).then_some(shell)
}

fn host_and_port(place: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map(str::parse).transpose().ok()?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// `%41` is `A`.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], hex) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

/// A URL as it may be shown.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        Some((user, place)) if user.contains(':') || scheme.starts_with("http") => {
            format!("{scheme}://{place}{path}")
        }
        _ => url.to_owned(),
    }
}

/// One spelling for all URLs of one repository: `git@host:a/b`, `ssh://git@host/a/b.git` and `SSH://git@HOST/a/b/` are
/// the same. Not a URL to connect to.
pub fn normal(url: &str) -> String {
    let plain = without_password(url.trim()).to_lowercase();
    let plain = plain.trim_end_matches('/');
    let plain = plain.strip_suffix(".git").unwrap_or(plain);
    match plain.strip_prefix("ssh://") {
        Some(rest) => rest.replacen('/', ":", 1),
        None => plain.replacen(":/", ":", usize::from(!plain.contains("://"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_all_forms_are_read() {
        let http = Address::parse("https://me:p%40ss@git.example:8443/a/b.git/").unwrap();
        let Address::Http(web) = http else { panic!("{http:?}") };
        assert_eq!((web.port, web.path.as_str()), (8443, "/a/b.git"));
        assert_eq!(web.user, Some(("me".into(), "p@ss".into())));
        assert_eq!(web.url(), "https://git.example:8443/a/b.git");
        assert_eq!(Address::parse("file:///srv/a%20b").unwrap(), Address::File("/srv/a b".into()));
        let long = Address::parse("ssh://git@[::1]:2222/a/b.git").unwrap();
        let expected =
            Shell { user: "git".into(), host: "::1".into(), port: Some(2222), path: "/a/b.git".into() };
        assert_eq!(long, Address::Ssh(expected));
        let short = Address::parse("git@example.org:a/b.git").unwrap();
        let expected =
            Shell { user: "git".into(), host: "example.org".into(), port: None, path: "a/b.git".into() };
        assert_eq!(short, Address::Ssh(expected));
    }

    #[test]
    fn others_are_refused_in_words_and_without_their_passwords() {
        for url in [
            "",
            "a b",
            "ftp://x/y",
            "https://",
            "https://h:x/",
            "ssh://-oProxyCommand=x/y",
            "git@-x:y",
            "/srv/x",
            "file://srv/x",
            "git@h:",
            "ssh://h",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.fault, Fault::Settings);
            assert!(error.message.contains("repoURL"), "{error}");
        }
        let error = Address::parse("ftp://me:secret@host/x").unwrap_err();
        assert!(!error.message.contains("secret"), "{error}");
    }

    #[test]
    fn spellings_of_one_repository_are_one() {
        for url in ["git@github.com:a/b", "ssh://git@github.com/a/b.git", "SSH://git@GitHub.com/a/b/"] {
            assert_eq!(normal(url), "git@github.com:a/b", "{url}");
        }
        assert_eq!(normal("https://u:p@GitHub.com/A/b.git"), "https://github.com/a/b");
        assert_ne!(normal("https://github.com/a/b"), normal("https://github.com/a/c"));
    }
}
