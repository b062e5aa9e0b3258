//! `rollout history` and `rollout undo`: the revisions kept in a Deployment's ReplicaSets, or in ControllerRevisions.

use clap::Args;
use serde_json::{Map, Value, json};
use strata_client::options::{ListOptions, Patch};
use strata_model::resource::ResourceType;

use super::status::REVISION;
use crate::commands::describe::template::text_of_template;
use crate::commands::error::{CliResult, usage};
use crate::commands::last_applied::LAST_APPLIED;
use crate::commands::printing::{WriteArgs, warn};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs, display, value_of};
use crate::output::{stdout, table};

/// The annotation with the reason for a change.
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
/// The label that tells the pods of one revision from those of another.
const TEMPLATE_HASH: &str = "pod-template-hash";
/// Annotations of a ReplicaSet that are not the Deployment's.
const REPLICA_SET_ANNOTATIONS: [&str; 5] = [
    REVISION,
    "deployment.kubernetes.io/revision-history",
    "deployment.kubernetes.io/desired-replicas",
    "deployment.kubernetes.io/max-replicas",
    LAST_APPLIED,
];

/// Arguments of `rollout history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// TYPE NAME or TYPE/NAME
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,

    /// Show the pod template of this revision
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    revision: u64,
}

/// Arguments of `rollout undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// TYPE NAME or TYPE/NAME
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    files: FileArgs,

    /// The revision to go back to; 0 is the one before
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    to_revision: u64,

    #[command(flatten)]
    write: WriteArgs,
}

/// Revisions of an object, oldest first: the number and what keeps it, with the template in `spec.template`.
async fn revisions(
    session: &Session,
    resource: &ResourceType,
    object: &Value,
) -> CliResult<Vec<(u64, Value)>> {
    match object["spec"]["updateStrategy"].is_object() {
        true => controller_revisions(session, object).await,
        false => replica_sets(session, resource, object).await,
    }
}

/// Revisions that ControllerRevisions keep.
async fn controller_revisions(session: &Session, owner: &Value) -> CliResult<Vec<(u64, Value)>> {
    let kept = session.lookup("controllerrevisions.apps").await?;
    let namespace = owner["metadata"]["namespace"].as_str().unwrap_or_default();
    let uid = &owner["metadata"]["uid"];
    let mut found = Vec::new();
    for object in session.list_all(&kept, namespace, ListOptions::default()).await?.items {
        let mut value = object.to_value()?;
        let controlled = object.meta().controller().is_some_and(|owner| *uid == *owner.uid);
        if let (true, Some(revision)) = (controlled, value["revision"].as_u64()) {
            let mut template = value["data"]["spec"]["template"].take();
            if let Some(members) = template.as_object_mut() {
                members.remove("$patch");
            }
            found.push((revision, json!({"metadata": value["metadata"], "spec": {"template": template}})));
        }
    }
    found.sort_by_key(|(revision, _)| *revision);
    Ok(found)
}

/// Revisions that a Deployment's ReplicaSets keep.
async fn replica_sets(
    session: &Session,
    resource: &ResourceType,
    deployment: &Value,
) -> CliResult<Vec<(u64, Value)>> {
    if deployment["spec"]["strategy"].is_null() || deployment["spec"]["template"].is_null() {
        return Err(usage(format!("{} keep no history of roll-outs", resource.id)));
    }
    let replica_sets = session.lookup("replicasets.apps").await?;
    let namespace = deployment["metadata"]["namespace"].as_str().unwrap_or_default();
    let uid = &deployment["metadata"]["uid"];
    let mut found = Vec::new();
    for object in session.list_all(&replica_sets, namespace, ListOptions::default()).await?.items {
        let controlled = object.meta().controller().is_some_and(|owner| *uid == *owner.uid);
        let revision = object.meta().annotation(REVISION).and_then(|r| r.parse().ok());
        if let (true, Some(revision)) = (controlled, revision) {
            found.push((revision, object.to_value()?));
        }
    }
    found.sort_by_key(|(revision, _)| *revision);
    Ok(found)
}

/// Runs `rollout history`.
pub async fn history(session: &Session, args: HistoryArgs) -> CliResult {
    let targets = target::targets(session, &args.resources, &args.files, false).await?;
    for Found { resource, object } in target::fetch(session, &targets, &args.selectors, false).await? {
        let revisions = revisions(session, &resource, &object.to_value()?).await?;
        let name = display(&resource, &object.meta().name);
        if args.revision > 0 {
            let found = revisions.iter().find(|(revision, _)| *revision == args.revision);
            let (_, replica_set) = found.ok_or_else(|| {
                usage(format!(
                    "unable to find the specified revision {}; {}",
                    args.revision,
                    known(&revisions)
                ))
            })?;
            let template = text_of_template(&template(replica_set))?;
            stdout::data(&format!("{name} with revision #{}\n{template}", args.revision))?;
            continue;
        }
        // kubectl leaves two blanks here, not three.
        let mut lines = vec![vec!["REVISION  CHANGE-CAUSE".to_owned()]];
        lines.extend(revisions.iter().map(|(revision, set)| {
            let cause = set["metadata"]["annotations"][CHANGE_CAUSE].as_str().unwrap_or("<none>");
            vec![format!("{revision:<10}{cause}")]
        }));
        stdout::data(&format!("{name} \n{}\n", table::layout(&lines, &mut Vec::new())))?;
    }
    Ok(())
}

fn known(revisions: &[(u64, Value)]) -> String {
    let numbers: Vec<String> = revisions.iter().map(|(revision, _)| revision.to_string()).collect();
    format!("there are: {}", numbers.join(", "))
}

/// The template a ReplicaSet keeps, as the Deployment would have it.
fn template(replica_set: &Value) -> Value {
    let mut template = replica_set["spec"]["template"].clone();
    if let Some(Value::Object(labels)) = template.pointer_mut("/metadata/labels") {
        labels.remove(TEMPLATE_HASH);
    }
    template
}

/// The patch that takes a Deployment back to the template of a ReplicaSet; `None` where it is there already.
fn undo_patch(deployment: &Value, replica_set: &Value) -> Option<Value> {
    let template = template(replica_set);
    if template == deployment["spec"]["template"] {
        return None;
    }
    let test = json!({"op": "test", "path": "/metadata/resourceVersion",
        "value": deployment["metadata"]["resourceVersion"]});
    let replace = json!({"op": "replace", "path": "/spec/template", "value": template});
    if deployment["spec"]["updateStrategy"].is_object() {
        // Its annotations are not kept with a revision.
        return Some(json!([test, replace]));
    }
    let empty = Map::new();
    let of = |object: &'_ Value| {
        object["metadata"]["annotations"].as_object().cloned().unwrap_or_else(|| empty.clone())
    };
    let ours = of(deployment);
    let mut annotations = of(replica_set);
    for key in REPLICA_SET_ANNOTATIONS {
        annotations.remove(key);
        if let Some(value) = ours.get(key) {
            annotations.insert(key.to_owned(), value.clone());
        }
    }
    Some(json!([
        test,
        replace,
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
    ]))
}

/// Runs `rollout undo`.
pub async fn undo(session: &Session, args: UndoArgs) -> CliResult {
    let targets = target::targets(session, &args.resources, &args.files, false).await?;
    for found in target::fetch(session, &targets, &SelectorArgs::default(), false).await? {
        undo_one(session, &args, &found).await?;
    }
    Ok(())
}

async fn undo_one(session: &Session, args: &UndoArgs, found: &Found) -> CliResult {
    let resource = &found.resource;
    let deployment = value_of(resource, &found.object)?;
    if deployment["spec"]["paused"] == true {
        let name = &found.object.meta().name;
        return Err(usage(format!(
            "you cannot rollback a paused deployment; resume it first with 'strata rollout resume deployment/{name}' and \
             try again"
        )));
    }
    let revisions = revisions(session, resource, &deployment).await?;
    let wanted = match args.to_revision {
        0 => revisions.len().checked_sub(2).and_then(|at| revisions.get(at)),
        number => revisions.iter().find(|(revision, _)| *revision == number),
    };
    let Some((revision, replica_set)) = wanted else {
        return Err(usage(match args.to_revision {
            0 => format!("no rollout history found for {} \"{}\"", resource.id, found.object.meta().name),
            number => format!("unable to find specified revision {number} in history; {}", known(&revisions)),
        }));
    };
    let Some(patch) = undo_patch(&deployment, replica_set) else {
        let done = format!("skipped rollback (current template already matches revision {revision})");
        return args.write.report(resource, &found.object, &done);
    };
    if args.write.client_only() {
        return args.write.report(resource, &found.object, "rolled back");
    }
    let options = args.write.options("strata-rollout");
    let written =
        session.client.patch(resource, &found.object.key(), "", &Patch::Json(patch), &options).await?;
    warn(&written.warnings);
    args.write.report(resource, &written.object, "rolled back")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undoing_takes_the_template_and_the_users_annotations() {
        let deployment = json!({"metadata": {"resourceVersion": "9", "annotations": {REVISION: "2", LAST_APPLIED: "{}", "note": "new"}},
            "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"n": 2}}}});
        let old = json!({"metadata": {"annotations": {REVISION: "1", "note": "old", "deployment.kubernetes.io/max-replicas": "4"}},
            "spec": {"template": {"metadata": {"labels": {"app": "web", TEMPLATE_HASH: "x"}}, "spec": {"n": 1}}}});
        let patch = undo_patch(&deployment, &old).unwrap();
        assert_eq!(patch[1]["value"], json!({"metadata": {"labels": {"app": "web"}}, "spec": {"n": 1}}));
        assert_eq!(patch[2]["value"], json!({REVISION: "2", LAST_APPLIED: "{}", "note": "old"}));
        let mut same = old.clone();
        same["spec"]["template"]["spec"]["n"] = json!(2);
        assert_eq!(undo_patch(&deployment, &same), None);
        let mut daemons = deployment;
        daemons["spec"]["updateStrategy"] = json!({"type": "RollingUpdate"});
        assert_eq!(undo_patch(&daemons, &old).unwrap().as_array().unwrap().len(), 2);
    }
}
