//! Every text in the style kubectl 1.33 chose for it, and whole documents in its layout.

use serde_json::json;

use super::*;

#[test]
fn texts_are_written_as_kubectl_writes_them() {
    for (text, written) in [
        ("a & b < c", "a & b < c"),
        ("@x", "'@x'"),
        ("[a", "'[a'"),
        ("a\\b", "a\\b"),
        ("1:20", "\"1:20\""),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a, b", "a, b"),
        ("a\r\nb\r\n", "\"a\\r\\nb\\r\\n\""),
        ("a\u{1}b", "\"a\\x01b\""),
        ("2024-01-01", "\"2024-01-01\""),
        ("2024-01-01T00:00:00Z", "\"2024-01-01T00:00:00Z\""),
        ("- a", "'- a'"),
        ("..", ".."),
        (".5", "\".5\""),
        ("say \"x\" ok", "say \"x\" ok"),
        ("", "\"\""),
        ("1e3", "\"1e3\""),
        ("\u{1F600} hi", "\"\\U0001F600 hi\""),
        ("=", "="),
        ("a #b", "'a #b'"),
        (".inf", "\".inf\""),
        ("<<", "<<"),
        ("-5", "\"-5\""),
        ("null", "\"null\""),
        ("0o14", "\"0o14\""),
        ("%a", "'%a'"),
        ("it's", "it's"),
        ("'it's", "'''it''s'"),
        ("? a", "'? a'"),
        ("?a", "?a"),
        ("\"q\"", "'\"q\"'"),
        (" a", "' a'"),
        ("*a", "'*a'"),
        ("true", "\"true\""),
        ("a\tb", "\"a\\tb\""),
        ("~", "\"~\""),
        ("a \nb\n", "\"a \\nb\\n\""),
        ("é漢", "é漢"),
        ("1_000", "\"1_000\""),
        ("1.2.3", "1.2.3"),
        ("0x12", "\"0x12\""),
        ("yes", "\"yes\""),
        ("10.0.0.1", "10.0.0.1"),
        ("1m", "1m"),
    ] {
        assert_eq!(to_string(&json!({ "k": text })), format!("k: {written}\n"), "{text:?}");
    }
}

#[test]
fn long_texts_are_folded() {
    let long = "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption \
                victims found for incoming pod. and so on and so on";
    assert_eq!(
        to_string(&json!({"data": { "long": long }})),
        "data:\n  long: '0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available:\n    \
         3 No preemption victims found for incoming pod. and so on and so on'\n"
    );
    let tabbed = "tab\there nodes are available 3 Insufficient cpu preemption nodes are available 3 No preemption \
                  victims found for incoming pod and so on and so on";
    assert_eq!(
        to_string(&json!({"data": { "longdq": tabbed }})),
        "data:\n  longdq: \"tab\\there nodes are available 3 Insufficient cpu preemption nodes are available\n    \
         3 No preemption victims found for incoming pod and so on and so on\"\n"
    );
}

#[test]
fn literals_keep_their_ends() {
    for (text, written) in [
        ("a\nb", "|-\n  a\n  b\n"),
        ("a\nb\n", "|\n  a\n  b\n"),
        ("a\nb\n\n", "|+\n  a\n  b\n\n"),
        ("  a\nb\n", "|2\n    a\n  b\n"),
        ("a\n\nb", "|-\n  a\n\n  b\n"),
    ] {
        assert_eq!(to_string(&json!({ "k": text })), format!("k: {written}"), "{text:?}");
    }
}

#[test]
fn layout_is_that_of_kubectl() {
    let value = json!({"spec": {"list": [{"b": 1, "a": [1, [2, 3], []]}, "x", {}], "empty": {}, "none": null,
        "f": 1.5, "on": true}, "n": "n"});
    assert_eq!(
        to_string(&value),
        "\"n\": \"n\"\nspec:\n  empty: {}\n  f: 1.5\n  list:\n  - a:\n    - 1\n    - - 2\n      - 3\n    - []\n    \
         b: 1\n  - x\n  - {}\n  none: null\n  \"on\": true\n"
    );
    assert_eq!(to_string(&json!([])), "[]\n");
}

#[test]
fn what_is_written_reads_back() {
    let value = json!({"a": ["- x", "a: b", "yes", "1", " ", "\n", "a\nb\n\n", "\u{1F600}\t", "#", "x ".repeat(100)],
        "k".repeat(140): {"deep": ["|", ">", "!", "&a"]}});
    let back: Value = serde_saphyr::from_str(&to_string(&value)).unwrap();
    assert_eq!(back, value);
}
