//! Which commit a target revision is, among the branches and tags that a repository has. Pure.

use std::collections::BTreeMap;

use gix::ObjectId;
use semver::{Version, VersionReq};
use strata_plan::application::rendered::{Fault, RenderError};

/// Fewest digits of a short commit.
const MIN_SHORT: usize = 7;

/// Branches and tags of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refs {
    /// What `HEAD` is; none in an empty repository.
    pub head: Option<ObjectId>,
    /// The branch that `HEAD` stands for, as `main`.
    pub head_branch: Option<String>,
    /// All others by their full names, with the object that annotated tags lead to.
    pub names: BTreeMap<String, ObjectId>,
}

/// What a target revision is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// This commit.
    Commit(ObjectId),
    /// The commit that begins with these digits, which no branch or tag points to.
    Short(String),
}

impl Refs {
    /// Looks a target revision up: empty or `HEAD`, a full commit, a branch or tag by full or short name, a range of
    /// versions (`1.2.*`, `>=1.0 <2.0`) of which the highest tag counts, a short commit; in this order.
    pub fn resolve(&self, target: &str, url: &str) -> Result<Resolved, RenderError> {
        if target.is_empty() || target == "HEAD" {
            let empty = || missing(format!("{url} has no commits: HEAD points to nothing"));
            return self.head.map(Resolved::Commit).ok_or_else(empty);
        }
        let hex = target.bytes().all(|b| b.is_ascii_hexdigit());
        if hex && target.len() == 40 {
            return ObjectId::from_hex(target.to_lowercase().as_bytes())
                .map(Resolved::Commit)
                .map_err(|error| missing(format!("targetRevision {target}: {error}")));
        }
        for prefix in ["", "refs/heads/", "refs/tags/", "refs/"] {
            if let Some(id) = self.names.get(&format!("{prefix}{target}")) {
                return Ok(Resolved::Commit(*id));
            }
        }
        if let Some(range) = range(target) {
            return match self.highest(&range) {
                Some(id) => Ok(Resolved::Commit(id)),
                None if hex => self.short(target, url),
                None => Err(missing(format!("{url} has no tag in the range of versions {target:?}"))),
            };
        }
        if hex && target.len() >= MIN_SHORT {
            return self.short(target, url);
        }
        Err(missing(format!(
            "{url} has no branch, tag or commit {target:?}; it has {}",
            some_of(self.names.keys())
        )))
    }

    fn short(&self, target: &str, url: &str) -> Result<Resolved, RenderError> {
        if target.len() < MIN_SHORT {
            return Err(missing(format!("{url} has no branch or tag {target:?}")));
        }
        let digits = target.to_lowercase();
        let mut found: Vec<_> =
            self.names.values().filter(|id| id.to_string().starts_with(&digits)).collect();
        found.sort();
        found.dedup();
        Ok(match found[..] {
            [one] => Resolved::Commit(*one),
            _ => Resolved::Short(digits),
        })
    }

    /// The highest tag in a range: pre-releases only where the range names one.
    fn highest(&self, ranges: &[VersionReq]) -> Option<ObjectId> {
        let tags = self.names.iter().filter_map(|(name, id)| Some((name.strip_prefix("refs/tags/")?, id)));
        let versions = tags.filter_map(|(name, id)| Some((version(name)?, id)));
        let fitting = versions.filter(|(version, _)| ranges.iter().any(|range| range.matches(version)));
        fitting.max_by(|(a, _), (b, _)| a.cmp(b)).map(|(_, id)| *id)
    }
}

fn missing(message: String) -> RenderError {
    RenderError::new(Fault::Missing, message)
}

fn some_of<'a>(names: impl Iterator<Item = &'a String>) -> String {
    const SHOWN: usize = 8;
    let short = |name: &'a String| {
        ["refs/heads/", "refs/tags/"].iter().find_map(|prefix| name.strip_prefix(prefix)).map(str::to_owned)
    };
    let names: Vec<String> = names.filter_map(short).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
        _ => names.join(", "),
    }
}

/// A tag as a version: `v` in front is allowed, and minor and patch may be absent.
fn version(tag: &str) -> Option<Version> {
    let plain = tag.strip_prefix('v').unwrap_or(tag);
    let core = plain.find(['-', '+']).unwrap_or(plain.len());
    let dots = plain[..core].matches('.').count();
    let filled = match dots {
        0 => format!("{}.0.0{}", &plain[..core], &plain[core..]),
        1 => format!("{}.0{}", &plain[..core], &plain[core..]),
        _ => plain.to_owned(),
    };
    Version::parse(&filled).ok()
}

/// A range of versions: alternatives behind `||`, comparisons with blanks or commas between them, `a - b`.
fn range(text: &str) -> Option<Vec<VersionReq>> {
    text.split("||").map(alternative).collect()
}

fn alternative(text: &str) -> Option<VersionReq> {
    let text = text.trim();
    if let Some((from, to)) = text.split_once(" - ") {
        return VersionReq::parse(&format!(">={}, <={}", bare(from), bare(to))).ok();
    }
    let mut parts: Vec<String> = Vec::new();
    for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
        // An operator may stand apart from its version.
        match parts.last_mut() {
            Some(last) if last.ends_with(['<', '>', '=', '~', '^']) => last.push_str(bare(word)),
            _ => parts.push(comparator(word)),
        }
    }
    (!parts.is_empty()).then(|| VersionReq::parse(&parts.join(", ")).ok()).flatten()
}

fn bare(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('v').unwrap_or(text)
}

fn comparator(word: &str) -> String {
    let operator = word.find(|c: char| !"<>=~^!".contains(c)).unwrap_or(word.len());
    let (sign, version) = (&word[..operator], bare(&word[operator..]).replace(['x', 'X'], "*"));
    match sign {
        "" if version.contains('*') || version.is_empty() => version,
        "" => format!("={version}"),
        "=<" => format!("<={version}"),
        "=>" => format!(">={version}"),
        "==" => format!("={version}"),
        sign => format!("{sign}{version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> ObjectId {
        ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).unwrap()
    }

    fn refs() -> Refs {
        let names = [
            ("refs/heads/main", 'a'),
            ("refs/heads/release/1", 'b'),
            ("refs/tags/v1.0.0", '1'),
            ("refs/tags/v1.2.3", '2'),
            ("refs/tags/1.10.0", '3'),
            ("refs/tags/v2.0.0-rc.1", '4'),
            ("refs/tags/v2.0", '5'),
            ("refs/pull/7/head", 'c'),
            ("refs/heads/1.0.x", '7'),
        ];
        let names = names.iter().map(|(name, digit)| ((*name).to_owned(), id(*digit))).collect();
        Refs { head: Some(id('a')), head_branch: Some("main".into()), names }
    }

    fn commit(target: &str) -> Option<ObjectId> {
        match refs().resolve(target, "u").ok()? {
            Resolved::Commit(id) => Some(id),
            Resolved::Short(_) => None,
        }
    }

    #[test]
    fn names_commits_and_ranges_are_found() {
        for (target, digit) in [
            ("", 'a'),
            ("HEAD", 'a'),
            ("main", 'a'),
            ("refs/heads/main", 'a'),
            ("release/1", 'b'),
            ("v1.2.3", '2'),
            ("pull/7/head", 'c'),
            ("1.x", '3'),
            ("1.2.*", '2'),
            ("^1.0", '3'),
            ("~1.2", '2'),
            (">=1.0 <1.5", '2'),
            (">= 1.0.0, < 2", '3'),
            ("1.0 - 1.5", '2'),
            ("*", '5'),
            (">=2.0.0-rc.0 <2.0.0", '4'),
            ("0.1 || 1.2.x", '2'),
            ("1.2", '2'),
            // A branch of this name comes before the range.
            ("1.0.x", '7'),
        ] {
            assert_eq!(commit(target), Some(id(digit)), "{target}");
        }
        assert_eq!(commit(&"F".repeat(40)), Some(id('f')));
        assert_eq!(commit("bbbbbbb"), Some(id('b')));
        assert_eq!(refs().resolve("deadbeef", "u").unwrap(), Resolved::Short("deadbeef".into()));
    }

    #[test]
    fn what_is_not_there_is_said() {
        for target in ["nope", ">=3", "abc", "1.3.x"] {
            let error = refs().resolve(target, "https://h/r").unwrap_err();
            assert_eq!(error.fault, Fault::Missing);
            assert!(error.message.contains(target) && error.message.contains("https://h/r"), "{error}");
        }
        let error = Refs::default().resolve("", "u").unwrap_err();
        assert!(error.message.contains("no commits"), "{error}");
    }
}
