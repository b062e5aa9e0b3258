//! Rules, policies, and the roles of the start, as values.

use serde_json::{Value, json};

use super::bootstrap::{self, Kind};
use super::compile::Compiler;
use super::cover;
use super::rule::Rule;
use crate::authn::{User, service_account_groups, service_account_name};
use crate::authz::Attributes;

fn rule(groups: &[&str], resources: &[&str], names: &[&str], verbs: &[&str]) -> Rule {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    Rule {
        groups: words(groups),
        resources: words(resources),
        names: words(names),
        verbs: words(verbs),
        urls: vec![],
    }
}

fn ask<'a>(verb: &'a str, group: &'a str, resource: &'a str, name: &'a str) -> Attributes<'a> {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    Attributes { verb, group, resource, subresource, namespace: "n", name }
}

#[test]
fn rules_allow_what_they_say_and_no_more() {
    let exact = rule(&["apps"], &["deployments", "deployments/scale"], &[], &["get", "update"]);
    for (verb, group, resource, allowed) in [
        ("get", "apps", "deployments", true),
        ("update", "apps", "deployments/scale", true),
        ("get", "apps", "deployments/status", false),
        ("delete", "apps", "deployments", false),
        ("get", "", "deployments", false),
    ] {
        assert_eq!(exact.allows(&ask(verb, group, resource, "x")), allowed, "{verb} {group} {resource}");
    }
    let any = rule(&["*"], &["*/status"], &[], &["*"]);
    assert!(any.allows(&ask("patch", "x.io", "odds/status", "")));
    assert!(!any.allows(&ask("patch", "x.io", "odds", "")));
    assert!(rule(&["*"], &["*"], &[], &["*"]).allows(&ask("odd", "x.io", "odds/part", "")));
    let named = rule(&[""], &["configmaps"], &["a"], &["get"]);
    assert!(named.allows(&ask("get", "", "configmaps", "a")));
    assert!(!named.allows(&ask("get", "", "configmaps", "b")));
    assert!(!named.allows(&ask("get", "", "configmaps", "")), "no name is no right on all");
    let paths = Rule {
        urls: vec!["/healthz/*".to_owned(), "/version".to_owned()],
        verbs: vec!["get".to_owned()],
        ..Rule::default()
    };
    assert!(paths.allows_path("get", "/healthz/x") && paths.allows_path("get", "/version"));
    assert!(!paths.allows_path("get", "/healthz") && !paths.allows_path("post", "/version"));
}

#[test]
fn nobody_may_grant_what_they_do_not_hold() {
    let held = [rule(&[""], &["pods", "*/log"], &[], &["get", "list"]), rule(&["*"], &["x"], &["a"], &["*"])];
    let lacks = |wanted: Rule| cover::told(&cover::missing(&held, &[wanted]));
    assert!(lacks(rule(&[""], &["pods", "pods/log"], &["p"], &["get"])).is_empty());
    assert!(lacks(rule(&["g"], &["x"], &["a"], &["odd"])).is_empty());
    assert_eq!(
        lacks(rule(&["g"], &["x"], &[], &["get", "list"])),
        [r#"{APIGroups:["g"], Resources:["x"], Verbs:["get" "list"]}"#]
    );
    assert_eq!(
        lacks(rule(&[""], &["pods", "secrets"], &[], &["get", "*"])),
        [
            r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#,
            r#"{APIGroups:[""], Resources:["secrets"], Verbs:["*" "get"]}"#
        ]
    );
    let url =
        |url: &str| Rule { urls: vec![url.to_owned()], verbs: vec!["get".to_owned()], ..Rule::default() };
    assert!(cover::missing(&[url("/a/*")], &[url("/a/b/*"), url("/a/c")]).is_empty());
    assert_eq!(cover::missing(&[url("/a/*")], &[url("/*"), url("/a")]).len(), 2);
    assert!(cover::missing(&cover::everything(), &[url("*"), rule(&["*"], &["*"], &[], &["*"])]).is_empty());
}

fn binding(kind: &str, role: &str, subjects: Value) -> Value {
    json!({"roleRef": {"kind": kind, "name": role}, "subjects": subjects})
}

fn role(rules: &[Rule]) -> Value {
    json!({"rules": rules.iter().map(Rule::write).collect::<Vec<_>>()})
}

#[test]
fn bindings_give_their_subjects_the_rules_where_they_are() {
    let mut compiler = Compiler::default();
    let pods = rule(&[""], &["pods"], &[], &["get"]);
    compiler.put_role("n", "r", &role(std::slice::from_ref(&pods)));
    compiler.put_role("", "r", &role(&[rule(&[""], &["secrets"], &[], &["get"])]));
    let subjects = json!([{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s"}]);
    compiler.put_binding("n", "b", &binding("Role", "r", subjects));
    compiler.put_binding("", "b", &binding("ClusterRole", "r", json!([{"kind": "User", "name": "u"}])));
    compiler.put_binding("n", "gap", &binding("Role", "nope", json!([{"kind": "User", "name": "eve"}])));
    let policy = compiler.policy();
    let known = |name: &str, groups: Vec<String>| User::known(name, "", groups);
    let account = known(&service_account_name("n", "s"), service_account_groups("n"));
    let get = |resource, namespace| Attributes { namespace, ..ask("get", "", resource, "x") };
    for (who, resource, namespace, allowed) in [
        (&known("u", vec![]), "pods", "n", true),
        (&known("u", vec![]), "pods", "m", false),
        (&known("u", vec![]), "pods", "", false),
        (&known("u", vec![]), "secrets", "m", true),
        (&known("v", vec!["g".to_owned()]), "pods", "n", true),
        (&known("g", vec![]), "pods", "n", false),
        (&account, "pods", "n", true),
        (&account, "secrets", "n", false),
    ] {
        assert_eq!(policy.allows(who, &get(resource, namespace)), allowed, "{who:?} {resource} {namespace}");
    }
    assert_eq!(
        policy.decide(&account, &get("pods", "n")).reason,
        "RBAC: allowed by RoleBinding \"b/n\" of Role \"r\" to ServiceAccount \"n/s\""
    );
    let refused = policy.denied(&known("eve", vec![]), &get("pods", "n"));
    assert!(
        refused
            .message
            .ends_with("in the namespace \"n\": RBAC: role.rbac.authorization.k8s.io \"nope\" not found"),
        "{refused}"
    );
    assert_eq!(policy.rules(&known("u", vec!["g".to_owned()]), "n").len(), 2);
    compiler.put_binding("n", "b", &binding("Role", "r", json!([{"kind": "User", "name": "w"}])));
    assert!(!compiler.policy().allows(&account, &get("pods", "n")));
    compiler.remove_binding("n", "b");
    compiler.remove_role("", "r");
    let policy = compiler.policy();
    assert!(!policy.allows(&known("w", vec![]), &get("pods", "n")));
    assert!(!policy.allows(&known("u", vec![]), &get("secrets", "n")));
    assert_eq!(policy.grants.len(), 2, "what is not held any more is not kept");
}

#[test]
fn cluster_roles_gather_the_rules_of_others_through_others() {
    let mut compiler = Compiler::default();
    for role in bootstrap::cluster_roles() {
        let name = role["metadata"]["name"].as_str().unwrap().to_owned();
        compiler.put_role("", &name, &role);
    }
    let differing = compiler.gather();
    assert_eq!(
        differing.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["admin", "edit", "view"]
    );
    let rules = |name: &str| differing.iter().find(|(own, _)| own == name).unwrap().1.clone();
    let (admin, edit, view) = (rules("admin"), rules("edit"), rules("view"));
    assert!(cover::missing(&admin, &edit).is_empty() && cover::missing(&edit, &view).is_empty());
    assert!(!cover::missing(&edit, &admin).is_empty());
    assert!(edit.iter().any(|rule| rule.allows(&ask("create", "apps", "deployments", ""))));
    assert!(!view.iter().any(|rule| rule.allows(&ask("get", "", "secrets", "s"))));
    for (name, rules) in &differing {
        let mut stored = bootstrap::cluster_roles()
            .into_iter()
            .find(|role| role["metadata"]["name"] == name.as_str())
            .unwrap();
        stored["rules"] = json!(rules.iter().map(Rule::write).collect::<Vec<_>>());
        compiler.put_role("", name, &stored);
    }
    assert!(compiler.gather().is_empty(), "what is written needs no second write");
    let mut more = role(&[rule(&["x.io"], &["odds"], &[], &["get"])]);
    more["metadata"] = json!({"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}});
    compiler.put_role("", "odds", &more);
    assert_eq!(compiler.gather().len(), 3);
    compiler.remove_role("", "odds");
    assert!(compiler.gather().is_empty());
}

#[test]
fn what_is_always_there_is_mended_and_otherwise_left() {
    for wanted in bootstrap::cluster_roles() {
        assert_eq!(bootstrap::mended(Kind::Role, &wanted, &wanted), None);
        let mut found = wanted.clone();
        found["rules"] = json!([{"verbs": ["odd"], "apiGroups": ["x"], "resources": ["y"]}]);
        found["metadata"]["labels"] = json!({"own": "1"});
        let mended = bootstrap::mended(Kind::Role, &found, &wanted).unwrap();
        assert_eq!(mended["metadata"]["labels"]["own"], "1");
        assert_eq!(mended["rules"][0], found["rules"][0]);
        if wanted.get("aggregationRule").is_none() {
            let (have, want) = (Rule::read_all(&mended), Rule::read_all(&wanted));
            assert!(cover::missing(&have, &want).is_empty());
        }
        found["metadata"]["annotations"][bootstrap::AUTOUPDATE] = json!("false");
        assert_eq!(bootstrap::mended(Kind::Role, &found, &wanted), None);
    }
    for wanted in bootstrap::cluster_role_bindings() {
        let mut found = wanted.clone();
        found["subjects"] = json!([{"kind": "User", "name": "u"}]);
        let mended = bootstrap::mended(Kind::Binding, &found, &wanted).unwrap();
        assert_eq!(
            mended["subjects"].as_array().unwrap().len(),
            1 + wanted["subjects"].as_array().unwrap().len()
        );
    }
}
