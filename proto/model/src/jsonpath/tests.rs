//! Templates of kubectl's documentation and of daily use, on a small list.

use serde_json::json;

use super::*;

fn list() -> Value {
    json!({"kind": "List", "items": [
        {"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "web"}}, "n": 1,
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]}},
        {"metadata": {"name": "b", "labels": {}}, "n": 2,
            "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"metadata": {"name": "c"}, "n": 3, "flag": true}]})
}

#[test]
fn templates_render_as_in_kubectl() {
    for (template, text) in [
        ("plain", "plain"),
        ("{.kind}", "List"),
        ("{$.kind}", "List"),
        ("{@.kind}", "List"),
        ("{.items[*].metadata.name}", "a b c"),
        ("{.items[0].metadata.name}", "a"),
        ("{.items[-1].metadata.name}", "c"),
        ("{.items[0:2].metadata.name}", "a b"),
        ("{.items[-2:].metadata.name}", "b c"),
        ("{.items[::2].metadata.name}", "a c"),
        ("{.items[0,2].metadata.name}", "a c"),
        ("{.items[*]['n','metadata.name']}", "1 2 3"),
        ("{range .items[*]}{.metadata.name}{\"\\t\"}{.n}{\"\\n\"}{end}", "a\t1\nb\t2\nc\t3\n"),
        ("{range .items[*]}[{.metadata.name}, {.n}] {end}", "[a, 1] [b, 2] [c, 3] "),
        ("{.items[?(@.metadata.name==\"b\")].n}", "2"),
        ("{.items[?(@.n>=2)].metadata.name}", "b c"),
        ("{.items[?(@.n != 2)].metadata.name}", "a c"),
        ("{.items[?(@.flag)].metadata.name}", "c"),
        ("{.items[?(@.flag==true)].metadata.name}", "c"),
        ("{.items[0].status.conditions[?(@.type=='Ready')].status}", "True"),
        ("{..name}", "a b c"),
        ("{.items[0].metadata.labels.app\\.kubernetes\\.io/name}", "web"),
        ("{.items[0].metadata.labels['app.kubernetes.io/name']}", "web"),
        ("{.items[0].metadata}", r#"{"labels":{"app.kubernetes.io/name":"web"},"name":"a"}"#),
        ("{.missing.deeper}", ""),
        (
            "{range .items[*]}{range .status.conditions[*]}{.type}={.status};{end}{end}",
            "Ready=True;Other=False;Ready=False;",
        ),
        ("{'single'}{ \"double\" }", "singledouble"),
        ("{.items[*].n}{'\\n'}", "1 2 3\n"),
    ] {
        let parsed = JsonPath::parse(template).unwrap_or_else(|e| panic!("{template}: {e}"));
        assert_eq!(parsed.render(&list()).unwrap(), text, "{template}");
    }
}

#[test]
fn an_index_beyond_the_end_is_an_error() {
    let path = JsonPath::parse("{.items[7].metadata.name}").unwrap();
    let error = path.render(&list()).unwrap_err();
    assert_eq!(error.to_string(), "array index out of bounds: index 7, length 3");
}

#[test]
fn relaxed_paths_need_no_braces() {
    for path in ["metadata.name", ".metadata.name", "{.metadata.name}", "{metadata.name}"] {
        let found = JsonPath::parse_relaxed(path).unwrap();
        let value = json!({"metadata": {"name": "x"}});
        assert_eq!(found.find(&value).unwrap(), [&json!("x")], "{path}");
    }
}

#[test]
fn bad_templates_are_refused_with_their_place() {
    for bad in [
        "{.a",
        "{range .a}x",
        "{end}",
        "{.a[}",
        "{.a[?(@.x==)]}",
        "{\"a}",
        "{.a[x]}",
        "{.a[1:2:0]}",
        "{.a]}",
        "{.a[?(@.x=='y']}",
        "{~}",
    ] {
        assert!(matches!(JsonPath::parse(bad), Err(JsonPathError::Parse { .. })), "{bad}");
    }
}
