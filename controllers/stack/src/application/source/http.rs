//! The smart HTTP transport of git, over hyper: requests and answers within the limits of a conversation, and faults in
//! words. Knows nothing of packs or branches.

mod exchange;

use std::any::Any;
use std::io::{BufReader, Cursor, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gix::protocol::transport::Protocol;
use gix_transport::client::blocking_io::Transport;
use gix_transport::client::blocking_io::http::{
    GetResponse, Http, PostBodyDataKind, PostResponse, Transport as HttpTransport,
};
use strata_plan::application::rendered::{Fault, RenderError};

use super::access::Credential;
use super::address::{Address, Web};
use super::transport::{Line, Means};
use exchange::{Answer, Client};

/// Most times that a host may send us elsewhere.
const MAX_REDIRECTS: usize = 3;
/// Most bytes of one request: what we want and what we have.
const MAX_REQUEST: usize = 16 << 20;

/// Prepares a conversation; nothing is sent yet.
pub fn connect(web: &Web, means: &Means, line: &Line) -> Result<Box<dyn Transport>, RenderError> {
    let url = web.url();
    let parsed = gix::url::parse(url.as_str());
    let parsed =
        parsed.map_err(|error| RenderError::new(Fault::Settings, format!("repoURL {url}: {error}")))?;
    let client = Client::new(means, line)?;
    let backend = Backend {
        client: Arc::new(client),
        line: line.clone(),
        identity: identity(web, &means.credential),
        home: web.clone(),
        redirected: None,
    };
    Ok(Box::new(HttpTransport::new_http(backend, parsed, Protocol::V2, false)))
}

/// The header that says who we are: a token, else user and password, else those of the URL.
fn identity(web: &Web, credential: &Credential) -> Option<String> {
    let basic =
        |user: &str, password: &str| format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    if !credential.bearer_token.is_empty() {
        return Some(format!("Bearer {}", credential.bearer_token));
    }
    if !credential.username.is_empty() || !credential.password.is_empty() {
        return Some(basic(&credential.username, &credential.password));
    }
    web.user.as_ref().map(|(user, password)| basic(user, password))
}

struct Backend {
    client: Arc<Client>,
    line: Line,
    identity: Option<String>,
    /// The host that our identity is meant for.
    home: Web,
    redirected: Option<String>,
}

impl Backend {
    /// Headers of a request to some place: who we are is told to the host it is meant for, and to no other.
    fn headers(&self, to: &Web, lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<(String, String)> {
        let split = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        let mut headers: Vec<_> = lines.into_iter().filter_map(|line| split(line.as_ref())).collect();
        let same = to.host.eq_ignore_ascii_case(&self.home.host)
            && (to.port == self.home.port || to.tls && !self.home.tls)
            && (to.tls || !self.home.tls);
        if let Some(identity) = self.identity.as_ref().filter(|_| same) {
            headers.push(("Authorization".to_owned(), identity.clone()));
        }
        headers
    }

    fn address(&self, url: &str) -> gix::Result<Web> {
        match Address::parse(url) {
            Ok(Address::Http(web)) => Ok(web),
            _ => {
                self.line.fail(Fault::Unreachable, format!("the host leads on to {url}, which is not HTTP"));
                Err(failed("led elsewhere"))
            }
        }
    }
}

fn failed(text: &str) -> gix::Error {
    gix::Error::from_error(std::io::Error::other(text.to_owned()))
}

impl Http for Backend {
    type Headers = BufReader<Box<dyn Read + Send + Unpin>>;
    type ResponseBody = BufReader<Box<dyn Read + Send>>;
    type PostBody = PostBody;

    fn get(
        &mut self,
        url: &str,
        base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Self::Headers, Self::ResponseBody>> {
        let lines: Vec<String> = headers.into_iter().map(|line| line.as_ref().to_owned()).collect();
        let tail = url.strip_prefix(base_url).unwrap_or_default();
        let mut at = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            let to = self.address(&at)?;
            let headers = self.headers(&to, &lines);
            match self.client.send(&to, headers, None, self.identity.is_some())? {
                Answer::Elsewhere(next) => {
                    let target = self.address(&next)?;
                    if to.tls && !target.tls {
                        self.line.fail(Fault::Refused, format!("the host leads from https to {next}"));
                        return Err(failed("led to plain text"));
                    }
                    self.redirected = next.strip_suffix(tail).map(str::to_owned);
                    at = next;
                }
                Answer::Here { head, body } => {
                    let body = BufReader::new(Box::new(body) as Box<dyn Read + Send>);
                    return Ok(GetResponse { headers: reader(head), body });
                }
            }
        }
        self.line.fail(Fault::Unreachable, format!("the host leads on more than {MAX_REDIRECTS} times"));
        Err(failed("led in circles"))
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _body: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Self::Headers, Self::ResponseBody, Self::PostBody>> {
        let to = self.address(url)?;
        let pending = Arc::new(Mutex::new(Pending {
            client: Arc::clone(&self.client),
            headers: self.headers(&to, headers),
            identified: self.identity.is_some(),
            to,
            sent: None,
            body: Vec::new(),
        }));
        let head = Box::new(Head { pending: Arc::clone(&pending), text: None });
        let body = Box::new(Body { pending: Arc::clone(&pending) });
        Ok(PostResponse {
            post_body: PostBody(pending),
            headers: BufReader::new(head as Box<dyn Read + Send + Unpin>),
            body: BufReader::new(body as Box<dyn Read + Send>),
        })
    }

    fn configure(&mut self, _: &dyn Any) -> gix::Result<()> {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.redirected.clone()
    }
}

fn reader(head: String) -> BufReader<Box<dyn Read + Send + Unpin>> {
    BufReader::new(Box::new(Cursor::new(head.into_bytes())))
}

/// A request whose body is being written. It is sent when its answer is first looked at.
struct Pending {
    client: Arc<Client>,
    to: Web,
    headers: Vec<(String, String)>,
    identified: bool,
    body: Vec<u8>,
    sent: Option<(String, exchange::Incoming)>,
}

impl Pending {
    fn answer(&mut self) -> std::io::Result<&mut (String, exchange::Incoming)> {
        if self.sent.is_none() {
            let headers = std::mem::take(&mut self.headers);
            let body = std::mem::take(&mut self.body);
            let answer = self.client.send(&self.to, headers, Some(body), self.identified);
            match answer.map_err(|error| std::io::Error::other(error.to_string()))? {
                Answer::Here { head, body } => self.sent = Some((head, body)),
                Answer::Elsewhere(_) => return Err(std::io::Error::other("led elsewhere in the middle")),
            }
        }
        self.sent.as_mut().ok_or_else(|| std::io::Error::other("there is no answer"))
    }
}

/// What is written becomes the body of the request.
struct PostBody(Arc<Mutex<Pending>>);

impl Write for PostBody {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut pending = lock(&self.0);
        if pending.body.len() + bytes.len() > MAX_REQUEST {
            return Err(std::io::Error::other("the request is too large"));
        }
        pending.body.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Head {
    pending: Arc<Mutex<Pending>>,
    text: Option<Cursor<Vec<u8>>>,
}

impl Read for Head {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.text.is_none() {
            let text = lock(&self.pending).answer()?.0.clone();
            self.text = Some(Cursor::new(text.into_bytes()));
        }
        self.text.as_mut().map_or(Ok(0), |text| text.read(out))
    }
}

struct Body {
    pending: Arc<Mutex<Pending>>,
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        lock(&self.pending).answer()?.1.read(out)
    }
}

fn lock(pending: &Mutex<Pending>) -> std::sync::MutexGuard<'_, Pending> {
    pending.lock().unwrap_or_else(PoisonError::into_inner)
}
