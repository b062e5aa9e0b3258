//! Whose fields a write takes over: read from `managedFields` of the object as it is before the write. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Most fields and rivals that are named.
const MOST_NAMED: usize = 8;

/// Fields that a write changes although others had set them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contest {
    /// The others, by field manager.
    pub rivals: BTreeSet<String>,
    /// The fields, dotted.
    pub fields: BTreeSet<String>,
}

/// Which fields of `before` a merge patch by the manager `me` would take from others. `None`: of nobody.
pub fn contest(before: &Value, me: &str, patch: &Value) -> Option<Contest> {
    let mut contest = Contest::default();
    let managers = before["metadata"]["managedFields"].as_array()?;
    for entry in managers {
        let manager = entry["manager"].as_str().unwrap_or_default();
        if manager == me {
            continue;
        }
        let mut path = Vec::new();
        let found = contest.fields.len();
        taken(&entry["fieldsV1"], patch, before, &mut path, &mut contest.fields);
        if contest.fields.len() > found || taken_again(&entry["fieldsV1"], patch, before, &contest.fields) {
            contest.rivals.insert(manager.to_owned());
        }
        if contest.rivals.len() >= MOST_NAMED {
            break;
        }
    }
    (!contest.rivals.is_empty()).then_some(contest)
}

/// Whether an entry owns fields that were found before, with another owner.
fn taken_again(owned: &Value, patch: &Value, before: &Value, known: &BTreeSet<String>) -> bool {
    let (mut path, mut fields) = (Vec::new(), BTreeSet::new());
    taken(owned, patch, before, &mut path, &mut fields);
    fields.iter().any(|field| known.contains(field))
}

fn taken<'a>(
    owned: &Value,
    patch: &'a Value,
    before: &Value,
    path: &mut Vec<&'a str>,
    fields: &mut BTreeSet<String>,
) {
    let (Some(owned), Some(patch)) = (owned.as_object(), patch.as_object()) else { return };
    for (name, new) in patch {
        let Some(below) = owned.get(&format!("f:{name}")) else { continue };
        let old = &before[name.as_str()];
        path.push(name);
        if new.is_object() && old.is_object() {
            taken(below, new, old, path, fields);
        } else if new != old && is_leaf(below) && fields.len() < MOST_NAMED {
            fields.insert(path.join("."));
        }
        path.pop();
    }
}

/// Owned as a whole: lists by key have an owner for each element, and many writers by design.
fn is_leaf(below: &Value) -> bool {
    below.as_object().is_none_or(Map::is_empty)
}
