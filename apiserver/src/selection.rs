//! Which objects a list or watch is about: label and field selectors, decided on what is kept parsed of each object.

use strata_model::selector::{FieldSelector, Selector};
use strata_store::record::Record;

use crate::refusal::{Outcome, Refusal, bad_request};
use crate::storage;
use crate::types::catalogue::Served;
use crate::types::rules::Rules;
use crate::value::scalar;

/// One comparison of a field.
struct Comparison {
    what: What,
    value: String,
    equal: bool,
}

/// What is compared.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Name,
    Namespace,
    Field(usize),
    /// A selectable field of a custom type, by its place in the list of them.
    Custom(usize),
}

/// A selection of a type's objects.
pub struct Selection {
    rules: &'static Rules,
    /// Paths of the selectable fields of a custom type, where one is named.
    paths: Vec<Vec<String>>,
    labels: Selector,
    comparisons: Vec<Comparison>,
}

impl Selection {
    /// Reads selectors as a query has them.
    pub fn parse(served: &Served, labels: &str, fields: &str) -> Outcome<Self> {
        let labels = Selector::parse(labels).map_err(|error| bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(fields).map_err(|error| bad_request(error.to_string()))?;
        let comparisons = fields.requirements.into_iter().map(|requirement| {
            let what = match requirement.field.as_str() {
                "metadata.name" => What::Name,
                "metadata.namespace" => What::Namespace,
                field => find(served, field)?,
            };
            Ok(Comparison { what, value: requirement.value, equal: requirement.equal })
        });
        let comparisons = comparisons.collect::<Outcome<_>>()?;
        let paths = match &served.custom {
            Some(custom) => {
                let split = |path: &String| path.split('.').map(str::to_owned).collect();
                custom.version().selectable.iter().map(split).collect()
            }
            None => Vec::new(),
        };
        Ok(Self { rules: rules(served), paths, labels, comparisons })
    }

    /// Everything.
    pub fn everything(served: &Served) -> Self {
        let (paths, comparisons) = (Vec::new(), Vec::new());
        Self { rules: rules(served), paths, labels: Selector::everything(), comparisons }
    }

    /// Whether it is everything.
    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.comparisons.is_empty()
    }

    /// The one name that is selected, if the selection asks for one.
    pub fn single_name(&self) -> Option<&str> {
        let found = self.comparisons.iter().find(|c| c.equal && c.what == What::Name)?;
        Some(&found.value)
    }

    /// Whether a record's object is selected.
    pub fn matches(&self, record: &Record) -> bool {
        if self.is_everything() {
            return true;
        }
        let fits = |c: &Comparison| {
            let actual = match c.what {
                What::Name => storage::name_of(record),
                What::Namespace => storage::namespace_of(record),
                What::Field(at) => storage::head(record, self.rules).fields.get(at).map_or("", |f| f),
                // Below, after all that costs no parsing.
                What::Custom(_) => return true,
            };
            (actual == c.value) == c.equal
        };
        self.comparisons.iter().all(fits)
            && self.fits_custom(record)
            && (self.labels.is_everything() || self.labels.matches(&storage::head(record, self.rules).labels))
    }
}

impl Selection {
    /// Whether the selectable fields of a custom object are as asked.
    fn fits_custom(&self, record: &Record) -> bool {
        let asked = |c: &Comparison| match c.what {
            What::Custom(at) => Some((at, c.value.clone(), c.equal)),
            _ => None,
        };
        let asked: Vec<(usize, String, bool)> = self.comparisons.iter().filter_map(asked).collect();
        if asked.is_empty() {
            return true;
        }
        let object = storage::parse(record).unwrap_or_default();
        asked.iter().all(|(at, value, equal)| {
            let path = self.paths.get(*at).map_or(&[][..], Vec::as_slice);
            let found = path.iter().try_fold(&object, |value, part| value.get(part));
            (scalar(found) == *value) == *equal
        })
    }
}

/// The rules by which objects are stored: the heads of records follow them.
fn rules(served: &Served) -> &'static Rules {
    served.form.as_ref().map_or(served.rules, |form| form.stored.rules)
}

fn find(served: &Served, field: &str) -> Outcome<What> {
    if let Some(custom) = &served.custom {
        let fields = &custom.version().selectable;
        return match fields.iter().position(|own| own == field) {
            Some(at) => Ok(What::Custom(at)),
            None => Err(unknown(field, fields.iter().map(String::as_str))),
        };
    }
    let rules = rules(served);
    let renamed =
        served.form.as_ref().and_then(|f| f.conversion.fields.iter().find(|(own, _)| *own == field));
    let field = renamed.map_or(field, |(_, stored)| stored);
    rules.fields.iter().position(|f| f.name == field).map(What::Field).ok_or_else(|| {
        if rules.fields.is_empty() {
            let known = "only \"metadata.name\", \"metadata.namespace\"";
            bad_request(format!("\"{field}\" is not a known field selector: {known}"))
        } else {
            let known: Vec<&str> = rules.fields.iter().map(|f| f.name).collect();
            bad_request(format!(
                "field label not supported: {field}; known are metadata.name, metadata.namespace, {}",
                known.join(", ")
            ))
        }
    })
}

fn unknown<'a>(field: &str, own: impl Iterator<Item = &'a str>) -> Refusal {
    let known: Vec<String> =
        ["metadata.name", "metadata.namespace"].into_iter().chain(own).map(|f| format!("\"{f}\"")).collect();
    bad_request(format!("field label not supported: {field}; known are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use serde_json::json;
    use strata_model::resource::builtin;
    use strata_store::revision::Revision;

    use crate::types::pod::POD;

    #[test]
    fn selections_combine_labels_and_fields() {
        let served = Served { resource: builtin::POD.clone(), rules: &POD, form: None, custom: None };
        let object = json!({"metadata": {"labels": {"app": "web"}, "resourceVersion": "1"}, "status": {"phase": "Running"}});
        let bytes = Bytes::from(serde_json::to_vec(&object).unwrap());
        let key = storage::key(&builtin::POD.id, "n", "p");
        let record = Record::new(key, bytes, Revision::new(1), Revision::new(1));
        for (labels, fields, expected) in [
            ("", "", true),
            ("app=web", "status.phase=Running", true),
            ("app=db", "", false),
            ("", "metadata.name=p,metadata.namespace!=x", true),
            ("", "metadata.name=q", false),
            ("", "status.phase!=Running", false),
        ] {
            let selection = Selection::parse(&served, labels, fields).unwrap();
            assert_eq!(selection.matches(&record), expected, "{labels} {fields}");
        }
        let refusal = Selection::parse(&served, "", "spec.bad=1").err().unwrap();
        assert!(refusal.message.starts_with("field label not supported: spec.bad"), "{}", refusal.message);
    }
}
