//! Repositories that nobody should have: each is a fault in words that names the file, and none is more than that.

use std::fmt::Write as _;

use proptest::prelude::*;
use strata_plan::application::rendered::Fault;
use strata_plan::application::spec::Directory;

use crate::repository::{Reader, Repository, config_map, source};

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_names_its_file() {
    let repository = Repository::new();
    let mut cases = Vec::new();
    let mut case = |folder: &'static str, file: &str, content: &[u8], fault, says: &'static str| {
        repository.write(&format!("{folder}/{file}"), content);
        cases.push((folder, fault, says));
    };
    case(
        "yaml",
        "a.yaml",
        b"apiVersion: v1\nkind: A\nmetadata:\n  name: x\n bad: y\n",
        Fault::Broken,
        "yaml/a.yaml:5",
    );
    case("tab", "a.yaml", b"apiVersion: v1\nkind: A\nmetadata:\n\tname: x\n", Fault::Broken, "spaces");
    case("json", "a.json", b"{\n\"apiVersion\" 1}", Fault::Broken, "json/a.json:2");
    case("list", "a.yaml", b"- 1\n- 2\n", Fault::Broken, "list/a.yaml:1: this is no object");
    case("kindless", "a.yaml", b"apiVersion: v1\n", Fault::Broken, "kind is not set");
    case(
        "nameless",
        "a.yaml",
        b"apiVersion: v1\nkind: A\n",
        Fault::Broken,
        "nameless/a.yaml:1: metadata.name",
    );
    case("binary", "a.yaml", b"a: b\n\xff\xfe", Fault::Broken, "binary/a.yaml:2: is not text");
    case("bomb", "a.yaml", bomb().as_bytes(), Fault::Broken, "bomb/a.yaml:");
    case("deep", "a.yaml", "[".repeat(100_000).as_bytes(), Fault::Broken, "deep/a.yaml:");
    case("deepjson", "a.json", "{\"a\":".repeat(100_000).as_bytes(), Fault::Broken, "deepjson/a.json:");
    case("huge", "a.yaml", &vec![b'#'; 11 << 20], Fault::Broken, "huge/a.yaml: has 11534336 bytes");
    let twice = format!("{}---\n{}", config_map("x"), config_map("x"));
    case(
        "twice",
        "a.yaml",
        twice.as_bytes(),
        Fault::Broken,
        "twice/a.yaml:6: ConfigMap x is there already, from twice/a.yaml:1",
    );
    let many: String = (0..20_001).fold(String::new(), |mut all, n| {
        write!(all, "{{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{{\"name\":\"n{n}\"}}}}").unwrap();
        all
    });
    case("many", "a.json", many.as_bytes(), Fault::Broken, "20000");
    for (folder, link, target, says) in [
        ("escape", "a.yaml", "../../../../etc/passwd", "escape/a.yaml: leads out of the repository"),
        ("absolute", "a.yaml", "/etc/passwd", "out of the repository, to /etc/passwd"),
        ("circle", "a.yaml", "b.yaml", "in a circle"),
        ("self", "a.yaml", "a.yaml", "in a circle"),
        ("nowhere", "a.yaml", "none.yaml", "nowhere/a.yaml: is a symbolic link to nothing"),
    ] {
        repository.link(&format!("{folder}/{link}"), target);
        cases.push((folder, Fault::Broken, says));
    }
    repository.link("circle/b.yaml", "a.yaml");
    repository.link("out", "../..");
    cases.push(("out", Fault::Broken, "leads out"));
    cases.push(("absent", Fault::Missing, "no folder absent"));
    cases.push(("yaml/a.yaml", Fault::Missing, "is no folder"));
    cases.push(("../x", Fault::Broken, "leads out"));
    repository.commit();
    let reader = Reader::new();
    for (folder, fault, says) in cases {
        let error = reader.fault(source(repository.url(), folder)).await;
        assert_eq!(error.fault, fault, "{folder}: {error}");
        assert!(error.message.contains(says), "{folder}: {error}");
        assert!(error.message.len() < 1000, "{folder}: {}", error.message.len());
    }
}

/// Nine lists of nine, each of the one before.
fn bomb() -> String {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..10 {
        let list = vec![format!("*a{}", level - 1); 9].join(",");
        writeln!(text, "a{level}: &a{level} [{list}]").unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_repository_is_said() {
    let reader = Reader::new();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let error = reader.fault(source(url, "")).await;
    assert!(error.fault == Fault::Missing && error.message.contains("not a git repository"), "{error}");
    let error = reader.fault(source("file:///does/not/exist", "")).await;
    assert!(error.fault == Fault::Missing && error.message.contains("no such folder"), "{error}");
    let empty = Repository::new();
    let error = reader.fault(source(empty.url(), "")).await;
    assert!(error.fault == Fault::Missing && error.message.contains("no commits"), "{error}");
    let mut both = source(empty.url(), "");
    both.directory = Some(Directory::default());
    both.helm = Some(Default::default());
    assert_eq!(reader.fault(both).await.fault, Fault::Settings);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_objects_are_rendered() {
    let repository = Repository::new();
    for file in 0..50 {
        let text: String =
            (0..100).map(|n| format!("---\n{}", config_map(&format!("n{file}-{n}")))).collect();
        repository.write(&format!("a/{file}.yaml"), text);
    }
    repository.commit();
    let rendered = Reader::new().one(source(repository.url(), "a")).await.unwrap();
    assert_eq!(rendered.manifests.len(), 5000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn no_file_is_more_than_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in "[ \\-{}\\[\\]:&*!|>a-z0-9\n\t\"'#%@]{0,300}", link in "[./a-z]{1,40}") {
        let repository = Repository::new();
        repository.write("bytes/a.yaml", &bytes);
        repository.write("text/a.yaml", &text);
        repository.write("text/b.json", &text);
        if !link.contains('\0') {
            repository.link("link/a.yaml", &link);
        }
        repository.commit();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let reader = Reader::new();
            for folder in ["bytes", "text", "link"] {
                if let Err(error) = reader.one(source(repository.url(), folder)).await {
                    assert!(!error.message.contains("within Strata"), "{folder}: {error}");
                    assert!(error.message.contains(folder), "{folder}: {error}");
                }
            }
        });
    }
}
