//! Update: the object that was read is changed and written back, if nobody came between.

use serde_json::Value;
use strata_model::field::FieldError;
use strata_model::resource::Verb;
use strata_model::status::{Reason, Status};
use strata_store::record::Record;
use strata_store::txn::{Condition, Txn};

use super::admit::Step;
use super::api::{Api, MAX_ATTEMPTS, record_of};
use super::body::{self, Body, Decoded};
use super::charge::Charged;
use super::create::to_bytes;
use super::enclosed::check_empty;
use super::ownership::{Ownership, wanted};
use super::request::{Caller, Deed, Target, WriteOptions, Written};
use super::riders::Riders;
use super::settle::{guard, reserve, settle};
use super::versions;
use crate::admission::operation::Operation;
use crate::deletion;
use crate::managed::entries::{Managed, Wish};
use crate::refusal::{self, Outcome, about};
use crate::strategy::{self, Part};
use crate::types::meta;
use crate::value::text;

/// What a write wants of the object that is there: the new object and sentences for the user.
pub type Change<'a> = &'a (dyn Fn(&Value) -> Outcome<(Value, Vec<String>)> + Send + Sync);

/// What becomes of the object that is there.
#[derive(Clone, Copy)]
pub enum How<'a> {
    /// It is changed so.
    Change(Change<'a>),
    /// It is changed so, by what reads the managers of its fields too.
    ChangeManaged(Change<'a>),
    /// This configuration is applied to it.
    Apply(&'a Value),
}

/// How a change is written.
#[derive(Clone, Copy)]
pub struct Rewrite<'a> {
    /// Which part of the object.
    pub part: Part,
    /// The verb, for history.
    pub verb: &'static str,
    /// The subresource that it is written through, or empty.
    pub through: &'a str,
    /// What is wanted.
    pub how: How<'a>,
}

/// What a rewrite comes to.
struct Decision {
    /// The object as it shall be.
    new: Value,
    /// Whether anything differs.
    changed: bool,
    /// Whether the client named the revision that it changes.
    named: bool,
    /// Sentences for the user.
    warnings: Vec<String>,
}

/// Which part of an object a target's subresource is.
pub fn part_of(target: &Target) -> Part {
    match target.subresource.as_str() {
        "status" => Part::Status,
        "finalize" => Part::Finalize,
        "approval" => Part::Approval,
        "ephemeralcontainers" => Part::Ephemeral,
        _ => Part::Main,
    }
}

impl Api {
    /// Replaces an object or one of its subresources.
    pub async fn update(
        &self,
        caller: &Caller,
        target: &Target,
        body: &Body,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        target.admit(caller, Verb::Update)?;
        if target.subresource == "scale" {
            return self.update_scale(caller, target, body, options).await;
        }
        let Decoded { value, warnings } = body::decode(body, wanted(&target.served), options.validation)?;
        let decoded = Decoded { value: target.store(value)?, warnings };
        self.replace(caller, &target.stored(), decoded, options).await?.shown(target)
    }

    async fn replace(
        &self,
        caller: &Caller,
        target: &Target,
        decoded: Decoded,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let plain = target.subresource.is_empty();
        if plain && target.served.rules.create_on_update {
            let snapshot = self.latest().await?;
            if matches!(record_of(&snapshot, target), Err(refusal) if refusal.reason == Some(Reason::NotFound))
            {
                return self.upsert(caller, target, decoded, options).await;
            }
        }
        if plain
            && target.served.rules.revision_required
            && text(&decoded.value, &["metadata", "resourceVersion"]).is_empty()
        {
            // Of an object that is not there, nothing else is at fault.
            record_of(&self.latest().await?, target)?;
            let path = meta::path().child("resourceVersion");
            let fault = FieldError {
                value: Some("0x0".to_owned()),
                ..FieldError::invalid(path, "", "must be specified for an update")
            };
            return Err(refusal::invalid(&target.served.resource, &target.name, &[fault]));
        }
        let Decoded { value, warnings } = decoded;
        let change = |_: &Value| Ok((value.clone(), warnings.clone()));
        let (part, through, how) = (part_of(target), target.subresource.as_str(), How::Change(&change));
        let rewrite = Rewrite { part, verb: "update", through, how };
        self.rewrite(caller, target, rewrite, options).await
    }

    async fn upsert(
        &self,
        caller: &Caller,
        target: &Target,
        mut decoded: Decoded,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        let name = text(&decoded.value, &["metadata", "name"]);
        if !name.is_empty() && name != target.name {
            return Err(refusal::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            )));
        }
        target.admit(caller, Verb::Create)?;
        strategy::check_type(&target.served, &mut decoded.value)?;
        let metadata = crate::value::child(&mut decoded.value, "metadata");
        metadata.insert("name".to_owned(), target.name.clone().into());
        metadata.remove("resourceVersion");
        self.insert(caller, target, decoded, None, options).await
    }

    /// Changes an object: reads it, decides, and writes if it is still as it was read; else decides anew, unless the
    /// client named the revision that it wants to change.
    pub async fn rewrite(
        &self,
        caller: &Caller,
        target: &Target,
        rewrite: Rewrite<'_>,
        options: &WriteOptions,
    ) -> Outcome<Written> {
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = self.latest().await?;
            let record = record_of(&snapshot, target)?;
            let old = self.load(&target.served, &record).await?;
            target.admit_object(caller, rewrite.verb, &target.name, &old)?;
            let ownership = Ownership::of(caller, target, rewrite.through, options, self.moment().now);
            let (old, mut draft) = draft(target, rewrite, &ownership, options.force, old)?;
            let step = Step {
                caller,
                target,
                operation: Operation::Update,
                through: rewrite.through,
                old: Some(&old),
                dry_run: options.dry_run,
            };
            if self.mutate(step, &mut draft.new, &mut draft.warnings).await? {
                strategy::redraft(&target.served, &mut draft.new, &old, rewrite.part)?;
            }
            let Decision { mut new, changed, named, mut warnings } =
                decide(target, rewrite, &ownership, &old, draft)?;
            warnings.extend(self.judge(step, Some(&new)).await?);
            warnings.extend(target.served.notice().map(str::to_owned));
            if !changed && !versions::is_outdated(&target.served, &record) {
                let bytes = self.load_bytes(&target.served, &record).await?;
                return Ok(Written { bytes, changed: false, created: false, warnings });
            }
            if rewrite.part == Part::Main {
                settle(caller, target, &snapshot, &mut new, Some(&old))?;
            }
            guard(caller, target, &snapshot, &new, &old)?;
            self.recount(&snapshot, target, &mut new, rewrite.part);
            let charged = match rewrite.part {
                Part::Main => self.charge(target, &new, Some(&old)).await?,
                _ => Charged::default(),
            };
            if target.served.rules.encloses && deletion::is_due(&target.served, &new) {
                check_empty(&self.catalogue(), &snapshot, target)?;
            }
            if options.dry_run {
                return Ok(Written { bytes: to_bytes(&new)?, changed: true, created: false, warnings });
            }
            let deed = Deed::new(rewrite.verb, rewrite.through, options);
            let done = self.store_change(caller, target, &record, &new, deed, charged.riders).await?;
            match done {
                Some(bytes) => return Ok(Written { bytes, changed: true, created: false, warnings }),
                None if named => return Err(stale(target)),
                None => {}
            }
        }
        Err(stale(target))
    }

    /// Writes a changed object over its record, or removes it where nothing holds it any more. `None`: it was changed
    /// by another write, or what rides with it was.
    pub async fn store_change(
        &self,
        caller: &Caller,
        target: &Target,
        record: &Record,
        new: &Value,
        deed: Deed<'_>,
        riders: Riders,
    ) -> Outcome<Option<bytes::Bytes>> {
        let key = record.key.clone();
        let txn = Txn::new().when(key.clone(), Condition::At(record.modified)).cause(deed.cause(caller));
        let due = deletion::is_due(&target.served, new);
        let txn = if due { txn.delete(key) } else { txn.put(key, self.save(&target.served, new).await?) };
        let old = match target.served.rules.reserves {
            Some(_) => Some(self.load(&target.served, record).await?),
            None => None,
        };
        let txn = riders.board(reserve(target, txn, old.as_ref(), (!due).then_some(new)));
        let Ok(committed) = self.commit_for(caller, txn).await? else { return Ok(None) };
        self.followed(target, committed.revision).await;
        if due {
            let mut last = new.clone();
            let metadata = crate::value::child(&mut last, "metadata");
            metadata.insert("resourceVersion".to_owned(), committed.revision.to_string().into());
            return to_bytes(&last).map(Some);
        }
        let stored = committed.records.into_iter().flatten().next();
        match stored {
            Some(record) => self.load_bytes(&target.served, &record).await.map(Some),
            None => Ok(None),
        }
    }
}

/// A rewrite on its way: filled, and not checked yet.
struct Draft {
    /// The object as it shall be, without its managers.
    new: Value,
    /// The managers as they are.
    managers: Managed,
    /// The managers after an apply.
    moved: Option<Managed>,
    /// What the client wants of the managers.
    wish: Wish,
    /// Whether the client named the revision that it changes.
    named: bool,
    /// Sentences for the user.
    warnings: Vec<String>,
}

/// Makes of an object what a rewrite wants. Answers the object without its managers, too.
fn draft(
    target: &Target,
    rewrite: Rewrite<'_>,
    ownership: &Ownership<'_>,
    force: bool,
    mut old: Value,
) -> Outcome<(Value, Draft)> {
    let managers = Managed::take(&mut old);
    let mut moved = None;
    let (mut new, warnings) = match rewrite.how {
        How::Change(change) => change(&old)?,
        How::ChangeManaged(change) => {
            let mut shown = old.clone();
            managers.clone().put(&mut shown);
            change(&shown)?
        }
        How::Apply(config) => {
            let mut after = managers.clone();
            let new = ownership.apply(target, (config, force), &old, &mut after)?;
            moved = Some(after);
            (new, Vec::new())
        }
    };
    let wish = Managed::wish(&mut new);
    let named = check_revision(target, &new, &old)?;
    strategy::redraft(&target.served, &mut new, &old, rewrite.part)?;
    Ok((old, Draft { new, managers, moved, wish, named, warnings }))
}

/// Decides a rewrite of an object.
fn decide(
    target: &Target,
    rewrite: Rewrite<'_>,
    ownership: &Ownership<'_>,
    old: &Value,
    draft: Draft,
) -> Outcome<Decision> {
    let Draft { mut new, managers, moved, wish, named, warnings } = draft;
    strategy::check_changed(&target.served, &mut new, old, rewrite.part)?;
    let after = match moved {
        Some(moved) => (new != *old || !moved.owns_same(&managers)).then_some(moved),
        None => ownership.update(managers, wish, old, &new),
    };
    let changed = after.is_some();
    if let Some(managers) = after {
        managers.put(&mut new);
    }
    Ok(Decision { new, changed, named, warnings })
}

/// Whether the client named a revision; it must be the one that is there.
pub fn check_revision(target: &Target, new: &Value, old: &Value) -> Outcome<bool> {
    let named = text(new, &["metadata", "resourceVersion"]);
    if !matches!(named, "" | "0") && named != text(old, &["metadata", "resourceVersion"]) {
        return Err(stale(target));
    }
    Ok(!named.is_empty())
}

/// The refusal of a write against a state that is no longer so.
pub fn stale(target: &Target) -> refusal::Refusal {
    Box::new(Status::stale(about(&target.served.resource, &target.name)))
}
