//! Files and directories, and their absence.

use serde_json::json;

use super::*;

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
