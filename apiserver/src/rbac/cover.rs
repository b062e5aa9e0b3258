//! Whether rules hold all that other rules grant: nobody may grant what they do not hold. Knows no users.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{ALL, Rule, has, is_url};

/// The rules of whoever may do everything.
pub fn everything() -> Vec<Rule> {
    let all = || vec![ALL.to_owned()];
    vec![
        Rule { verbs: all(), groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), urls: all(), ..Rule::default() },
    ]
}

/// What of the wanted rules the held ones do not cover, in its smallest parts.
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    wanted.iter().flat_map(parts).filter(|part| !held.iter().any(|rule| covers(rule, part))).collect()
}

/// The smallest parts of a rule: one verb on one resource (of one name), or on one path.
fn parts(rule: &Rule) -> Vec<Rule> {
    let one = |word: &String| vec![word.clone()];
    let mut parts = Vec::new();
    for verb in &rule.verbs {
        for (group, resource) in rule.groups.iter().flat_map(|g| rule.resources.iter().map(move |r| (g, r))) {
            let part =
                Rule { verbs: one(verb), groups: one(group), resources: one(resource), ..Rule::default() };
            match rule.names.is_empty() {
                true => parts.push(part),
                false => parts.extend(rule.names.iter().map(|n| Rule { names: one(n), ..part.clone() })),
            }
        }
        parts.extend(rule.urls.iter().map(|u| Rule { verbs: one(verb), urls: one(u), ..Rule::default() }));
    }
    parts
}

/// Whether a rule holds a smallest part.
fn covers(rule: &Rule, part: &Rule) -> bool {
    let every = |known: &[String], wanted: &[String]| wanted.iter().all(|word| has(known, word));
    let resource = |wanted: &String| {
        has(&rule.resources, wanted)
            || wanted.split_once('/').is_some_and(|(_, sub)| rule.resources.contains(&format!("*/{sub}")))
    };
    let named = rule.names.is_empty()
        || (!part.names.is_empty() && part.names.iter().all(|name| rule.names.contains(name)));
    let url = |wanted: &String| {
        let start = wanted.strip_suffix('*');
        rule.urls.iter().any(|known| match start {
            Some(start) => {
                known == wanted || known.strip_suffix('*').is_some_and(|all| start.starts_with(all))
            }
            None => is_url(known, wanted),
        })
    };
    every(&rule.verbs, &part.verbs)
        && every(&rule.groups, &part.groups)
        && part.resources.iter().all(resource)
        && named
        && part.urls.iter().all(url)
}

/// Smallest parts told as users know rules: one line for each resource, its verbs together.
pub fn told(parts: &[Rule]) -> Vec<String> {
    let mut verbs: BTreeMap<Rule, BTreeSet<&str>> = BTreeMap::new();
    for part in parts {
        let of = Rule { verbs: Vec::new(), ..part.clone() };
        verbs.entry(of).or_default().extend(part.verbs.iter().map(String::as_str));
    }
    let mut lines: Vec<String> = verbs.iter().map(|(rule, verbs)| line(rule, verbs)).collect();
    lines.sort();
    lines
}

fn line(rule: &Rule, verbs: &BTreeSet<&str>) -> String {
    let quoted = |words: Vec<&str>| {
        let all: Vec<String> = words.into_iter().map(|word| format!("{word:?}")).collect();
        format!("[{}]", all.join(" "))
    };
    let parts = [
        ("APIGroups", &rule.groups),
        ("Resources", &rule.resources),
        ("NonResourceURLs", &rule.urls),
        ("ResourceNames", &rule.names),
    ];
    let mut told: Vec<String> = parts
        .into_iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(name, words)| format!("{name}:{}", quoted(words.iter().map(String::as_str).collect())))
        .collect();
    told.push(format!("Verbs:{}", quoted(verbs.iter().copied().collect())));
    format!("{{{}}}", told.join(", "))
}
