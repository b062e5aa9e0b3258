//! What a sync would do, without doing it: for people who look before they leap. Renders by itself and asks the server by
//! dry runs; writes nothing.

use std::sync::Arc;

use serde_json::Value;
use strata_client::client::Client;
use strata_client::error::{Class, ClientError};
use strata_client::options::{GetOptions, Patch, WriteOptions};
use strata_model::object::{Object, ObjectError, ObjectKey};
use strata_model::resource::Registry;
use strata_plan::application::decide::pinned;
use strata_plan::application::desired::{Desired, Wish, wish};
use strata_plan::application::difference::{Verdict, plain};
use strata_plan::application::identity::{ObjectId, owner};
use strata_plan::application::ignore::Rules;
use strata_plan::application::operation::{Application, SyncOperation};
use strata_plan::application::rendered::RenderError;
use strata_plan::application::status::Status;
use strata_plan::application::types::MANAGER;

use super::judge;
use super::repositories::{Ask, Fresh, Repositories};

/// Why there is no preview.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The Application cannot be read.
    #[error(transparent)]
    Application(#[from] ObjectError),
    /// Its source cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The server cannot be asked.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// One object that would be another one.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which one.
    pub id: ObjectId,
    /// As it is; `None`: it would be made.
    pub live: Option<Value>,
    /// As it would be; `None`: it would be deleted, where pruning is asked for.
    pub then: Option<Value>,
    /// The fields that would change.
    pub fields: Vec<String>,
    /// Why the server would refuse it.
    pub refused: Option<String>,
}

/// What a sync would do.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    /// To which commits.
    pub revisions: Vec<String>,
    /// What would change, in the order of the source; what would go comes last.
    pub changes: Vec<Change>,
    /// How many objects would stay as they are.
    pub same: usize,
    /// What is wrong with single manifests.
    pub faults: Vec<String>,
}

/// Previews a sync of an Application, to a revision of its first source where one is named.
pub async fn preview<R: Repositories>(
    client: &Client,
    repositories: &R,
    object: &Object,
    revision: Option<&str>,
) -> Result<Preview, PreviewError> {
    let app: Application = object.decode()?;
    let sync =
        SyncOperation { revision: revision.unwrap_or_default().to_owned(), ..SyncOperation::default() };
    let ask = Ask {
        app: object.key(),
        namespace: app.spec.destination.namespace.clone(),
        sources: pinned(app.spec.all_sources(), &sync),
    };
    let renders: Vec<Arc<_>> =
        repositories.render(&ask, Fresh::Now).await?.into_iter().map(Arc::new).collect();
    let mut types = Registry::default();
    for one in client.types().await? {
        types.add(one);
    }
    let wish = wish(&object.key(), &app.spec.destination.namespace, &renders, &types);
    let mut preview =
        Preview { revisions: wish.revisions.clone(), faults: wish.faults.clone(), ..Preview::default() };
    for desired in wish.objects.iter().filter(|d| !d.is_hook()) {
        let rules = Rules::of(&app.spec.ignore_differences, &desired.id);
        match change(client, desired, &rules).await? {
            Some(change) => preview.changes.push(change),
            None => preview.same += 1,
        }
    }
    gone(client, object, &app, &wish, &types, &mut preview).await?;
    Ok(preview)
}

/// What applying a wish would change; `None`: nothing.
async fn change(client: &Client, desired: &Desired, rules: &Rules) -> Result<Option<Change>, ClientError> {
    let mut change =
        Change { id: desired.id.clone(), live: None, then: None, fields: Vec::new(), refused: None };
    let Some(resource) = &desired.resource else {
        change.refused = Some(format!("the type {} is not served", desired.id.kind));
        change.then = Some(desired.object.clone());
        return Ok(Some(change));
    };
    let key = desired.id.key();
    change.live = found(client.get(resource, &key, &GetOptions::default()).await)?;
    let options =
        WriteOptions { dry_run: true, field_manager: MANAGER.to_owned(), ..WriteOptions::default() };
    let patch = Patch::Apply { object: desired.object.to_string().into(), force: true };
    let then = match client.patch(resource, &key, "", &patch, &options).await {
        Ok(written) => written.object.to_value().unwrap_or_default(),
        // Its namespace is made by the same sync.
        Err(error) if change.live.is_none() && error.class() == Class::NotFound => desired.object.clone(),
        Err(error) => match judge::refused(error)? {
            Verdict::Refused(why) => {
                change.refused = Some(why);
                desired.object.clone()
            }
            Verdict::Same | Verdict::Differs(_) => return Ok(None),
        },
    };
    if let Some(live) = &change.live {
        match judge::difference(live.clone(), then.clone(), rules).await {
            Verdict::Same if change.refused.is_none() => return Ok(None),
            Verdict::Differs(fields) => change.fields = fields,
            Verdict::Same | Verdict::Refused(_) => {}
        }
    }
    change.live = change.live.map(plain);
    change.then = Some(plain(then));
    Ok(Some(change))
}

fn found(object: Result<Object, ClientError>) -> Result<Option<Value>, ClientError> {
    match object {
        Ok(object) => Ok(object.to_value().ok()),
        Err(error) if error.class() == Class::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What is in the source no longer.
async fn gone(
    client: &Client,
    object: &Object,
    app: &Application,
    wish: &Wish,
    types: &Registry,
    preview: &mut Preview,
) -> Result<(), ClientError> {
    let status = Status::read(&app.status);
    let wished = |id: &ObjectId| wish.objects.iter().any(|d| d.id == *id);
    for one in &status.resources {
        let id = ObjectId {
            group: one.group.clone(),
            kind: one.kind.clone(),
            namespace: one.namespace.clone(),
            name: one.name.clone(),
        };
        let api_version = match one.group.as_str() {
            "" => one.version.clone(),
            group => format!("{group}/{}", one.version),
        };
        let Some(resource) = types.by_api_version(&api_version, &one.kind).filter(|_| !wished(&id)) else {
            continue;
        };
        let key = ObjectKey::new(one.namespace.clone(), one.name.clone());
        let live = match client.get(resource, &key, &GetOptions::default()).await {
            Ok(live) if owner(&live) == Some(object.key()) => live,
            Ok(_) => continue,
            Err(error) if error.class() == Class::NotFound => continue,
            Err(error) => return Err(error),
        };
        let live = live.to_value().ok().map(plain);
        preview.changes.push(Change { id, live, then: None, fields: Vec::new(), refused: None });
    }
    Ok(())
}
