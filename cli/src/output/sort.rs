//! `--sort-by`: the order of objects by what a path finds in them. Pure.

use std::cmp::Ordering;

use serde_json::Value;
use strata_model::quantity::Quantity;

use strata_model::jsonpath::{self, JsonPath, JsonPathError};

/// Sorts objects by the first value of a path; those without one come first. Equal ones keep their order.
pub fn by_path(objects: &mut [Value], path: &JsonPath) -> Result<(), JsonPathError> {
    let mut fault = None;
    objects.sort_by_cached_key(|object| match path.find(object) {
        Ok(found) => Key(found.first().map(|v| (*v).clone())),
        Err(error) => {
            fault = Some(error);
            Key(None)
        }
    });
    match fault {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

#[derive(PartialEq, Eq)]
struct Key(Option<Value>);

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Some(Value::String(a)), Some(Value::String(b))) => {
                match (a.parse::<Quantity>(), b.parse::<Quantity>()) {
                    (Ok(a), Ok(b)) => a.cmp(&b),
                    _ => a.cmp(b),
                }
            }
            (Some(a), Some(b)) => jsonpath::compare(a, b).unwrap_or(Ordering::Equal),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sorted(values: Vec<Value>) -> Vec<Value> {
        let mut objects: Vec<Value> = values.into_iter().map(|v| json!({ "v": v })).collect();
        by_path(&mut objects, &JsonPath::parse_relaxed("v").unwrap()).unwrap();
        objects.into_iter().map(|mut o| o["v"].take()).collect()
    }

    #[test]
    fn values_are_sorted_by_their_sort() {
        assert_eq!(sorted(vec![json!(10), json!(9)]), [json!(9), json!(10)]);
        assert_eq!(sorted(vec![json!("b"), json!("a")]), [json!("a"), json!("b")]);
        assert_eq!(sorted(vec![json!("1Gi"), json!("500Mi")]), [json!("500Mi"), json!("1Gi")]);
        let mut objects = vec![json!({"v": 1}), json!({})];
        by_path(&mut objects, &JsonPath::parse_relaxed("v").unwrap()).unwrap();
        assert_eq!(objects[0], json!({}));
    }
}
