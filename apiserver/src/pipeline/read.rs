//! Get and list: stored bytes, handed on as they are.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strata_model::resource::Verb;
use strata_store::error::ReadError;
use strata_store::key::{Key, KeyRange};
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::snapshot::{ReadAt, Snapshot};

use super::api::{Api, record_of};
use super::request::{Caller, Target, single_name};
use super::scale;
use crate::paging::{self, Asked, At, Plan};
use crate::refusal::{self, Outcome};
use crate::selection::Selection;
use crate::storage;

/// How long the state of a list is kept for its next page, however soon history goes otherwise.
const TOKEN_LIFE: Duration = Duration::from_secs(300);

/// One page of a list, all of one state.
pub struct Page {
    /// The objects, in order of their keys.
    pub records: Vec<Arc<Record>>,
    /// The revision of the state.
    pub revision: u64,
    /// Token of the next page; empty where there is none.
    pub token: String,
    /// How many objects follow; `None` where unknown or none.
    pub remaining: Option<u64>,
}

/// What a list is about.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Label selector.
    pub labels: String,
    /// Field selector.
    pub fields: String,
    /// State and page.
    pub asked: Asked,
}

impl Api {
    /// One object, or one of its readable subresources, as JSON. Of what is asked, limit and token do not matter.
    pub async fn get(&self, caller: &Caller, target: &Target, asked: &Asked) -> Outcome<Bytes> {
        target.admit(caller, Verb::Get)?;
        self.admit_node(caller, target, Verb::Get.as_str(), &target.name).await?;
        let plan = paging::plan(&Asked { limit: 0, token: String::new(), ..asked.clone() })?;
        let snapshot = self.state(&plan).await?;
        let record = record_of(&snapshot, &target.stored())?;
        match target.subresource.as_str() {
            "scale" => scale::bytes(&target.served, &self.load(&target.served, &record).await?),
            _ => self.load_bytes(&target.served, &record).await,
        }
    }

    /// All objects of a type, or of a type in a namespace, that are selected.
    pub async fn list(&self, caller: &Caller, target: &Target, options: &ListOptions) -> Outcome<Page> {
        target.admit_selected(caller, Verb::List, &options.fields)?;
        let name = single_name(&options.fields);
        self.admit_node(caller, target, Verb::List.as_str(), &name).await?;
        self.select(target, options).await
    }

    /// As `list`, for whoever was admitted already.
    pub async fn select(&self, target: &Target, options: &ListOptions) -> Outcome<Page> {
        let selection = Selection::parse(&target.served, &options.labels, &options.fields)?;
        let plan = paging::plan(&options.asked)?;
        let snapshot = self.state(&plan).await?;
        let mut page = page(&snapshot, &target.stored(), &selection, &plan);
        if !page.token.is_empty() {
            self.store.hold(snapshot.revision(), TOKEN_LIFE);
        }
        self.load_all(&target.served, &mut page.records).await?;
        Ok(page)
    }

    async fn state(&self, plan: &Plan) -> Outcome<Snapshot> {
        match plan.at {
            At::Latest => self.latest().await,
            At::NotOlderThan(revision) => self.not_older(revision).await,
            At::Exact(revision) => {
                let at = ReadAt::Exact(Revision::new(revision));
                self.store.snapshot(at).await.map_err(|error| match error {
                    ReadError::Compacted { oldest } => paging::expired(plan, oldest.get()),
                    ReadError::Future { current } => refusal::too_new(revision, current.get()),
                    error => refusal::of_read(&error),
                })
            }
        }
    }
}

/// The keys that a list or watch of a target is about.
pub fn range_of(target: &Target, selection: &Selection) -> KeyRange {
    let id = &target.served.resource.id;
    let placed = !target.namespace.is_empty() || !target.served.resource.is_namespaced();
    match selection.single_name() {
        Some(name) if placed => KeyRange::single(storage::key(id, &target.namespace, name)),
        _ => storage::range(id, &target.namespace),
    }
}

fn page(snapshot: &Snapshot, target: &Target, selection: &Selection, plan: &Plan) -> Page {
    let range = range_of(target, selection);
    let whole = storage::range(&target.served.resource.id, "");
    let root = whole.start.as_bytes().len();
    let after = plan.after.as_ref().map(|relative| {
        let mut key = whole.start.as_bytes().to_vec();
        key.extend_from_slice(relative.as_bytes());
        Key::from(key)
    });
    let mut found = snapshot.range(&range, after.as_ref()).filter(|record| selection.matches(record));
    let limit = plan.limit.unwrap_or(usize::MAX);
    let records: Vec<Arc<Record>> = found.by_ref().take(limit).cloned().collect();
    let revision = snapshot.revision().get();
    let more = records.len() == limit && found.next().is_some();
    let Some(last) = records.last().filter(|_| more) else {
        return Page { records, revision, token: String::new(), remaining: None };
    };
    let relative = String::from_utf8_lossy(&last.key.as_bytes()[root..]).into_owned();
    let remaining = selection.is_everything().then(|| snapshot.range(&range, Some(&last.key)).count() as u64);
    Page { token: paging::token(revision, &relative), remaining, records, revision }
}
