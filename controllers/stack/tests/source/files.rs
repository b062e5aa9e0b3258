//! Plain directories from a repository on disk.

use std::sync::Arc;

use strata_plan::application::rendered::{Fault, SourceType};
use strata_plan::application::spec::{Directory, Source};
use strata_stack::application::source::cache::Newness;
use strata_stack::application::source::listing;

use crate::repository::{Reader, Repository, config_map, names, source};

fn with(directory: Directory, mut one: Source) -> Source {
    one.directory = Some(directory);
    one
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_know_the_file_and_line_they_are_from() {
    let repository = Repository::new();
    repository.write("app/a.yaml", format!("# first\n{}---\n{}", config_map("a1"), config_map("a2")));
    repository.write("app/b.json", r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"b"}}"#);
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: c1}}\n- {apiVersion: v1, kind: Secret, metadata: {name: c2}}\n";
    repository.write("app/c.yml", list);
    repository.write("app/d.yaml", format!("# +argocd:skip-file-rendering\n{}", config_map("d")));
    repository.write("app/README.md", "# none");
    repository.write("app/deep/e.yaml", config_map("e"));
    let commit = repository.commit();
    let rendered = Reader::new().one(source(repository.url(), "app")).await.unwrap();
    assert_eq!(rendered.revision, commit);
    assert_eq!(rendered.source_type, SourceType::Directory);
    assert_eq!(names(&rendered), ["a1", "a2", "b", "c1", "c2"]);
    let places: Vec<_> = rendered.manifests.iter().map(|m| (m.file.to_string(), m.line)).collect();
    assert_eq!(places[..3], [("app/a.yaml".into(), 2), ("app/a.yaml".into(), 7), ("app/b.json".into(), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_below_and_globs_are_as_asked_for() {
    let repository = Repository::new();
    for path in ["a.yaml", "deep/b.yaml", "deep/er/c.yaml", "deep/er/config.json.yaml", "skip/d.yaml"] {
        let name = path.replace('/', "-").replace(".yaml", "").replace('.', "-");
        repository.write(path, config_map(&name));
    }
    repository.commit();
    let reader = Reader::new();
    let render = |recurse, include: &str, exclude: &str| {
        let directory =
            Directory { recurse, include: include.into(), exclude: exclude.into(), ..Directory::default() };
        reader.one(with(directory, source(repository.url(), ".")))
    };
    assert_eq!(names(&render(false, "", "").await.unwrap()), ["a"]);
    assert_eq!(names(&render(true, "", "").await.unwrap()).len(), 5);
    assert_eq!(names(&render(true, "", "{skip/*,deep/er/*}").await.unwrap()), ["a", "deep-b"]);
    assert_eq!(names(&render(true, "*/c.yaml", "").await.unwrap()), ["deep-er-c"]);
    let error = render(true, "{a", "").await.unwrap_err();
    assert_eq!(error.fault, Fault::Settings);
    assert!(error.message.contains("directory.include"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_elsewhere_renders_nothing() {
    let repository = Repository::new();
    repository.write("shared/base.yaml", config_map("shared"));
    repository.write("a/a.yaml", config_map("a"));
    repository.link("a/shared.yaml", "../shared/base.yaml");
    repository.commit();
    let reader = Reader::new();
    let first = reader.one(source(repository.url(), "a")).await.unwrap();
    repository.write("b/b.yaml", config_map("b"));
    let commit = repository.commit();
    let second = reader.one(source(repository.url(), "a")).await.unwrap();
    assert_eq!(second.revision, commit);
    assert_eq!(first.key, second.key);
    assert!(Arc::ptr_eq(&first.manifests, &second.manifests), "was rendered again");
    // What a link leads to was read as well.
    repository.write("shared/base.yaml", config_map("changed"));
    repository.commit();
    let third = reader.one(source(repository.url(), "a")).await.unwrap();
    assert_ne!(second.key, third.key);
    assert_eq!(names(&third), ["a", "changed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_of_all_kinds_are_found() {
    let repository = Repository::new();
    let mut commits = Vec::new();
    for tag in ["v1.0.0", "v1.1.0", "v2.0.0"] {
        repository.write("a.yaml", config_map(&tag.replace('.', "-")));
        commits.push(repository.commit());
        repository.git(&["tag", "--annotate", "--message", tag, tag]);
    }
    repository.git(&["branch", "feature/x", &commits[0]]);
    let reader = Reader::new();
    for (target, at) in [
        ("", 2),
        ("HEAD", 2),
        ("main", 2),
        ("feature/x", 0),
        ("v1.1.0", 1),
        ("1.x", 1),
        (&commits[1], 1),
        (&commits[1][..9], 1),
    ] {
        let mut one = source(repository.url(), "");
        one.target_revision = target.to_owned();
        assert_eq!(reader.one(one).await.unwrap().revision, commits[at], "{target}");
    }
    for target in ["gone", &"0".repeat(40), "0000000", "3.x"] {
        let mut one = source(repository.url(), "");
        one.target_revision = target.to_owned();
        let error = reader.fault(one).await;
        assert_eq!(error.fault, Fault::Missing, "{target}: {error}");
        assert!(error.message.contains(&target[..3]), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_history_and_a_deleted_branch_are_said_and_pass() {
    let repository = Repository::new();
    repository.write("a.yaml", config_map("a"));
    repository.commit();
    repository.git(&["branch", "side"]);
    let reader = Reader::new();
    let mut side = source(repository.url(), "");
    side.target_revision = "side".into();
    reader.one(side.clone()).await.unwrap();
    repository.git(&["branch", "-D", "side"]);
    let error = reader.fault(side).await;
    assert!(error.fault == Fault::Missing && error.message.contains("\"side\""), "{error}");
    assert!(error.message.contains("main"), "it says what there is: {error}");
    repository.write("a.yaml", config_map("b"));
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "--amend", "--message", "rewritten"]);
    let rendered = reader.one(source(repository.url(), "")).await.unwrap();
    assert_eq!(names(&rendered), ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_listed_with_the_files_that_were_chosen() {
    let repository = Repository::new();
    repository.write("apps/a/config.json", "{}");
    repository.write("apps/b/config.json", "[]");
    repository.write("apps/b/other.json", "1");
    let commit = repository.commit();
    let reader = Reader::new();
    let url = repository.url();
    let chosen = |path: &str| path.ends_with("/config.json");
    let repositories = reader.sources.repositories();
    let listing =
        listing::list(repositories, (&url, "main"), &reader.access, Newness::now(), chosen).await.unwrap();
    assert_eq!(listing.revision, commit);
    assert_eq!(listing.folders, ["apps", "apps/a", "apps/b"]);
    let files =
        [("apps/a/config.json".to_owned(), "{}".to_owned()), ("apps/b/config.json".into(), "[]".into())];
    assert_eq!(listing.files, files);
}
