//! Every input that the fuzz targets keep (`tests/fuzz/corpus`), through the same entries: what once broke a parser, and
//! what leads a fuzzer to its depths.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "../fuzz/src/lib.rs"]
mod entries;

use std::path::Path;

#[test]
fn every_kept_input_is_taken() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut folders: Vec<String> = std::fs::read_dir(&corpus)
        .unwrap()
        .map(|folder| folder.unwrap().file_name().into_string().unwrap())
        .collect();
    folders.sort_unstable();
    let mut names: Vec<&str> = entries::TARGETS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(folders, names, "each target has a corpus, and each corpus a target");
    for (name, entry) in entries::TARGETS {
        let mut inputs = 0;
        for file in std::fs::read_dir(corpus.join(name)).unwrap() {
            let path = file.unwrap().path();
            println!("{}", path.display());
            entry(&std::fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "the corpus of {name} is empty");
    }
}
