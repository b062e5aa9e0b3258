//! What people write, right and wrong.

use super::*;

fn kinds(text: &str) -> Vec<(String, u64)> {
    let documents = parse("f.yaml", text).unwrap();
    let kind = |d: &Document| (d.value["kind"].as_str().unwrap().to_owned(), d.place.line);
    documents.iter().map(kind).collect()
}

#[test]
fn documents_are_told_apart_with_their_lines() {
    let text = "# first\napiVersion: v1\nkind: A\n---\n\n---\napiVersion: v1\nkind: B\n--- # third\napiVersion: v1\nkind: C\n...\n";
    assert_eq!(kinds(text), [("A".into(), 2), ("B".into(), 7), ("C".into(), 10)]);
    assert_eq!(
        kinds("{\"apiVersion\":\"v1\",\"kind\":\"A\"}\n{\"apiVersion\":\"v1\",\"kind\":\"B\"}").len(),
        2
    );
    assert!(kinds("").is_empty());
    assert!(kinds("---\n# nothing\n---\n").is_empty());
}

#[test]
fn lists_are_taken_apart() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: A\n- apiVersion: v1\n  kind: ConfigMapList\n  items:\n  - apiVersion: v1\n    kind: B\n";
    assert_eq!(kinds(text), [("A".into(), 1), ("B".into(), 1)]);
}

#[test]
fn faults_name_their_place() {
    for (text, place) in [
        ("apiVersion: v1\nkind: A\nmetadata:\n  name: x\n bad: y\n", "f.yaml:5:"),
        ("apiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: B\nx: [1, 2\n", "f.yaml:"),
        ("apiVersion: v1\nkind: A\nkind: B\n", "f.yaml:3:"),
        ("apiVersion: v1\nkind: A\nmetadata:\n\tname: x\n", "f.yaml:4:"),
        ("{\n  \"apiVersion\": \"v1\",\n  \"kind\" \"A\"\n}", "f.yaml:3:"),
        ("apiVersion: v1\n---\nkind: A\n", "f.yaml:1: kind is not set"),
        ("\n\njust text\n", "f.yaml:3: this is no object"),
        ("- 1\n- 2\n", "f.yaml:1: this is no object"),
    ] {
        let error = parse("f.yaml", text).unwrap_err().to_string();
        assert!(error.starts_with(place), "{text:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let tab = parse("f.yaml", "apiVersion: v1\nkind: A\nmetadata:\n\tname: x\n").unwrap_err().to_string();
    assert!(tab.contains("tab"), "{tab}");
}
