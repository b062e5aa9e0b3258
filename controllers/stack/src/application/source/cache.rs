//! Repositories on disk: asked, fetched and forgotten within bounds, each on its own, so that a slow host holds up nobody
//! else's. Renders nothing.

mod disk;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gix::ObjectId;
use strata_plan::application::rendered::{Fault, RenderError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, Semaphore};

use super::access::{Access, Credential};
use super::address::{Address, normal, without_password};
use super::bounds::{FAILURE_HOLDS, MAX_FETCHES};
use super::reads::digest;
use super::remote::{self, Want};
use super::revision::{Refs, Resolved};
use super::transport::Means;

/// How new branches and tags must be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newness {
    /// Asked for at this time or later; any will do where absent.
    pub since: Option<Instant>,
    /// A failure that is older does not count either, though it is recent.
    pub again: bool,
}

impl Newness {
    /// As new as can be: those who ask at the same time share one answer.
    pub fn now() -> Self {
        Self { since: Some(Instant::now()), again: false }
    }

    /// Whether a failure still stands: those who waited for it do not ask again.
    fn holds(self, at: Instant) -> bool {
        self.since.is_some_and(|since| at >= since) || (!self.again && at.elapsed() < FAILURE_HOLDS)
    }

    fn takes(self, at: Instant) -> bool {
        self.since.is_none_or(|since| at >= since)
    }
}

/// All repositories that this process reads.
pub struct Repositories {
    folder: PathBuf,
    slots: Semaphore,
    clock: AtomicU64,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
}

struct Entry {
    folder: PathBuf,
    used: AtomicU64,
    state: tokio::sync::Mutex<State>,
    /// Read by those who read objects, written by those who throw the copy away.
    disk: Arc<RwLock<()>>,
}

#[derive(Default)]
struct State {
    refs: Option<(Instant, Arc<Refs>)>,
    failed: Option<(Instant, RenderError)>,
    /// Commits that could not be fetched.
    lacking: BTreeMap<ObjectId, (Instant, RenderError)>,
    /// Those with whom all this was learnt.
    access: Credential,
}

/// A commit that is on disk, and stays there while this lives.
pub struct Held {
    /// The repository.
    pub folder: PathBuf,
    /// The commit.
    pub commit: ObjectId,
    _disk: OwnedRwLockReadGuard<()>,
}

impl Repositories {
    /// Keeps its copies in a folder, which is made. Whatever is in there from an earlier process is used again.
    pub fn new(folder: PathBuf) -> std::io::Result<Self> {
        std::fs::create_dir_all(&folder)?;
        let entries = Mutex::default();
        Ok(Self { folder, slots: Semaphore::new(MAX_FETCHES), clock: AtomicU64::new(1), entries })
    }

    /// Takes a repository's branches and tags for old: it has news.
    pub async fn touched(&self, url: &str) {
        let wanted = normal(url);
        let entries: Vec<_> = {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            entries.iter().filter(|(known, _)| normal(known) == wanted).map(|(_, e)| Arc::clone(e)).collect()
        };
        for entry in entries {
            let mut state = entry.state.lock().await;
            *state = State { access: state.access.clone(), ..State::default() };
        }
    }

    /// The branches and tags of a repository, as new as asked for.
    pub async fn refs(&self, url: &str, access: &Access, newness: Newness) -> Result<Arc<Refs>, RenderError> {
        let means = means(url, access)?;
        let entry = self.entry(&means)?;
        let mut state = entry.state.lock().await;
        self.listed(&entry, &mut state, &means, newness).await
    }

    /// The commit that a target revision is, on disk. Branches and tags are as new as asked for.
    pub async fn commit(
        &self,
        url: &str,
        target: &str,
        access: &Access,
        newness: Newness,
    ) -> Result<Held, RenderError> {
        let means = means(url, access)?;
        let entry = self.entry(&means)?;
        let mut state = entry.state.lock().await;
        let full = target.len() == 40 && target.bytes().all(|b| b.is_ascii_hexdigit());
        if full && let Some(id) = ObjectId::from_hex(target.to_lowercase().as_bytes()).ok() {
            // A commit never changes: nobody needs to be asked for one that is here.
            if let Some(held) = self.here(&entry, &means, id).await? {
                return Ok(held);
            }
        }
        let refs = self.listed(&entry, &mut state, &means, newness).await?;
        let resolved = refs.resolve(target, &means.url)?;
        match self.fetched(&entry, &mut state, &means, &resolved).await {
            // It went between the asking and the fetching: a branch that was rewritten.
            Err(error) if error.fault == Fault::Missing && !full && newness.since.is_none() => {
                let refs = self.listed(&entry, &mut state, &means, Newness::now()).await?;
                let again = refs.resolve(target, &means.url)?;
                if again == resolved {
                    return Err(error);
                }
                self.fetched(&entry, &mut state, &means, &again).await
            }
            answer => answer,
        }
    }

    fn entry(&self, means: &Means) -> Result<Arc<Entry>, RenderError> {
        let folder = match &means.address {
            Address::File(path) => path.clone(),
            _ => self.folder.join(digest(means.url.as_bytes())?),
        };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.entry(means.url.clone()).or_insert_with(|| {
            let (used, state, disk) = Default::default();
            Arc::new(Entry { folder, used, state, disk })
        });
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Ok(Arc::clone(entry))
    }

    async fn listed(
        &self,
        entry: &Arc<Entry>,
        state: &mut State,
        means: &Means,
        newness: Newness,
    ) -> Result<Arc<Refs>, RenderError> {
        if state.access != means.credential {
            *state = State { access: means.credential.clone(), ..State::default() };
        }
        if let Some((_, refs)) = state.refs.as_ref().filter(|(at, _)| newness.takes(*at)) {
            return Ok(Arc::clone(refs));
        }
        if let Some((_, error)) = state.failed.as_ref().filter(|(at, _)| newness.holds(*at)) {
            return Err(error.clone());
        }
        let (folder, asked) = (entry.folder.clone(), means.clone());
        let asked_at = Instant::now();
        let answer = self.work(move || match asked.address {
            Address::File(_) => {
                let repository = open_local(&folder, &asked.url)?;
                remote::list_local(&repository, &asked.url)
            }
            _ => remote::list(&disk::ready(&folder)?, &asked),
        });
        match answer.await {
            Ok(refs) => {
                let refs = Arc::new(refs);
                state.refs = Some((asked_at, Arc::clone(&refs)));
                state.failed = None;
                Ok(refs)
            }
            Err(error) => {
                state.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    async fn fetched(
        &self,
        entry: &Arc<Entry>,
        state: &mut State,
        means: &Means,
        resolved: &Resolved,
    ) -> Result<Held, RenderError> {
        let id = match resolved {
            Resolved::Commit(id) => *id,
            Resolved::Short(digits) => match self.complete(entry, means, digits).await? {
                Some(id) => id,
                None => {
                    let message = format!("{} has no commit that begins with {digits}", means.url);
                    return Err(RenderError::new(Fault::Missing, message));
                }
            },
        };
        if let Some(held) = self.here(entry, means, id).await? {
            return Ok(held);
        }
        state.lacking.retain(|_, (at, _)| at.elapsed() < FAILURE_HOLDS);
        if let Some((_, error)) = state.lacking.get(&id) {
            return Err(error.clone());
        }
        let answer = self.fetch(entry, means, Want::Commit(id)).await;
        let held = match answer {
            Ok(()) => self.here(entry, means, id).await,
            Err(error) => Err(error),
        };
        let lacks = || {
            let message =
                format!("{} has no commit {id}: its history was rewritten, or it never was there", means.url);
            RenderError::new(Fault::Missing, message)
        };
        let held = held.and_then(|held| held.ok_or_else(lacks));
        if let Err(error) = &held {
            state.lacking.insert(id, (Instant::now(), error.clone()));
        }
        held
    }

    /// A commit, if it is on disk.
    async fn here(
        &self,
        entry: &Arc<Entry>,
        means: &Means,
        id: ObjectId,
    ) -> Result<Option<Held>, RenderError> {
        let guard = Arc::clone(&entry.disk).read_owned().await;
        let (folder, url) = (entry.folder.clone(), means.url.clone());
        let local = matches!(means.address, Address::File(_));
        let has = blocking(move || {
            if !local && !folder.exists() {
                return Ok(false);
            }
            let repository = if local { open_local(&folder, &url)? } else { disk::ready(&folder)? };
            Ok(repository.has_object(id))
        });
        let held = Held { folder: entry.folder.clone(), commit: id, _disk: guard };
        Ok(has.await?.then_some(held))
    }

    async fn fetch(&self, entry: &Arc<Entry>, means: &Means, want: Want) -> Result<(), RenderError> {
        if matches!(means.address, Address::File(_)) {
            return Ok(());
        }
        // Where somebody reads it just now, it may as well grow a little more.
        let alone = Arc::clone(&entry.disk).try_write_owned().ok();
        let (folder, means) = (entry.folder.clone(), means.clone());
        self.work(move || {
            if alone.is_some() {
                disk::forget_if_grown(&folder);
            }
            remote::fetch(&disk::ready(&folder)?, &means, &want)
        })
        .await?;
        self.make_room(entry).await
    }

    /// The commit that begins with some digits; all of the history is fetched for it.
    async fn complete(
        &self,
        entry: &Arc<Entry>,
        means: &Means,
        digits: &str,
    ) -> Result<Option<ObjectId>, RenderError> {
        self.fetch(entry, means, Want::All).await?;
        let (folder, url, digits) = (entry.folder.clone(), means.url.clone(), digits.to_owned());
        let local = matches!(means.address, Address::File(_));
        let guard = Arc::clone(&entry.disk).read_owned().await;
        let found = blocking(move || {
            let repository = if local { open_local(&folder, &url)? } else { disk::ready(&folder)? };
            disk::find_short(&repository, &url, &digits)
        })
        .await;
        drop(guard);
        found
    }

    /// Throws the least recently used copies away until all are within bounds; never one that is being read.
    async fn make_room(&self, fresh: &Arc<Entry>) -> Result<(), RenderError> {
        let known: HashMap<PathBuf, (u64, Arc<RwLock<()>>)> = {
            let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let one = |entry: &Arc<Entry>| {
                (entry.folder.clone(), (entry.used.load(Ordering::Relaxed), Arc::clone(&entry.disk)))
            };
            entries.values().map(one).collect()
        };
        let (folder, keep) = (self.folder.clone(), fresh.folder.clone());
        blocking(move || {
            disk::make_room(&folder, &keep, &known);
            Ok(())
        })
        .await
    }

    /// Runs something that waits for a host: at most so many at once.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, RenderError> + Send + 'static,
    ) -> Result<T, RenderError> {
        let _slot = self.slots.acquire().await;
        blocking(work).await
    }
}

/// Runs something that blocks off the threads of the runtime. A panic in it is an error of this one source.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RenderError> + Send + 'static,
) -> Result<T, RenderError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        tracing::error!(%error, "reading a repository panicked");
        Err(RenderError::new(Fault::Broken, "reading the repository failed within Strata; the log says more"))
    })
}

fn open_local(folder: &Path, url: &str) -> Result<gix::Repository, RenderError> {
    if !folder.exists() {
        let message = format!("{url}: there is no such folder on the machine of the controller");
        return Err(RenderError::new(Fault::Missing, message));
    }
    remote::open(folder).map_err(|error| {
        RenderError::new(Fault::Missing, format!("{url} is not a git repository that can be read: {error}"))
    })
}

fn means(url: &str, access: &Access) -> Result<Means, RenderError> {
    let address = Address::parse(url)?;
    let host = address.host().unwrap_or_default();
    let certificates = access.certificates.get(host).cloned();
    Ok(Means {
        url: without_password(url),
        credential: access.of(url),
        known_hosts: access.known_hosts.clone(),
        certificates,
        address,
        runtime: Handle::current(),
    })
}
