//! Time travel: which revision a moment was, and what happened to objects within the kept history.

use std::collections::VecDeque;

use strata_model::resource::Verb;
use strata_store::error::{ReadError, WatchError};
use strata_store::key::KeyRange;
use strata_store::past::{Moment, Which};
use strata_store::revision::Revision;
use strata_store::watch::{From, WatchItem};

use super::api::{Api, MAX_ATTEMPTS};
use super::request::{Caller, Target};
use crate::authn::User;
use crate::authz;
use crate::history::changes::{Happened, Window};
use crate::refusal::{self, Outcome, bad_request};
use crate::storage;

/// Which changes are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Changes after this revision; `None` is the oldest that is kept.
    pub after: Option<u64>,
    /// Changes up to this revision; `None` is the newest.
    pub through: Option<u64>,
    /// The newest so many of them; 0 is the server's default.
    pub limit: u64,
}

/// What happened to objects.
pub struct Past {
    /// The changes, oldest first.
    pub changes: VecDeque<Happened>,
    /// The oldest revision that could be asked for.
    pub oldest: u64,
    /// Everything up to this revision is in it.
    pub through: u64,
    /// Whether older changes within the span were left out.
    pub cut: bool,
}

impl Api {
    /// The revision of a moment, for anybody who is known.
    pub async fn moment_of(&self, who: &User, which: Which) -> Outcome<Moment> {
        if who.is_anonymous() {
            return Err(authz::denied_path(who, "/strata.v1.History", "post"));
        }
        self.store.moment(which).await.map_err(|error| unknown(&error, which))
    }

    /// What happened to one object, or (without a name) to all of a type in a namespace or everywhere. Whoever may
    /// read them now may read what they were.
    pub async fn changes(&self, caller: &Caller, target: &Target, span: Span) -> Outcome<Past> {
        let verb = if target.name.is_empty() { Verb::List } else { Verb::Get };
        target.admit(caller, verb)?;
        self.admit_node(caller, target, verb.as_str(), &target.name).await?;
        for _ in 1..MAX_ATTEMPTS {
            let past = self.changes_after(target, span, self.store.oldest_revision()).await;
            match past {
                // What was the oldest a moment ago is given back.
                Err(WatchError::Compacted { .. }) if span.after.is_none() => {}
                past => return self.told(target, past.map_err(|error| refused(&error, span))?).await,
            }
        }
        let past = self.changes_after(target, span, self.store.oldest_revision()).await;
        self.told(target, past.map_err(|error| refused(&error, span))?).await
    }

    /// What happened, in the version that is asked for.
    async fn told(&self, target: &Target, mut past: Past) -> Outcome<Past> {
        let held = past.changes.iter().flat_map(|change| [&change.record, &change.previous]);
        let mut records: Vec<_> = held.flatten().cloned().collect();
        self.load_all(&target.served, &mut records).await?;
        let mut records = records.into_iter();
        for change in &mut past.changes {
            for place in [&mut change.record, &mut change.previous].into_iter().filter(|p| p.is_some()) {
                *place = records.next();
            }
        }
        Ok(past)
    }

    async fn changes_after(&self, target: &Target, span: Span, oldest: Revision) -> Result<Past, WatchError> {
        let id = &target.served.stored().resource.id;
        let range = match target.name.as_str() {
            "" => storage::range(id, &target.namespace),
            name => KeyRange::single(storage::key(id, &target.namespace, name)),
        };
        let current = self.store.current_revision();
        let through = span.through.map_or(current, Revision::new);
        if through > current {
            return Err(WatchError::Future { current });
        }
        let after = span.after.map_or(oldest, Revision::new);
        let mut window = Window::new(span.limit);
        let mut watch = self.store.watch(range.clone(), From::After(after))?;
        watch.announce(through);
        while !watch.caught_up_to(through) {
            match watch.next().await? {
                WatchItem::Transaction(transaction) if transaction.revision <= through => {
                    let changes = transaction.changes_in(&range);
                    changes.for_each(|change| window.push(Happened::new(&transaction, change)));
                }
                WatchItem::Transaction(_) => break,
                WatchItem::Progress(_) | WatchItem::Initial(_) => {}
            }
        }
        let (oldest, through, cut) = (oldest.get(), through.get(), window.is_cut());
        Ok(Past { changes: window.into_changes(), oldest, through, cut })
    }
}

fn gone(oldest: Revision) -> refusal::Refusal {
    refusal::expired(format!(
        "history before revision {oldest} is not kept any more: ask for {oldest} or later"
    ))
}

fn unknown(error: &ReadError, which: Which) -> refusal::Refusal {
    match (error, which) {
        (ReadError::Compacted { oldest }, _) => gone(*oldest),
        (ReadError::Future { current }, Which::At(asked)) => never(asked.get(), *current),
        (error, _) => refusal::of_read(error),
    }
}

fn refused(error: &WatchError, span: Span) -> refusal::Refusal {
    match error {
        WatchError::Compacted { oldest } => gone(*oldest),
        WatchError::Future { current } => never(span.through.max(span.after).unwrap_or_default(), *current),
        error => refusal::of_watch(error, span.after.unwrap_or_default()),
    }
}

fn never(asked: u64, current: Revision) -> refusal::Refusal {
    bad_request(format!("revision {asked} has not happened yet: the newest is {current}"))
}
