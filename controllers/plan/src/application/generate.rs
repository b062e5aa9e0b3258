//! What an ApplicationSet makes: generators make sets of parameters, the template makes an Application of each. What a
//! generator must read of a repository is a question that somebody else answers; the same set is generated anew then.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use strata_model::merge;

use super::set::{Generator, GitGenerator, SetSpec};
use super::template::{self, Parameters};

/// Most Applications of one set.
pub const MOST: usize = 5000;

/// What must be read of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// The repository.
    pub repo_url: String,
    /// Branch, tag or commit.
    pub revision: String,
    /// Files are wanted, with what they hold; else folders.
    pub files: bool,
    /// Globs of what is wanted.
    pub include: Vec<String>,
    /// Globs of what is not.
    pub exclude: Vec<String>,
}

/// What is read: by path, with the parameters that a file holds.
pub type Found = BTreeMap<String, Value>;

/// What is known of the answers.
pub type Answers = BTreeMap<Question, Result<Found, String>>;

/// Why nothing is generated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// These must be answered first.
    #[error("waits for the repository to be read")]
    Unanswered(Vec<Question>),
    /// It makes no sense: what, and what would.
    #[error("{0}")]
    Invalid(String),
}

fn invalid<T>(why: impl Into<String>) -> Result<T, GenerateError> {
    Err(GenerateError::Invalid(why.into()))
}

/// All Applications of a set, by name: metadata and spec.
pub fn generate(spec: &SetSpec, answers: &Answers) -> Result<BTreeMap<String, Value>, GenerateError> {
    let mut apps = BTreeMap::new();
    for generator in &spec.generators {
        for (parameters, over) in sets(generator, spec.go_template, answers, &Parameters::new())? {
            let mut template = spec.template.clone();
            if !over.is_null() {
                merge::apply(&mut template, &over);
            }
            let app =
                template::render(&template, &parameters, spec.go_template).map_err(GenerateError::Invalid)?;
            let name = app["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if name.is_empty() {
                return invalid("spec.template.metadata.name is empty for one of the sets of parameters");
            }
            if apps.insert(name.clone(), app).is_some() {
                return invalid(format!(
                    "two sets of parameters make an Application {name}; use a parameter in spec.template.metadata.name"
                ));
            }
            if apps.len() > MOST {
                return invalid(format!("more than {MOST} Applications would be made"));
            }
        }
    }
    Ok(apps)
}

/// Sets of parameters, each with what is laid over the template.
type Sets = Vec<(Parameters, Value)>;

fn sets(
    generator: &Generator,
    go: bool,
    answers: &Answers,
    known: &Parameters,
) -> Result<Sets, GenerateError> {
    if let Some(unknown) = generator.other.keys().next() {
        return invalid(format!("the generator {unknown} is not supported; there are list, git and matrix"));
    }
    match (&generator.list, &generator.git, &generator.matrix) {
        (Some(list), None, None) => {
            let sets = list.elements.iter().map(|e| (parameters(e, go), list.template.clone()));
            Ok(sets.collect())
        }
        (None, Some(git), None) => self::git(git, go, answers, known),
        (None, None, Some(matrix)) => {
            let [first, second] = matrix.generators.as_slice() else {
                return invalid("a matrix has exactly two generators");
            };
            if first.matrix.is_some() && second.matrix.is_some() {
                return invalid("only one of the generators of a matrix may be a matrix itself");
            }
            let mut all = Vec::new();
            for (one, _) in sets(first, go, answers, known)? {
                let mut known = known.clone();
                merge_into(&mut known, &one);
                for (mut other, _) in sets(second, go, answers, &known)? {
                    let mut both = one.clone();
                    merge_into(&mut both, &std::mem::take(&mut other));
                    all.push((both, matrix.template.clone()));
                }
            }
            Ok(all)
        }
        _ => invalid("each generator is exactly one of list, git and matrix"),
    }
}

fn merge_into(target: &mut Parameters, other: &Parameters) {
    for (name, value) in other {
        match target.get_mut(name) {
            Some(there) if there.is_object() && value.is_object() => merge::apply(there, value),
            _ => drop(target.insert(name.clone(), value.clone())),
        }
    }
}

/// The parameters of an element: as they are for Go templates, else flat with dots in their names.
fn parameters(element: &Value, go: bool) -> Parameters {
    if go {
        return element.as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
    }
    let mut flat = Parameters::new();
    flatten(element, "", &mut flat);
    flat
}

fn flatten(value: &Value, name: &str, into: &mut Parameters) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(k, v)| flatten(v, &below(k), into)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, v)| flatten(v, &below(&at.to_string()), into))
        }
        Value::Null => {}
        other => drop(into.insert(name.to_owned(), other.clone())),
    }
}

fn git(git: &GitGenerator, go: bool, answers: &Answers, known: &Parameters) -> Result<Sets, GenerateError> {
    let text = |text: &str| template::text(text, known, go, true).map_err(GenerateError::Invalid);
    let mut question = Question {
        repo_url: text(&git.repo_url)?,
        revision: text(&git.revision)?,
        files: !git.files.is_empty(),
        include: Vec::new(),
        exclude: Vec::new(),
    };
    let globs = git.directories.iter().map(|d| (&d.path, d.exclude));
    for (glob, exclude) in globs.chain(git.files.iter().map(|f| (&f.path, f.exclude))) {
        let list = if exclude { &mut question.exclude } else { &mut question.include };
        list.push(text(glob)?);
    }
    if git.directories.is_empty() == git.files.is_empty() {
        return invalid("a git generator has either directories or files");
    }
    let found = match answers.get(&question) {
        None => return Err(GenerateError::Unanswered(vec![question])),
        Some(Err(why)) => return invalid(why.clone()),
        Some(Ok(found)) => found,
    };
    let mut sets = Vec::new();
    for (path, content) in found {
        let held: Vec<Value> = match content {
            Value::Array(items) => items.clone(),
            Value::Null => vec![json!({})],
            one => vec![one.clone()],
        };
        for element in held {
            let mut made = parameters(&element, go);
            place(path, question.files, go, &git.path_param_prefix, &mut made);
            for (name, value) in &git.values {
                let value = template::text(value, &made, go, false).map_err(GenerateError::Invalid)?;
                match go {
                    true => merge_into(
                        &mut made,
                        &Parameters::from([("values".to_owned(), json!({name.as_str(): value}))]),
                    ),
                    false => drop(made.insert(format!("values.{name}"), json!(value))),
                }
            }
            sets.push((made, git.template.clone()));
        }
    }
    Ok(sets)
}

/// The parameters that a path makes.
fn place(path: &str, is_file: bool, go: bool, prefix: &str, into: &mut Parameters) {
    let (folder, file) = match path.rsplit_once('/') {
        Some((folder, file)) if is_file => (folder, file),
        None if is_file => ("", path),
        _ => (path, ""),
    };
    let base = folder.rsplit('/').next().unwrap_or_default();
    let segments: Vec<&str> = folder.split('/').filter(|s| !s.is_empty()).collect();
    let mut fields = Map::new();
    fields.insert("basename".to_owned(), json!(base));
    fields.insert("basenameNormalized".to_owned(), json!(normalized(base)));
    if is_file {
        fields.insert("filename".to_owned(), json!(file));
        fields.insert("filenameNormalized".to_owned(), json!(normalized(file)));
    }
    if go {
        fields.insert("path".to_owned(), json!(folder));
        fields.insert("segments".to_owned(), json!(segments));
        let made = json!({"path": fields});
        let made = if prefix.is_empty() { made } else { json!({prefix: made}) };
        merge_into(into, &parameters(&made, true));
        return;
    }
    let root = if prefix.is_empty() { "path".to_owned() } else { format!("{prefix}.path") };
    into.insert(root.clone(), json!(folder));
    for (name, value) in fields {
        into.insert(format!("{root}.{name}"), value);
    }
    for (at, segment) in segments.iter().enumerate() {
        into.insert(format!("{root}[{at}]"), json!(segment));
    }
}

/// A name as Kubernetes takes it.
fn normalized(name: &str) -> String {
    let lower = name.to_lowercase();
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '-' };
    lower.chars().map(fits).collect::<String>().trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(value: Value) -> SetSpec {
        serde_json::from_value(value).unwrap()
    }

    fn template() -> Value {
        json!({"metadata": {"name": "{{name}}-{{path.basename}}"}, "spec": {"source": {"path": "{{path}}"},
            "destination": {"namespace": "{{ name }}"}}})
    }

    #[test]
    fn a_matrix_of_names_and_folders_makes_an_application_of_each_pair() {
        let list = json!({"list": {"elements": [{"name": "a"}, {"name": "b", "more": {"x": 1}}]}});
        let git = json!({"git": {"repoURL": "u", "revision": "HEAD", "directories": [{"path": "apps/*"},
            {"path": "apps/old", "exclude": true}]}});
        let set =
            spec(json!({"generators": [{"matrix": {"generators": [list, git]}}], "template": template()}));
        let asked = generate(&set, &Answers::new()).unwrap_err();
        let GenerateError::Unanswered(questions) = asked else { panic!("{asked}") };
        assert_eq!(
            (questions[0].include.as_slice(), questions[0].exclude.as_slice()),
            (&["apps/*".to_owned()][..], &["apps/old".to_owned()][..])
        );
        let found = Found::from([("apps/web".to_owned(), Value::Null), ("apps/db".to_owned(), Value::Null)]);
        let answers = Answers::from([(questions[0].clone(), Ok(found))]);
        let apps = generate(&set, &answers).unwrap();
        assert_eq!(apps.keys().collect::<Vec<_>>(), ["a-db", "a-web", "b-db", "b-web"]);
        assert_eq!(apps["b-web"]["spec"]["source"]["path"], "apps/web");
    }

    #[test]
    fn files_hold_parameters_for_templates_of_go_too() {
        let git = json!({"git": {"repoURL": "u", "revision": "HEAD", "files": [{"path": "**/config.json"}],
            "values": {"full": "{{ .path.basename }}.{{ .cluster.name }}"}}});
        let template = json!({"metadata": {"name": "{{ .cluster.name }}-{{index .path.segments 1}}"},
            "spec": {"project": "{{.values.full}}"}});
        let set = spec(json!({"goTemplate": true, "generators": [git], "template": template}));
        let GenerateError::Unanswered(questions) = generate(&set, &Answers::new()).unwrap_err() else {
            panic!()
        };
        let found = Found::from([("envs/prod/config.json".to_owned(), json!({"cluster": {"name": "one"}}))]);
        let apps = generate(&set, &Answers::from([(questions[0].clone(), Ok(found))])).unwrap();
        assert_eq!(apps["one-prod"]["spec"]["project"], "prod.one");
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let list = json!({"list": {"elements": [{"name": "a"}, {"name": "a"}]}});
        let named = json!({"metadata": {"name": "{{name}}"}, "spec": {}});
        let twice = generate(&spec(json!({"generators": [list], "template": named})), &Answers::new());
        assert!(twice.unwrap_err().to_string().contains("two sets of parameters"));
        let novel = spec(json!({"generators": [{"clusters": {}}], "template": named}));
        assert!(generate(&novel, &Answers::new()).unwrap_err().to_string().contains("clusters"));
    }
}
