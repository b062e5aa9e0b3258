//! An operator's day with `strata store`: measure, back up and compact under a running platform, check, lose the data,
//! restore, go on; and what the commands say where something is wrong.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use strata_tests::platform::{Platform, Said};
use strata_tests::tools;

fn store(platform: &Platform, words: &[&str]) -> Said {
    platform.strata(&[&["store"], words].concat())
}

/// The same without a server.
fn offline(words: &[&str]) -> (Option<i32>, String) {
    let said = Command::new(tools::strata()).arg("store").args(words).output().unwrap();
    let text = [said.stdout, said.stderr].concat();
    (said.status.code(), String::from_utf8(text).unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn data_is_backed_up_lost_and_restored() {
    let platform = Platform::start(&["--runtime", "simulated"]);
    let home = tempfile::tempdir().unwrap();
    let backup = home.path().join("monday.strata");
    platform.strata(&["create", "configmap", "kept", "--from-literal=word=strawberry"]).ok();
    let stats: Value = serde_json::from_str(&store(&platform, &["stats", "-o", "json"]).ok()).unwrap();
    assert!(stats["keys"].as_u64() > Some(5) && stats["watches"].as_u64() > Some(5), "{stats}");
    assert!(stats["amplification"].as_f64() > Some(0.0), "{stats}");
    store(&platform, &["backup", "-o", text(&backup)]).ok();
    assert!(store(&platform, &["compact", "--older-than", "1s"]).ok().contains("history is kept from"));

    // Nobody else touches what a server uses, and nothing is restored over it.
    let data = platform.data_dir().to_owned();
    for words in [&["verify", text(&data)][..], &["stats", "--store", text(&data)]] {
        let (code, said) = offline(words);
        assert!(code == Some(1) && said.contains("in use"), "{said}");
    }
    let (code, said) = offline(&["restore", text(&backup), "--to", text(&data.join("store"))]);
    assert!(code == Some(1) && said.contains("is not empty"), "{said}");

    // The data is damaged, and lost.
    let dir = platform.stop();
    let (code, said) = offline(&["verify", text(dir.path())]);
    assert!(code == Some(0) && said.contains("the store is whole"), "{said}");
    let log = dir.path().join("store/0000000000000001.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(10).position(|window| window == b"strawberry").unwrap();
    bytes[at] ^= 1;
    fs::write(&log, bytes).unwrap();
    let (code, said) = offline(&["verify", text(dir.path())]);
    assert!(
        code == Some(1) && said.contains("is flipped, in key /configmaps/default/kept at revision"),
        "{said}"
    );
    let (code, said) = offline(&["verify", text(&backup)]);
    assert!(code == Some(0) && said.contains("the backup is whole"), "{said}");
    fs::remove_dir_all(dir.path().join("store")).unwrap();
    offline(&["restore", text(&backup), "--to", text(&dir.path().join("store"))]);

    let platform = Platform::start_in(dir, &["--runtime", "simulated"]);
    let word = platform.strata(&["get", "configmap", "kept", "-o", "jsonpath={.data.word}"]).ok();
    assert_eq!(word.trim(), "strawberry");
    platform.stop();
}

#[test]
fn a_backup_that_is_none_is_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let (file, place) = (home.path().join("file"), home.path().join("new/store"));
    fs::write(&file, "kind: List\n").unwrap();
    let (code, said) = offline(&["restore", text(&file), "--to", text(&place)]);
    assert!(code == Some(1) && said.contains("this is no backup of a store"), "{said}");
    assert!(!place.exists());
    let (code, said) = offline(&["verify", text(home.path())]);
    assert!(code == Some(1) && said.contains("there is no store"), "{said}");
    let (code, said) = offline(&["compact", "--store", text(home.path())]);
    assert!(code == Some(1) && said.contains("--older-than"), "{said}");
}
