//! What is fuzzed: each parser of what clients send, as a function over bytes that must not panic, nor break its own
//! law. The fuzz targets call these, and the ordinary suite replays the kept corpus through them. Knows no fuzzer.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};
use strata_apiserver::custom::cel::rules::{Rules, VARIABLES};
use strata_apiserver::custom::structural::Structural;
use strata_apiserver::custom::{self, cel, schema_check};
use strata_apiserver::decode::{self, check, text};
use strata_apiserver::expression::budget::Budget;
use strata_apiserver::expression::program::{Expression, Prepared, Scope};
use strata_apiserver::managed::entries::Managed;
use strata_apiserver::managed::fields::FieldSet;
use strata_apiserver::patch::{json as json_patch, strategic};
use strata_apiserver::protobuf::decode::{self as protobuf, Expected};
use strata_apiserver::schema::registry;
use strata_model::field::FieldPath;
use strata_model::merge;
use strata_model::quantity::Quantity;
use strata_model::selector::{FieldSelector, Selector};

/// One target: its name, which is that of its corpus, and its entry.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("selectors", selectors),
    ("patches", patches),
    ("field_sets", field_sets),
    ("schemas", schemas),
    ("quantities", quantities),
    ("protobuf", protobuf),
    ("expressions", expressions),
    ("documents", documents),
];

/// Deeper than anything that a body could bring this far.
fn is_deep(value: &Value) -> bool {
    decode::depth_of(value) > decode::MAX_DEPTH
}

fn json_of(data: &[u8]) -> Option<Value> {
    text::json(data).ok().map(|document| document.value)
}

/// Label selectors, field selectors, and those in bodies.
pub fn selectors(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        if let Ok(selector) = Selector::parse(text) {
            selector.matches(&[("app".to_owned(), "web".to_owned())].into());
        }
        if let Ok(selector) = FieldSelector::parse(text) {
            selector.matches(|_| "");
        }
    }
    let body = json_of(data).and_then(|body| serde_json::from_value::<LabelSelector>(body).ok());
    if let Some(body) = body
        && let Ok(selector) = Selector::from_body(&body)
    {
        selector.matches(&[("app".to_owned(), "web".to_owned())].into());
    }
}

/// The three kinds of patches: an object, a line break, and the patch.
pub fn patches(data: &[u8]) {
    let Some(at) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (Some(object), Some(patch)) = (json_of(&data[..at]), json_of(&data[at..])) else { return };
    let mut merged = object.clone();
    merge::apply(&mut merged, &patch);
    let again = merge::diff(&object, &merged);
    if let Some(again) = again {
        let mut twice = object.clone();
        merge::apply(&mut twice, &again);
    }
    if let Some(definition) = registry::definition("", "v1", "Pod") {
        match strategic::apply(object.clone(), &patch, definition.node()) {
            Ok(patched) => assert!(patched.is_object()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if let Ok(patch) = json_patch::JsonPatch::parse(patch)
        && let Ok(patched) = patch.apply(object)
    {
        assert!(!is_deep(&patched), "a patch made an object too deep");
    }
}

/// Field sets as `managedFields` hold them, and whole lists of those.
pub fn field_sets(data: &[u8]) {
    let Some(value) = json_of(data) else { return };
    if let Ok(set) = FieldSet::parse(&value) {
        let shown = set.clone().into_value();
        assert_eq!(FieldSet::parse(&shown).as_ref(), Ok(&set), "a set changes when it is written and read");
        let (mut sum, mut rest) = (set.clone(), set.clone());
        sum.add(&set);
        assert_eq!(sum, set);
        rest.subtract(&set);
        assert!(rest.is_empty());
        set.paths();
    }
    let mut object = json!({"metadata": {"managedFields": value}});
    let managed = Managed::take(&mut object);
    managed.put(&mut object);
    Managed::wish(&mut object);
}

/// Schemas of custom types: an object, a line break, and the schema, which need not be one that is accepted.
pub fn schemas(data: &[u8]) {
    let Some(at) = data.iter().position(|byte| *byte == b'\n') else { return };
    let (Some(mut object), Some(schema)) = (json_of(&data[..at]), json_of(&data[at..])) else { return };
    let mut faults = Vec::new();
    schema_check::check(&schema, &FieldPath::new("schema"), &mut faults);
    if decode::depth_of(&schema) > schema_check::MAX_DEPTH {
        return;
    }
    let structural = Structural::read(&schema);
    custom::prune::prune(&structural, &mut object);
    custom::default::fill(&structural, &mut object);
    let mut faults = Vec::new();
    custom::validate::validate(&structural, &object, Some(&Value::Null), &mut faults);
    let rules = Rules::compile(&structural);
    cel::check::check(&structural, &rules, &object, Some(&object), &mut faults);
}

/// Quantities.
pub fn quantities(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    decode::scalar::quantity(text);
    let Ok(quantity) = text.parse::<Quantity>() else { return };
    let shown = quantity.to_string();
    let again: Result<Quantity, _> = shown.parse();
    assert_eq!(again.ok(), Some(quantity), "{text:?} is shown as {shown:?}");
    assert_eq!(quantity.plus(quantity).minus(quantity).milli().signum(), quantity.milli().signum());
    quantity.units();
}

/// Protobuf bodies: with their envelope, and bare ones of a type that the first byte chooses.
pub fn protobuf(data: &[u8]) {
    let types = [("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "DeleteOptions"), ("batch/v1", "CronJob")];
    let (api_version, kind) = types[usize::from(data.first().copied().unwrap_or(0)) % types.len()];
    for expected in [None, Some(Expected { api_version, kind })] {
        if let Ok(mut value) = protobuf::decode(data, expected) {
            assert!(!is_deep(&value), "a body is too deep");
            if let Some(definition) = registry::definition("", "v1", "Pod") {
                check::check(definition.node(), &mut value);
            }
        }
    }
}

/// CEL sources.
pub fn expressions(data: &[u8]) {
    let Ok(source) = std::str::from_utf8(data) else { return };
    let Ok(expression) = Expression::compile(source, &VARIABLES) else { return };
    let object = json!({"spec": {"size": 3, "names": ["a", "b"], "on": true, "part": {"x": 1.5}}});
    let scope = Prepared::new(&Scope::new().with("self", &object).with("oldSelf", &object));
    if let Err(error) = expression.evaluate(&scope, &mut Budget::default()) {
        assert!(!error.to_string().is_empty());
    }
    expression.members("self");
}

/// JSON and YAML bodies of a pod.
pub fn documents(data: &[u8]) {
    let yaml = std::str::from_utf8(data).ok().and_then(|text| text::yaml(text).ok());
    for document in [text::json(data).ok(), yaml].into_iter().flatten() {
        let mut value = document.value;
        assert!(!is_deep(&value), "a body is too deep");
        if let Some(definition) = registry::definition("", "v1", "Pod") {
            check::check(definition.node(), &mut value);
        }
    }
}
