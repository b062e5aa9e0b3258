//! What people write, right and wrong.

use serde_json::json;

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

#[test]
fn files_directories_and_their_absence() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::create_dir(path("deep")).unwrap();
    std::fs::write(path("b.yaml"), "apiVersion: v1\nkind: B\n").unwrap();
    std::fs::write(path("a.json"), "{\"apiVersion\":\"v1\",\"kind\":\"A\"}").unwrap();
    std::fs::write(path("note.txt"), "not a manifest").unwrap();
    std::fs::write(path("deep/c.yml"), "apiVersion: v1\nkind: C\n").unwrap();
    let names = [dir.path().display().to_string()];
    let flat = load(&names, false).unwrap();
    assert_eq!(flat.iter().map(|d| &d.value["kind"]).collect::<Vec<_>>(), [&json!("A"), &json!("B")]);
    assert_eq!(load(&names, true).unwrap().len(), 3);
    let missing = load(&[path("none.yaml").display().to_string()], false).unwrap_err().to_string();
    assert!(missing.contains("none.yaml: no such file"), "{missing}");
    std::fs::write(path("empty.yaml"), "# nothing\n").unwrap();
    assert!(matches!(
        load(&[path("empty.yaml").display().to_string()], false),
        Err(ManifestError::Nothing(_))
    ));
    let url = load(&["https://x.example/a.yaml".to_owned()], false).unwrap_err().to_string();
    assert!(url.contains("curl"), "{url}");
}
