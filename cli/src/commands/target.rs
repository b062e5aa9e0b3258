//! Which objects a command is about: `TYPE[,TYPE] [NAME…]`, `TYPE/NAME…`, selectors, or the objects of manifests. The
//! grammar is pure; resolving it asks the server for its types, fetching for the objects.

use std::sync::Arc;

use clap::Args;
use serde_json::Value;
use strata_client::manifest::Place;
use strata_client::options::ListOptions;
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;

use crate::commands::error::{CliResult, usage};
use crate::commands::session::Session;
use crate::manifest;

/// Manifests as the source of objects.
#[derive(Clone, Debug, Default, Args)]
pub struct FileArgs {
    /// Manifests that hold or name the objects: files, directories, or - for stdin
    #[arg(short = 'f', long = "filename", value_name = "FILE|DIR|-", value_delimiter = ',')]
    pub filenames: Vec<String>,

    /// Read the directories in directories too
    #[arg(short = 'R', long, requires = "filenames")]
    pub recursive: bool,
}

/// Selectors.
#[derive(Clone, Debug, Default, Args)]
pub struct SelectorArgs {
    /// Only objects whose labels match, such as app=web,tier!=test or 'tier in (a,b)'
    #[arg(short = 'l', long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub selector: String,

    /// Only objects whose fields match, such as status.phase=Running
    #[arg(long, value_name = "SELECTOR", default_value = "", hide_default_value = true)]
    pub field_selector: String,
}

impl SelectorArgs {
    /// Whether nothing is selected by.
    pub fn is_empty(&self) -> bool {
        self.selector.is_empty() && self.field_selector.is_empty()
    }

    /// The options of a list with these selectors.
    pub fn options(&self) -> ListOptions {
        ListOptions {
            label_selector: self.selector.clone(),
            field_selector: self.field_selector.clone(),
            ..ListOptions::default()
        }
    }
}

/// A type's word, and a name where one was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As the user typed it.
    pub resource: String,
    /// The object; `None` is all of the type.
    pub name: Option<String>,
}

/// Whether a word where a type is expected is a manifest's name: no type ends so, and an object is one level deep.
pub fn is_file(word: &str) -> bool {
    let ends = [".yaml", ".yml", ".json"].iter().any(|ending| word.ends_with(ending));
    ends && (word.starts_with('.') || word.matches('/').count() != 1)
}

/// Reads `TYPE[,TYPE] [NAME…]` or `TYPE/NAME…`.
pub fn words(arguments: &[String]) -> CliResult<Vec<Word>> {
    if let Some(file) = arguments.first().filter(|first| is_file(first)) {
        return Err(usage(format!("{file} names no object; if it is a manifest, write -f {file}")));
    }
    let slashed = arguments.iter().filter(|a| a.contains('/')).count();
    if slashed == 0 {
        let Some((types, names)) = arguments.split_first() else {
            return Err(usage(
                "You must specify the type of resource, such as `pods` (`strata api-resources` lists all types)",
            ));
        };
        let types = types.split(',').filter(|t| !t.is_empty());
        if names.is_empty() {
            return Ok(types.map(|t| Word { resource: t.to_owned(), name: None }).collect());
        }
        let all =
            types.flat_map(|t| names.iter().map(|n| Word { resource: t.to_owned(), name: Some(n.clone()) }));
        return Ok(all.collect());
    }
    if slashed < arguments.len() {
        return Err(usage(
            "there is no need to specify a resource type as a separate argument when passing arguments in \
             resource/name form (e.g. 'strata get resource/<resource_name>' instead of 'strata get resource \
             resource/<resource_name>')",
        ));
    }
    arguments.iter().map(|argument| {
        let (resource, name) = argument.split_once('/').unwrap_or((argument, ""));
        if resource.is_empty() || name.is_empty() || name.contains('/') {
            return Err(usage(format!(
                "arguments in resource/name form must have a single resource and name, such as pod/web-1: {argument:?}"
            )));
        }
        Ok(Word { resource: resource.to_owned(), name: Some(name.to_owned()) })
    }).collect()
}

/// Objects of one type: one by name, or all that the selectors match.
#[derive(Clone, Debug)]
pub struct Target {
    /// The type.
    pub resource: Arc<ResourceType>,
    /// Empty for all namespaces and cluster-scoped types.
    pub namespace: String,
    /// The name; `None` selects.
    pub name: Option<String>,
}

impl Target {
    /// The key of a named target.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(self.namespace.clone(), self.name.clone().unwrap_or_default())
    }
}

/// Resolves words; a category such as `all` stands for its types. Without names, types that cannot be listed are left
/// out of a category.
pub async fn resolve(session: &Session, words: &[Word], all_namespaces: bool) -> CliResult<Vec<Target>> {
    let mut targets = Vec::new();
    for word in words {
        if word.name.is_some() && all_namespaces {
            return Err(usage("a resource cannot be retrieved by name across all namespaces"));
        }
        let registry = session.registry().await?;
        let in_category =
            registry.types().iter().filter(|t| t.categories.iter().any(|c| *c == word.resource));
        let mut resources: Vec<Arc<ResourceType>> = in_category.cloned().collect();
        if resources.is_empty() {
            resources.push(session.lookup(&word.resource).await?);
        }
        targets.extend(resources.into_iter().map(|resource| Target {
            namespace: session.namespace_of(&resource, all_namespaces),
            resource,
            name: word.name.clone(),
        }));
    }
    Ok(targets)
}

/// An object of a manifest with its type and namespace.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its type.
    pub resource: Arc<ResourceType>,
    /// Where it belongs: what it says, else the namespace of the command.
    pub namespace: String,
    /// What was written, with the namespace filled in.
    pub value: Value,
    /// Where it was written.
    pub place: Place,
}

impl Declared {
    /// Its name, which may be empty where the server makes one.
    pub fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The target of its name.
    pub fn target(&self) -> Target {
        Target {
            resource: Arc::clone(&self.resource),
            namespace: self.namespace.clone(),
            name: Some(self.name().to_owned()),
        }
    }
}

/// The objects of manifests.
pub async fn declared(session: &Session, files: &FileArgs) -> CliResult<Vec<Declared>> {
    let mut all = Vec::new();
    for document in manifest::load(&files.filenames, files.recursive)? {
        let mut value = document.value;
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let place = document.place;
        let resource = session
            .type_of(&text("apiVersion"), &text("kind"))
            .await
            .map_err(|error| at_place(error, &place))?;
        let said = value["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        let wanted = session.namespace_of(&resource, false);
        if session.namespace_given && resource.is_namespaced() && !said.is_empty() && said != wanted {
            return Err(usage(format!(
                "{place}: the namespace from the provided object \"{said}\" does not match the namespace \"{wanted}\". \
                 You must pass '--namespace={said}' to perform this operation."
            )));
        }
        let namespace = if said.is_empty() { wanted } else { said };
        match value.get("metadata") {
            Some(Value::Object(_)) => {}
            None | Some(Value::Null) => value["metadata"] = Value::Object(Default::default()),
            Some(_) => {
                return Err(usage(format!(
                    "{place}: metadata must be a mapping, such as metadata: {{name: x}}"
                )));
            }
        }
        if resource.is_namespaced() {
            value["metadata"]["namespace"] = Value::String(namespace.clone());
        }
        all.push(Declared { resource, namespace, value, place });
    }
    Ok(all)
}

fn at_place(error: crate::commands::error::CliError, place: &Place) -> crate::commands::error::CliError {
    match error {
        crate::commands::error::CliError::Usage(text) => usage(format!("{place}: {text}")),
        other => other,
    }
}

/// Targets of words or of manifests, whichever was given.
pub async fn targets(
    session: &Session,
    words_given: &[String],
    files: &FileArgs,
    all: bool,
) -> CliResult<Vec<Target>> {
    match (words_given.is_empty(), files.filenames.is_empty()) {
        (false, false) => {
            Err(usage("when files are given with -f, resources may not be specified by arguments as well"))
        }
        (true, false) => {
            let declared = declared(session, files).await?;
            Ok(declared.iter().map(Declared::target).collect())
        }
        _ => resolve(session, &words(words_given)?, all).await,
    }
}

/// Objects with their types.
pub struct Found {
    /// The type.
    pub resource: Arc<ResourceType>,
    /// The object.
    pub object: Object,
}

/// The objects of targets. Selecting targets need `selectors` or `everything`, as commands that change objects must not
/// hit all by a missing name.
pub async fn fetch(
    session: &Session,
    targets: &[Target],
    selectors: &SelectorArgs,
    everything: bool,
) -> CliResult<Vec<Found>> {
    let mut found = Vec::new();
    for target in targets {
        let resource = &target.resource;
        let objects = match &target.name {
            Some(_) if !selectors.is_empty() => {
                return Err(usage("name cannot be provided when a selector is specified"));
            }
            Some(name) => vec![session.get(resource, &target.namespace, name).await?],
            None if selectors.is_empty() && !everything => {
                return Err(usage(format!(
                    "resource(s) were provided, but no name was specified: name one, such as {}/NAME, or select by -l",
                    resource.singular
                )));
            }
            None => session.list_all(resource, &target.namespace, selectors.options()).await?.items,
        };
        found.extend(objects.into_iter().map(|object| Found { resource: Arc::clone(resource), object }));
    }
    Ok(found)
}

/// `deployment.apps/web`: how messages name an object.
pub fn display(resource: &ResourceType, name: &str) -> String {
    match &*resource.id.group {
        "" => format!("{}/{name}", resource.singular),
        group => format!("{}.{group}/{name}", resource.singular),
    }
}

/// An object as a value that names its type, as items of lists do not.
pub fn value_of(resource: &ResourceType, object: &Object) -> CliResult<Value> {
    let mut value = object.to_value()?;
    if value["kind"].is_null() {
        value["kind"] = Value::String(resource.kind.to_string());
    }
    if value["apiVersion"].is_null() {
        value["apiVersion"] = Value::String(resource.api_version());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Vec<(String, Option<String>)>, String> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        words(&arguments)
            .map(|words| words.into_iter().map(|w| (w.resource, w.name)).collect())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn the_grammar_is_kubectls() {
        let one = |t: &str, n: &str| (t.to_owned(), Some(n.to_owned()));
        assert_eq!(parse(&["pods"]).unwrap(), [("pods".to_owned(), None)]);
        assert_eq!(parse(&["po,deploy"]).unwrap().len(), 2);
        assert_eq!(parse(&["pod", "a", "b"]).unwrap(), [one("pod", "a"), one("pod", "b")]);
        assert_eq!(parse(&["pod/a", "deploy/b"]).unwrap(), [one("pod", "a"), one("deploy", "b")]);
        assert!(parse(&["pod", "deploy/b"]).unwrap_err().contains("no need to specify"));
        assert!(parse(&[]).unwrap_err().contains("api-resources"));
        assert!(parse(&["pod/"]).unwrap_err().contains("resource/name form"));
        assert!(parse(&["pod/a/b"]).is_err());
    }
}
