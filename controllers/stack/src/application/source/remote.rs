//! Talking to a repository elsewhere: what it has, and fetching of it. Blocks its thread, within limits; which transport
//! carries it is the business of `http` and `ssh`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gix::ObjectId;
use gix::bstr::{BString, ByteSlice as _};
use gix::progress::Discard;
use gix::protocol::handshake::Ref;
use gix::remote::fetch::{Shallow, Tags};
use gix::remote::{Direction, ref_map};
use strata_plan::application::rendered::{Fault, RenderError};

use super::address::Address;
use super::bounds::MAX_REFS;
use super::http;
use super::revision::Refs;
use super::ssh;
use super::transport::{Line, Means};

/// Where fetched commits are kept.
const KEPT: &str = "refs/strata/";

/// How a repository is opened: by its own settings alone, whoever it belongs to.
fn options() -> gix::open::Options {
    gix::open::Options::isolated().with(gix::sec::Trust::Full)
}

/// Opens a repository on disk.
pub fn open(folder: &Path) -> Result<gix::Repository, gix::Error> {
    options().open(folder).map(|repository| repository.to_thread_local())
}

/// Makes an empty repository in a folder, which is made too.
pub fn create(folder: &Path) -> Result<gix::Repository, gix::Error> {
    let made = gix::ThreadSafeRepository::init_opts(
        folder,
        gix::create::Kind::Bare,
        gix::create::Options::default(),
        options(),
    );
    made.map(|repository| repository.to_thread_local())
}

/// The branches and tags of a repository on this machine.
pub fn list_local(repository: &gix::Repository, url: &str) -> Result<Refs, RenderError> {
    let fail = |error: gix::Error| broken(url, &error);
    let mut refs = Refs::default();
    let references = repository.references().map_err(fail)?;
    for reference in references.all().map_err(fail)? {
        let mut reference = reference.map_err(fail)?;
        let name = reference.name().as_bstr().to_string();
        if refs.names.len() >= MAX_REFS {
            return Err(too_many(url));
        }
        // One that leads nowhere is not there.
        if let Ok(id) = reference.peel_to_id() {
            refs.names.insert(name, id.detach());
        }
    }
    refs.head = repository.head_id().ok().map(gix::Id::detach);
    let branch = repository.head_name().map_err(fail)?;
    refs.head_branch = branch.map(|name| name.shorten().to_string());
    Ok(refs)
}

fn too_many(url: &str) -> RenderError {
    RenderError::new(Fault::Broken, format!("{url} has more than {MAX_REFS} branches and tags"))
}

fn broken(url: &str, error: &gix::Error) -> RenderError {
    RenderError::new(Fault::Broken, format!("{url} cannot be read as a git repository: {error}"))
}

/// Asks a repository elsewhere for its branches and tags. `scratch` is any repository on disk.
pub fn list(scratch: &gix::Repository, means: &Means) -> Result<Refs, RenderError> {
    let specs = ["HEAD", "+refs/*:refs/strata/listed/*"];
    let refs = talk(scratch, means, &specs, Line::list, |connection| {
        // All of them are asked for: what matches a prefix is not what we look for by.
        let options = ref_map::Options { prefix_from_spec_as_filter_on_remote: false, ..Default::default() };
        let (map, _) = connection.ref_map(Discard, options)?;
        Ok(map.remote_refs)
    })?;
    if refs.len() > MAX_REFS {
        return Err(too_many(&means.url));
    }
    let mut answer = Refs { names: BTreeMap::new(), ..Refs::default() };
    for found in refs {
        let (name, id, target) = match found {
            Ref::Peeled { full_ref_name, object, .. } | Ref::Direct { full_ref_name, object } => {
                (full_ref_name, Some(object), None)
            }
            Ref::Symbolic { full_ref_name, target, object, .. } => {
                (full_ref_name, Some(object), Some(target))
            }
            Ref::Unborn { full_ref_name, target } => (full_ref_name, None, Some(target)),
        };
        match (name.as_bytes(), id) {
            (b"HEAD", id) => {
                answer.head = id;
                let branch = target.and_then(|name| name.strip_prefix(b"refs/heads/").map(BString::from));
                answer.head_branch = branch.map(|name| name.to_string());
            }
            (_, Some(id)) => {
                answer.names.insert(name.to_string(), id);
            }
            _ => {}
        }
    }
    Ok(answer)
}

/// What is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// One commit, without its history.
    Commit(ObjectId),
    /// All branches and tags with their histories, so that a short commit can be found.
    All,
}

/// Fetches into a repository of ours on disk.
pub fn fetch(repository: &gix::Repository, means: &Means, want: &Want) -> Result<(), RenderError> {
    let (specs, shallow) = match want {
        Want::Commit(id) => {
            (vec![format!("+{id}:{KEPT}{id}")], Shallow::DepthAtRemote(std::num::NonZeroU32::MIN))
        }
        Want::All => (vec![format!("+refs/*:{KEPT}all/*")], Shallow::undo()),
    };
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    talk(repository, means, &specs, Line::fetch, |connection| {
        let prepared = connection.prepare_fetch(Discard, ref_map::Options::default())?;
        prepared.with_shallow(shallow).receive(Discard, &AtomicBool::new(false))?;
        Ok(())
    })
}

type Connection<'a, 'r> = gix::remote::Connection<
    'a,
    'static,
    'r,
    Box<dyn gix::protocol::transport::client::blocking_io::Transport>,
>;

/// Connects, talks, and says what went wrong: what the transport saw comes first, for it knows the cause.
fn talk<T>(
    repository: &gix::Repository,
    means: &Means,
    specs: &[&str],
    line: impl FnOnce(Instant) -> Line,
    work: impl FnOnce(Connection<'_, '_>) -> Result<T, gix::Error>,
) -> Result<T, RenderError> {
    let line = line(Instant::now());
    let transport = match &means.address {
        Address::Http(web) => http::connect(web, means, &line)?,
        Address::Ssh(shell) => ssh::connect(shell, means, &line)?,
        Address::File(path) => {
            let message = format!("{} is read where it lies, not fetched", path.display());
            return Err(RenderError::new(Fault::Settings, message));
        }
    };
    let run = || -> Result<T, gix::Error> {
        let remote = repository.remote_at_without_url_rewrite(means.plain_url().as_str())?;
        let specs = specs.iter().map(|spec| BString::from(*spec));
        let remote = remote.with_fetch_tags(Tags::None).with_refspecs(specs, Direction::Fetch)?;
        // Credentials are those we were given: no helper of this machine is asked.
        work(remote.to_connection_with_transport(transport).with_credentials(|_| Ok(None)))
    };
    let answer = run();
    match (answer, line.fault()) {
        (Ok(answer), _) => Ok(answer),
        (Err(_), Some(fault)) => Err(fault),
        (Err(error), None) => Err(translate(&means.url, &error)),
    }
}

/// What the far git says in its own words.
fn translate(url: &str, error: &gix::Error) -> RenderError {
    let said = error.iter_errors().map(ToString::to_string).collect::<Vec<_>>().join(": ");
    if said.contains("not our ref") || said.contains("no such remote ref") || said.contains("unadvertised") {
        let message = format!(
            "{url} no longer has this commit: its history was rewritten, or it never was there ({said})"
        );
        return RenderError::new(Fault::Missing, message);
    }
    RenderError::new(Fault::Unreachable, format!("{url} cannot be fetched: {said}"))
}
