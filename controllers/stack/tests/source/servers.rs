//! Real servers of git on loopback: git's own HTTP backend behind a small server, with TLS and without, and sshd.

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// How a server treats those who ask.
#[derive(Clone, Debug, Default)]
pub struct Manners {
    /// The only `Authorization` that is let in.
    pub authorization: Option<String>,
    /// Everything is answered with this status line.
    pub status: Option<&'static str>,
    /// Everything is elsewhere: at this URL.
    pub moved: Option<String>,
    /// Nothing is ever answered.
    pub hangs: bool,
    /// Answers end in the middle.
    pub breaks_off: bool,
}

/// A server that ends with its test.
pub struct Server {
    pub port: u16,
    /// How often it was asked.
    pub asked: Arc<AtomicUsize>,
    /// Its certificate in PEM, where it has one.
    pub certificate: String,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves all repositories below a folder over HTTP.
pub async fn http(root: &Path, tls: bool, manners: Manners) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let acceptor = tls.then(|| TlsAcceptor::from(Arc::new(config)));
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, root) = (Arc::clone(&asked), root.to_owned());
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
            let (root, manners, acceptor) = (root.clone(), manners.clone(), acceptor.clone());
            tokio::spawn(async move {
                match acceptor {
                    None => answer(stream, &root, &manners).await,
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => answer(stream, &root, &manners).await,
                        Err(error) => eprintln!("no TLS: {error}"),
                    },
                }
            });
        }
    });
    Server { port, asked, certificate: cert.pem(), task }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, root: &Path, manners: &Manners) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    if manners.hangs {
        std::future::pending::<()>().await;
    }
    let head = String::from_utf8(head).unwrap();
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(':'));
        lines
            .filter(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .next()
    };
    let mut body = vec![0; field("content-length").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).await.unwrap();
    let refused = manners.authorization.is_some() && manners.authorization != field("authorization");
    let target = head.split(' ').nth(1).unwrap();
    let response = if refused {
        b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
    } else if let Some(url) = &manners.moved {
        format!("HTTP/1.1 301 Moved\r\nLocation: {url}{target}\r\nContent-Length: 0\r\n\r\n").into_bytes()
    } else if let Some(status) = manners.status {
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
    } else {
        backend(root, &head, target, field("content-type"), field("git-protocol"), &body).await
    };
    let length = if manners.breaks_off { response.len() - 5 } else { response.len() };
    if stream.write_all(&response[..length]).await.is_ok() {
        stream.shutdown().await.ok();
    }
}

/// Asks git's HTTP backend, as the CGI program it is.
async fn backend(
    root: &Path,
    head: &str,
    target: &str,
    content_type: Option<String>,
    protocol: Option<String>,
    body: &[u8],
) -> Vec<u8> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("GIT_CONFIG_COUNT", "1")
        .envs([("GIT_CONFIG_KEY_0", "safe.directory"), ("GIT_CONFIG_VALUE_0", "*")])
        .env("REQUEST_METHOD", head.split(' ').next().unwrap())
        .envs([("PATH_INFO", path), ("QUERY_STRING", query)])
        .env("CONTENT_TYPE", content_type.unwrap_or_default())
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("GIT_PROTOCOL", protocol.unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let body = body.to_vec();
    let writer = tokio::spawn(async move { input.write_all(&body).await });
    let output = child.wait_with_output().await.unwrap().stdout;
    writer.await.unwrap().ok();
    let end = output.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(output[..end].to_vec()).unwrap();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let rest: String =
        head.lines().filter(|line| !line.starts_with("Status")).map(|l| format!("{l}\r\n")).collect();
    let body = &output[end + 4..];
    let mut response =
        format!("HTTP/1.1 {status}\r\n{rest}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len())
            .into_bytes();
    response.extend_from_slice(body);
    response
}

/// An sshd that lets one key in.
pub struct Sshd {
    pub port: u16,
    /// The private key that it lets in.
    pub key: String,
    /// Another.
    pub wrong_key: String,
    /// Its own key as `known_hosts` has it.
    pub known_hosts: String,
    folder: tempfile::TempDir,
    task: JoinHandle<()>,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where Debian puts it.
pub const SSHD: &str = "/usr/sbin/sshd";

async fn keygen(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&path)
        .status()
        .await
        .unwrap();
    assert!(status.success());
    path
}

/// Serves this machine over ssh: each connection gets an sshd of its own, as from inetd, so that the port is chosen by
/// the system.
pub async fn sshd() -> Sshd {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    let (host, user) = (keygen(folder.path(), "host").await, keygen(folder.path(), "user").await);
    let wrong = keygen(folder.path(), "wrong").await;
    std::fs::copy(at("user.pub"), at("authorized")).unwrap();
    std::fs::set_permissions(at("authorized"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let config = format!(
        "HostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nAcceptEnv GIT_PROTOCOL\nPidFile none\n",
        host.display(),
        at("authorized").display()
    );
    std::fs::write(at("config"), config).unwrap();
    // sshd wants it when it runs as root; elsewhere it needs none.
    std::fs::create_dir_all("/run/sshd").ok();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let config = at("config");
    let task = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let stream = stream.into_std().unwrap();
            stream.set_nonblocking(false).unwrap();
            let other = stream.try_clone().unwrap();
            let mut child = Command::new(SSHD)
                .args(["-i", "-e", "-f"])
                .arg(&config)
                .stdin(Stdio::from(OwnedFd::from(stream)))
                .stdout(Stdio::from(OwnedFd::from(other)))
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()
                .unwrap();
            tokio::spawn(async move { child.wait().await });
        }
    });
    let public = read(&at("host.pub"));
    let known_hosts = format!("[127.0.0.1]:{port} {public}");
    Sshd { port, key: read(&user), wrong_key: read(&wrong), known_hosts, folder, task }
}

impl Sshd {
    /// The URL of a repository on this machine.
    pub fn url(&self, path: &Path) -> String {
        let user = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
        let user = String::from_utf8(user).unwrap();
        assert!(self.folder.path().exists());
        format!("ssh://{}@127.0.0.1:{}{}", user.trim(), self.port, path.display())
    }
}
