//! Follows roles and bindings: each server holds its policy to them, and writes the rules of roles that gather those of
//! others. Also sees to it at the start that the roles are there that always are.

use std::time::Duration;

use serde_json::{Value, json};
use strata_model::resource::{GroupResource, builtin};
use strata_store::key::KeyRange;
use strata_store::record::Record;
use strata_store::revision::Revision;
use strata_store::snapshot::Snapshot;
use strata_store::txn::{Condition, Transaction, Txn};
use strata_store::watch::{From, WatchItem};

use super::api::Api;
use super::ownership::Ownership;
use super::request::{Caller, Deed, Target, WriteOptions};
use crate::managed::entries::{Managed, Wish};
use crate::rbac::bootstrap::{self, Kind};
use crate::rbac::compile::Compiler;
use crate::rbac::rule::Rule;
use crate::refusal::{self, Outcome};
use crate::storage;
use crate::strategy;
use crate::value::{object, text};

/// How long to wait after a failure.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Who manages the rules of cluster roles that gather them.
const GATHERER: &str = "clusterrole-aggregation-controller";
/// How often the roles of the start are decided anew when another server writes them too.
const START_ATTEMPTS: usize = 5;

/// The four types, all of one range of keys.
static TYPES: [(&GroupResource, Kind); 4] = [
    (&builtin::ROLE.id, Kind::Role),
    (&builtin::CLUSTER_ROLE.id, Kind::Role),
    (&builtin::ROLE_BINDING.id, Kind::Binding),
    (&builtin::CLUSTER_ROLE_BINDING.id, Kind::Binding),
];

/// The keys of all roles and bindings.
fn range() -> KeyRange {
    KeyRange::prefix(format!("{}/", builtin::ROLE.id.group))
}

fn kind_of(record: &Record) -> Option<Kind> {
    TYPES.iter().find(|(id, _)| storage::range(id, "").contains(&record.key)).map(|(_, kind)| *kind)
}

/// Whether a type is one of roles or bindings.
pub fn concerns(id: &GroupResource) -> bool {
    TYPES.iter().any(|(own, _)| *own == id)
}

fn put(compiler: &mut Compiler, record: &Record) {
    let (namespace, name) = (storage::namespace_of(record), storage::name_of(record));
    match (kind_of(record), storage::parse(record)) {
        (Some(Kind::Role), Ok(role)) => compiler.put_role(namespace, name, &role),
        (Some(Kind::Binding), Ok(binding)) => compiler.put_binding(namespace, name, &binding),
        (None, _) => {}
        (Some(_), Err(fault)) => {
            tracing::warn!(namespace, name, reason = %fault.message, "a stored role or binding does not count");
            remove(compiler, record);
        }
    }
}

fn remove(compiler: &mut Compiler, record: &Record) {
    let (namespace, name) = (storage::namespace_of(record), storage::name_of(record));
    match kind_of(record) {
        Some(Kind::Role) => compiler.remove_role(namespace, name),
        Some(Kind::Binding) => compiler.remove_binding(namespace, name),
        None => {}
    }
}

fn initial(snapshot: &Snapshot) -> Compiler {
    let mut compiler = Compiler::default();
    snapshot.range(&range(), None).for_each(|record| put(&mut compiler, record));
    compiler
}

/// Takes a transaction in; tells whether it was about roles.
fn apply(compiler: &mut Compiler, transaction: &Transaction) -> bool {
    let mut any = false;
    for change in transaction.changes_in(&range()) {
        any = true;
        match (&change.record, &change.previous) {
            (Some(record), _) => put(compiler, record),
            (None, Some(previous)) => remove(compiler, previous),
            (None, None) => {}
        }
    }
    any
}

impl Api {
    /// Follows roles and bindings for as long as the server runs.
    pub async fn follow_roles(&self) {
        loop {
            if let Err(refusal) = self.follow_roles_once().await {
                tracing::warn!(reason = %refusal.message, "roles cannot be followed; trying again");
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    async fn follow_roles_once(&self) -> Outcome<()> {
        let watch = self.store.watch(range(), From::WithInitial);
        let mut watch = watch.map_err(|error| refusal::of_watch(&error, 0))?;
        let mut compiler = Compiler::default();
        loop {
            let item = watch.next().await.map_err(|error| refusal::of_watch(&error, 0))?;
            let (changed, revision) = match &item {
                WatchItem::Initial(snapshot) => {
                    compiler = initial(snapshot);
                    (true, snapshot.revision())
                }
                WatchItem::Transaction(transaction) => {
                    (apply(&mut compiler, transaction), transaction.revision)
                }
                WatchItem::Progress(revision) => (false, *revision),
            };
            if changed {
                let gathered = compiler.gather();
                self.access.put(compiler.policy());
                for (name, rules) in gathered {
                    self.write_gathered(&name, &rules).await?;
                }
            }
            self.access.note(revision);
        }
    }

    /// Waits until this server decides by all roles that there were when it began.
    pub async fn roles_followed(&self) {
        let begun = Revision::new(self.store.current_revision().get().max(1));
        self.access.reached(begun).await;
    }

    /// Writes the rules that a cluster role gathered, where it does not have them yet.
    async fn write_gathered(&self, name: &str, rules: &[Rule]) -> Outcome<()> {
        let key = storage::key(&builtin::CLUSTER_ROLE.id, "", name);
        let Some(record) = self.latest().await?.get(&key) else { return Ok(()) };
        let mut old = storage::parse(&record)?;
        if Rule::read_all(&old) == rules {
            return Ok(());
        }
        let (caller, options) = (Caller::server("roles"), gatherer());
        let Some(target) = self.place(&builtin::CLUSTER_ROLE.id, name) else { return Ok(()) };
        let managers = Managed::take(&mut old);
        let mut new = old.clone();
        object(&mut new).insert("rules".to_owned(), json!(rules.iter().map(Rule::write).collect::<Vec<_>>()));
        let ownership = Ownership::of(&caller, &target, "", &options, self.moment().now);
        if let Some(managers) = ownership.update(managers, Wish::Keep, &old, &new) {
            managers.put(&mut new);
        }
        let txn = Txn::new()
            .when(key.clone(), Condition::At(record.modified))
            .put(key, storage::stamped(&new)?)
            .cause(Deed::new("update", "", &options).cause(&caller));
        // Lost to another server or to a user: the watch brings what is there now.
        if self.commit(txn).await?.is_err() {
            tracing::debug!(name, "the cluster role changed meanwhile");
        }
        Ok(())
    }

    fn place(&self, id: &GroupResource, name: &str) -> Option<Target> {
        let served = self.catalogue().by_id(id).cloned()?;
        let (namespace, subresource) = (String::new(), String::new());
        Some(Target { served, namespace, name: name.to_owned(), subresource })
    }

    /// Sees to it that the roles and bindings are there that always are, in one write; in none where they are.
    pub async fn ensure_roles(&self) -> Outcome<()> {
        let wanted = bootstrap::cluster_roles()
            .into_iter()
            .map(|role| (&builtin::CLUSTER_ROLE.id, Kind::Role, role))
            .chain(
                bootstrap::cluster_role_bindings()
                    .into_iter()
                    .map(|binding| (&builtin::CLUSTER_ROLE_BINDING.id, Kind::Binding, binding)),
            );
        let wanted: Vec<_> = wanted.collect();
        let caller = Caller::server("start");
        for _ in 0..START_ATTEMPTS {
            let snapshot = self.latest().await?;
            let mut txn = Txn::new();
            for (id, kind, wanted) in &wanted {
                txn = self.ensure_role(&caller, &snapshot, txn, (id, *kind, wanted))?;
            }
            let deed = Deed { verb: "update", ..Deed::default() };
            if txn.conditions.is_empty() || self.commit(txn.cause(deed.cause(&caller))).await?.is_ok() {
                return Ok(());
            }
        }
        Err(refusal::timeout("the first roles changed again and again; try again"))
    }

    fn ensure_role(
        &self,
        caller: &Caller,
        snapshot: &Snapshot,
        txn: Txn,
        (id, kind, wanted): (&GroupResource, Kind, &Value),
    ) -> Outcome<Txn> {
        let name = text(wanted, &["metadata", "name"]);
        let Some(target) = self.place(id, name) else { return Ok(txn) };
        let (options, moment) = (WriteOptions::default(), self.moment());
        let ownership = Ownership::of(caller, &target, "", &options, moment.now);
        let key = storage::key(id, "", name);
        let (condition, new) = match snapshot.get(&key) {
            None => {
                let mut new = wanted.clone();
                strategy::create(&target.served, &mut new, "", &moment)?;
                ownership.create(&mut new);
                (Condition::Absent, new)
            }
            Some(record) => {
                let mut old = storage::parse(&record)?;
                let managers = Managed::take(&mut old);
                let Some(mut new) = bootstrap::mended(kind, &old, wanted) else { return Ok(txn) };
                if let Some(managers) = ownership.update(managers, Wish::Keep, &old, &new) {
                    managers.put(&mut new);
                }
                (Condition::At(record.modified), new)
            }
        };
        Ok(txn.when(key.clone(), condition).put(key, storage::stamped(&new)?))
    }
}

fn gatherer() -> WriteOptions {
    WriteOptions { manager: GATHERER.to_owned(), ..WriteOptions::default() }
}
