//! Parts that run in processes of their own, as etcd does: the API server as it is shipped, the same without TLS, and a
//! store that only opens. The latter two are this program again.

use std::convert::Infallible;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::Response;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use strata_apiserver::authn::{Tokens, User};
use strata_apiserver::gate::{Gate, Peer};
use strata_apiserver::jwt::claims::Issuer;
use strata_apiserver::pipeline::api::{Api, Known};
use strata_apiserver::pipeline::nodes::Nodes;
use strata_apiserver::server::dispatch::Site;
use strata_apiserver::server::{self, Pem, connections};
use strata_apiserver::types::catalogue::Catalogue;
use strata_model::resource::Registry;
use strata_store::config::Config;
use strata_store::store::{EngineChoice, Store};
use strata_tests::tools;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::context::Outcome;
use crate::process::{Process, Usage, free_address};
use crate::rest;

/// How long a start may take.
const START_LIMIT: Duration = Duration::from_secs(120);
/// Between two looks whether a server is ready.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Files of a shipped server beside its data.
const AUTHORITY: &str = "ca.pem";
const SERVER_CERTIFICATE: &str = "server.pem";
const SERVER_KEY: &str = "server.key";

/// What a process of this program hosts.
#[derive(Args)]
pub struct HostArgs {
    /// The part.
    part: Part,
    /// Its data.
    directory: PathBuf,
    /// Size of what it sends.
    #[arg(default_value_t = 0)]
    bytes: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// Opens a store, says how long that took, and keeps it open.
    Open,
    /// The API server's pipeline without TLS; everybody may do everything.
    Plain,
    /// The API server's TLS and HTTP with one answer to everything: a buffer made beforehand.
    Fixed,
}

/// Runs a part until it is killed.
pub fn run(args: &HostArgs) -> Outcome<()> {
    match args.part {
        Part::Open => {
            let start = Instant::now();
            let store = open(&args.directory)?;
            say(&start.elapsed().as_micros().to_string())?;
            std::io::stdin().read_line(&mut String::new())?;
            drop(store);
            Ok(())
        }
        Part::Plain => {
            let store = open(&args.directory)?;
            tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(store))
        }
        Part::Fixed => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(send(&args.directory, args.bytes))
        }
    }
}

fn say(line: &str) -> Outcome<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Opens a store as a server does.
pub fn open(directory: &Path) -> Outcome<Store> {
    Ok(Store::open(Config::default(), EngineChoice::Sled { directory: directory.to_owned() })?)
}

async fn serve(store: Store) -> Outcome<()> {
    let issuer = Issuer::new(String::new(), None, Vec::new());
    let known = Known { tokens: Tokens::default(), issuer };
    let api = Api::new(store, Catalogue::new(&Registry::builtin()), Nodes::default(), known);
    api.prepare().await.map_err(|status| status.message)?;
    let gate = Arc::new(Gate::new(Arc::new(api)));
    let (_end, ending) = tokio::sync::watch::channel(false);
    let site = Arc::new(Site::new(gate, ending).await?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    say(&listener.local_addr()?.to_string())?;
    let everybody = Arc::new(User::known("bench", "", vec!["system:masters".to_owned()]));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (site, peer) = (Arc::clone(&site), Peer(Some(Arc::clone(&everybody))));
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (site, peer) = (Arc::clone(&site), peer.clone());
                async move { Ok::<_, Infallible>(site.answer(&peer, request).await) }
            });
            let served = connections::builder().serve_connection(TokioIo::new(stream), service).await;
            if let Err(error) = served {
                eprintln!("a connection broke off: {error}");
            }
        });
    }
}

async fn send(directory: &Path, bytes: usize) -> Outcome<()> {
    let pem = |name: &str| Pem::File(directory.join(name));
    let config = server::Config {
        listen: "127.0.0.1:0".parse()?,
        identity: server::config::Identity { certificate: pem(SERVER_CERTIFICATE), key: pem(SERVER_KEY) },
        client_authority: Some(pem(AUTHORITY)),
        token_file: None,
        nodes: None,
        service_accounts: Default::default(),
    };
    let tls = TlsAcceptor::from(server::tls::server(&config)?);
    let listener = TcpListener::bind(config.listen).await?;
    say(&listener.local_addr()?.to_string())?;
    let answer = Bytes::from(vec![b' '; bytes]);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (tls, answer) = (tls.clone(), answer.clone());
        tokio::spawn(async move {
            let service = service_fn(move |_| {
                let answer = answer.clone();
                async move { Ok::<_, Infallible>(Response::new(Full::new(answer))) }
            });
            let served: Result<(), Box<dyn Error + Send + Sync>> = async {
                let stream = tls.accept(stream).await?;
                connections::builder().serve_connection(TokioIo::new(stream), service).await
            }
            .await;
            if let Err(error) = served {
                eprintln!("a connection broke off: {error}");
            }
        });
    }
}

/// How clients reach a server.
pub struct Access {
    /// Where it listens.
    pub address: SocketAddr,
    /// What TLS takes; `None` without it.
    pub tls: Option<Tls>,
}

/// What a client needs for TLS, PEM.
#[derive(Clone)]
pub struct Tls {
    /// The authority of the server's certificate.
    pub authority: String,
    /// The client's certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// A server in a process of its own.
pub struct Served {
    process: Process,
    /// How to reach it.
    pub access: Access,
    /// How long its start took.
    pub started_in: Duration,
}

impl Served {
    /// The pipeline without TLS, over a store in this directory.
    pub fn plain(directory: &Path) -> Outcome<Self> {
        let start = Instant::now();
        let (process, line) = own("plain", directory, 0)?;
        let access = Access { address: line.parse()?, tls: None };
        Ok(Self { process, access, started_in: start.elapsed() })
    }

    /// `strata apiserver` as it is shipped, over a store in this directory.
    pub async fn shipped(directory: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(directory)?;
        let authority = Authority::new()?;
        let (server, client) =
            (authority.identity("server", "servers")?, authority.identity("bench", "system:masters")?);
        let write = |name: &str, text: &str| -> Outcome<PathBuf> {
            let path = directory.join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        let (ca, certificate, key) = (
            write(AUTHORITY, &authority.0.pem())?,
            write(SERVER_CERTIFICATE, &server.0)?,
            write(SERVER_KEY, &server.1)?,
        );
        let address = free_address()?;
        let start = Instant::now();
        let mut command = Command::new(tools::strata());
        command
            .args(["apiserver", "--listen", &address.to_string(), "--store"])
            .arg(directory.join("store"))
            .arg("--tls-cert-file")
            .arg(certificate)
            .arg("--tls-private-key-file")
            .arg(key)
            .arg("--client-ca-file")
            .arg(ca)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let process = Process::start(&mut command)?;
        let tls = Tls { authority: authority.0.pem(), certificate: client.0, key: client.1 };
        let access = Access { address, tls: Some(tls) };
        let mut looks = tokio::time::interval(LOOK_EVERY);
        while !is_ready(&access).await {
            if start.elapsed() > START_LIMIT {
                return Err("the API server does not become ready".into());
            }
            looks.tick().await;
        }
        Ok(Self { process, access, started_in: start.elapsed() })
    }

    /// A server that sends so many bytes whatever is asked, with the certificates of a shipped one.
    pub fn fixed(directory: &Path, bytes: u64, like: &Access) -> Outcome<Self> {
        let start = Instant::now();
        let (process, line) = own("fixed", directory, bytes)?;
        let access = Access { address: line.parse()?, tls: like.tls.clone() };
        Ok(Self { process, access, started_in: start.elapsed() })
    }

    /// What it has used.
    pub fn usage(&self) -> Outcome<Usage> {
        self.process.usage()
    }
}

/// Whether a server answers that it is ready.
async fn is_ready(access: &Access) -> bool {
    let asked = async {
        let client = rest::Client::connect(access).await?;
        client.ask("GET", "/readyz", "application/json", Bytes::new()).await
    };
    asked.await.is_ok()
}

/// A store that another process opened.
pub struct Opened {
    process: Process,
    /// From the start of the process until the store could be used.
    pub opened_in: Duration,
}

impl Opened {
    /// Opens the store of a directory.
    pub fn new(directory: &Path) -> Outcome<Self> {
        let start = Instant::now();
        let (process, _) = own("open", directory, 0)?;
        Ok(Self { process, opened_in: start.elapsed() })
    }

    /// What the process has used.
    pub fn usage(&self) -> Outcome<Usage> {
        self.process.usage()
    }
}

/// Starts this program as a host; gives the first line that it says.
fn own(part: &str, directory: &Path, bytes: u64) -> Outcome<(Process, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["host", part])
        .arg(directory)
        .arg(bytes.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut process = Process::start(&mut command)?;
    let mut line = String::new();
    BufReader::new(process.output()?).read_line(&mut line)?;
    let line = line.trim().to_owned();
    if line.is_empty() { Err(format!("`bench host {part}` ended").into()) } else { Ok((process, line)) }
}

/// Signs certificates made on the spot.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Outcome<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "bench");
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Certificate and key of a name in a group, PEM.
    fn identity(&self, name: &str, group: &str) -> Outcome<(String, String)> {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.0)?.pem(), key.serialize_pem()))
    }
}
