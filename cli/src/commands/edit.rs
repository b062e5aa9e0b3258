//! `edit`: an object in the user's editor. What the server refuses comes back into the editor, with the reason on top.

use std::io::Write as _;
use std::path::Path;

use clap::Args;
use serde_json::Value;
use tokio::process::Command;

use crate::commands::error::{CliError, CliResult, usage};
use crate::commands::last_applied;
use crate::commands::printing::{WriteArgs, warn};
use crate::commands::session::Session;
use crate::commands::target::{self, FileArgs, Found, SelectorArgs, value_of};
use crate::manifest::ManifestError;
use crate::output::{format, stdout, yaml};

/// Help behind the flags.
pub const EXAMPLES: &str = "\
Examples:
  strata edit deployment/web
  EDITOR='code --wait' strata edit configmap settings

The editor is $KUBE_EDITOR, else $VISUAL, else $EDITOR, else vi. Saving nothing, or an empty file, changes nothing.";

const HEADER: &str = "\
# Please edit the object below. Lines beginning with a '#' will be ignored,
# and an empty file will abort the edit. If an error occurs while saving this file will be
# reopened with the relevant failures.
#
";

/// Arguments of `edit`.
#[derive(Debug, Args)]
pub struct EditArgs {
    /// TYPE NAME or TYPE/NAME
    #[arg(value_name = "TYPE NAME | TYPE/NAME")]
    resources: Vec<String>,
    #[command(flatten)]
    selectors: SelectorArgs,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// Runs the command.
pub async fn run(session: &Session, args: EditArgs) -> CliResult {
    let targets = target::targets(session, &args.resources, &args.files, false).await?;
    for found in target::fetch(session, &targets, &args.selectors, false).await? {
        edit(session, &args, &found).await?;
    }
    Ok(())
}

async fn edit(session: &Session, args: &EditArgs, found: &Found) -> CliResult {
    let mut original = value_of(&found.resource, &found.object)?;
    format::strip_managed_fields(&mut original);
    let original_text = yaml::to_string(&original);
    let mut file = tempfile::Builder::new().prefix("strata-edit-").suffix(".yaml").tempfile()?;
    let mut content = format!("{HEADER}{original_text}");
    let mut last_try: Option<String> = None;
    loop {
        write_file(file.path(), &content)?;
        file.as_file_mut().flush()?;
        open_editor(file.path()).await?;
        let edited = without_comments(&std::fs::read_to_string(file.path())?);
        let same_as_before = last_try.as_ref().is_some_and(|before| *before == edited);
        if edited.trim().is_empty() || edited == original_text || same_as_before {
            return cancelled(file, last_try.is_some());
        }
        let outcome = match parse(&edited, &original) {
            Ok(wanted) => send(session, args, found, &original, &wanted).await,
            Err(error) => Err(error),
        };
        let error = match outcome {
            Ok(()) => return Ok(()),
            Err(error @ CliError::Io(_)) => return Err(error),
            Err(error) => error,
        };
        content = format!("{HEADER}{}#\n{edited}", reasons(&error, &session.origin));
        last_try = Some(edited);
    }
}

/// Ends without a change; what was tried is kept where there was an error.
fn cancelled(file: tempfile::NamedTempFile, failed: bool) -> CliResult {
    if !failed {
        stdout::say("Edit cancelled, no changes made.");
        return Ok(());
    }
    let (_, path) = file.keep().map_err(|e| CliError::Io(e.error))?;
    stdout::say(&format!("A copy of your changes has been stored to \"{}\"", path.display()));
    Err(usage("Edit cancelled, no valid changes were saved."))
}

fn reasons(error: &CliError, origin: &str) -> String {
    error.lines(origin).iter().flat_map(|text| text.lines()).map(|line| format!("# {line}\n")).collect()
}

fn write_file(path: &Path, content: &str) -> CliResult {
    Ok(std::fs::write(path, content)?)
}

fn without_comments(text: &str) -> String {
    let kept = text.lines().skip_while(|line| line.starts_with('#') || line.trim().is_empty());
    kept.map(|line| format!("{line}\n")).collect()
}

/// Reads the edited object, which must still be the same one.
fn parse(text: &str, original: &Value) -> CliResult<Value> {
    let mut documents = strata_client::manifest::parse("your edit", text).map_err(ManifestError::from)?;
    if documents.len() != 1 {
        return Err(usage(format!("one object is expected, there are {}", documents.len())));
    }
    let value = documents.remove(0).value;
    let identity = |v: &Value| {
        [&v["apiVersion"], &v["kind"], &v["metadata"]["name"], &v["metadata"]["namespace"]].map(Value::clone)
    };
    match identity(&value) == identity(original) {
        true => Ok(value),
        false => {
            Err(usage("apiVersion, kind, name and namespace say which object this is, and cannot be edited"))
        }
    }
}

async fn send(
    session: &Session,
    args: &EditArgs,
    found: &Found,
    original: &Value,
    wanted: &Value,
) -> CliResult {
    let (resource, key) = (&found.resource, found.object.key());
    let Some(patch) = last_applied::patch(resource, Some(original), wanted, original) else {
        return args.write.report(resource, &found.object, "skipped");
    };
    let mut options = args.write.options("strata-edit");
    options.field_validation = strata_client::options::FieldValidation::Strict;
    let written = session.client.patch(resource, &key, "", &patch, &options).await?;
    warn(&written.warnings);
    args.write.report(resource, &written.object, "edited")
}

/// The connection is looked after meanwhile: a server that stops is not held up by an open editor.
async fn open_editor(path: &Path) -> CliResult {
    let named = ["KUBE_EDITOR", "VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    let editor = named.unwrap_or_else(|| "vi".to_owned());
    // An editor may come with flags of its own, so a shell takes the words apart.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(path)
        .status()
        .await
        .map_err(|e| usage(format!("unable to launch the editor {editor:?}: {e}; set EDITOR")))?;
    match status.success() {
        true => Ok(()),
        false => Err(usage(format!("there was a problem with the editor {editor:?} ({status}); set EDITOR"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_comments_on_top_are_left_out() {
        assert_eq!(without_comments("# a\n#\nk: 1\n# data\n"), "k: 1\n# data\n");
    }

    #[test]
    fn an_edit_stays_with_its_object() {
        let original = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let edited = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
        assert_eq!(parse(edited, &original).unwrap()["data"]["k"], "v");
        assert!(parse(&edited.replace("name: a", "name: b"), &original).is_err());
        let error = parse("a: [", &original).unwrap_err().lines("");
        assert!(error[0].starts_with("error: your edit:1"), "{error:?}");
    }
}
