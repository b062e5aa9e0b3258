//! What hosts of repositories tell when something was pushed: GitHub, GitLab, Gitea. Reading of it and checking who sent
//! it are functions over values; serving is in `listen`.

pub mod listen;

use ring::hmac;
use serde_json::Value;

use super::address::normal;

/// Secret with the keys of webhooks, in the namespace of Applications.
pub const SECRET: &str = "argocd-secret";

/// The keys that hosts sign with; an empty one takes what is not signed, as Argo CD does.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// GitHub's.
    pub github: String,
    /// GitLab's token.
    pub gitlab: String,
    /// Gitea's and Gogs'.
    pub gogs: String,
}

impl Keys {
    /// From the data of the Secret, decoded by `decode`.
    pub fn from_secret(decode: impl Fn(&str) -> String) -> Self {
        Self {
            github: decode("webhook.github.secret"),
            gitlab: decode("webhook.gitlab.secret"),
            gogs: decode("webhook.gogs.secret"),
        }
    }
}

/// Something was pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// URLs by which the repository may be known, in one spelling (see [`normal`]).
    pub repositories: Vec<String>,
    /// The branch or tag by its full name, as `refs/heads/main`.
    pub reference: String,
}

impl Push {
    /// Whether an Application's repository is the one.
    pub fn is_of(&self, url: &str) -> bool {
        self.repositories.contains(&normal(url))
    }
}

/// Why a message is not heeded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// No header says what it is.
    #[error(
        "this is no webhook of GitHub, GitLab or Gitea: X-GitHub-Event, X-Gitlab-Event and X-Gitea-Event are absent"
    )]
    Unknown,
    /// It is not signed as it must be.
    #[error("the signature in {header} is absent or wrong")]
    Signature {
        /// The header.
        header: &'static str,
    },
    /// It cannot be read.
    #[error("the message cannot be read: {0}")]
    Body(String),
}

/// Checks who sent a message and reads it; none where it is about something else than a push. `header` answers headers by
/// their lower-case names.
pub fn read<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    keys: &Keys,
) -> Result<Option<Push>, WebhookError> {
    // Gitea sends GitHub's headers too, signed with its own key.
    if let Some(event) = header("x-gitea-event").or_else(|| header("x-gogs-event")) {
        let name = if header("x-gitea-event").is_some() { "x-gitea-signature" } else { "x-gogs-signature" };
        signed(
            &keys.gogs,
            header(name),
            body,
            if name == "x-gitea-signature" { "X-Gitea-Signature" } else { "X-Gogs-Signature" },
        )?;
        return pushed(event == "push", body);
    }
    if let Some(event) = header("x-github-event") {
        let signature = header("x-hub-signature-256").and_then(|text| text.strip_prefix("sha256="));
        signed(&keys.github, signature, body, "X-Hub-Signature-256")?;
        return pushed(event == "push", body);
    }
    if let Some(event) = header("x-gitlab-event") {
        let same = |token: &str| {
            // Compared by their digests, so that time tells nothing about the key.
            let key = hmac::Key::new(hmac::HMAC_SHA256, keys.gitlab.as_bytes());
            let tag = hmac::sign(&key, token.as_bytes());
            hmac::verify(&key, keys.gitlab.as_bytes(), tag.as_ref()).is_ok()
        };
        if !keys.gitlab.is_empty() && !header("x-gitlab-token").is_some_and(same) {
            return Err(WebhookError::Signature { header: "X-Gitlab-Token" });
        }
        return pushed(matches!(event, "Push Hook" | "Tag Push Hook" | "System Hook"), body);
    }
    Err(WebhookError::Unknown)
}

fn signed(key: &str, signature: Option<&str>, body: &[u8], header: &'static str) -> Result<(), WebhookError> {
    if key.is_empty() {
        return Ok(());
    }
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let given = signature.and_then(unhex);
    let good = given.is_some_and(|given| hmac::verify(&key, body, &given).is_ok());
    if good { Ok(()) } else { Err(WebhookError::Signature { header }) }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    text.len()
        .is_multiple_of(2)
        .then(|| (0..text.len()).step_by(2).map(pair).collect::<Option<_>>())
        .flatten()
}

fn pushed(is_push: bool, body: &[u8]) -> Result<Option<Push>, WebhookError> {
    let message: Value =
        serde_json::from_slice(body).map_err(|error| WebhookError::Body(error.to_string()))?;
    let kind = message["object_kind"].as_str().unwrap_or("push");
    if !is_push || !matches!(kind, "push" | "tag_push") {
        return Ok(None);
    }
    let field = |place: &str, name: &str| message[place][name].as_str().map(normal);
    let named = [
        ("repository", "html_url"),
        ("repository", "clone_url"),
        ("repository", "ssh_url"),
        ("repository", "git_http_url"),
        ("repository", "git_ssh_url"),
        ("project", "web_url"),
        ("project", "git_http_url"),
        ("project", "git_ssh_url"),
    ];
    let mut repositories: Vec<String> = named.iter().filter_map(|(place, name)| field(place, name)).collect();
    repositories.sort();
    repositories.dedup();
    let reference = message["ref"].as_str().unwrap_or_default().to_owned();
    if repositories.is_empty() || reference.is_empty() {
        return Err(WebhookError::Body("it names no repository or no ref".to_owned()));
    }
    Ok(Some(Push { repositories, reference }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn sign(key: &str, body: &[u8]) -> String {
        hex(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), body).as_ref())
    }

    fn ask(headers: &[(&str, &str)], body: &[u8], keys: &Keys) -> Result<Option<Push>, WebhookError> {
        read(|name| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| *value), body, keys)
    }

    fn keys() -> Keys {
        Keys { github: "g".into(), gitlab: "l".into(), gogs: "t".into() }
    }

    #[test]
    fn signatures_are_as_github_documents_them() {
        let key = "It's a Secret to Everybody";
        let expected = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert!(signed(key, Some(expected), b"Hello, World!", "x").is_ok());
        assert!(signed(key, Some(expected), b"Hello, World?", "x").is_err());
    }

    #[test]
    fn pushes_are_read_where_they_are_signed() {
        let github = json!({"ref": "refs/heads/main", "repository": {"html_url": "https://github.com/a/b",
            "clone_url": "https://github.com/a/b.git", "ssh_url": "git@github.com:a/b.git"}});
        let body = github.to_string().into_bytes();
        let signature = format!("sha256={}", sign("g", &body));
        let push = ask(&[("x-github-event", "push"), ("x-hub-signature-256", &signature)], &body, &keys());
        let push = push.unwrap().unwrap();
        assert_eq!(push.reference, "refs/heads/main");
        assert!(push.is_of("https://github.com/A/b.git") && push.is_of("ssh://git@github.com/a/b"));
        assert!(!push.is_of("https://github.com/a/c"));
        let ping = ask(&[("x-github-event", "ping"), ("x-hub-signature-256", &signature)], &body, &keys());
        assert_eq!(ping, Ok(None));
        let gitea = sign("t", &body);
        let headers = [("x-gitea-event", "push"), ("x-github-event", "push"), ("x-gitea-signature", &gitea)];
        assert!(ask(&headers, &body, &keys()).unwrap().is_some());
        let gitlab = json!({"object_kind": "push", "ref": "refs/heads/x",
            "project": {"git_http_url": "https://gitlab.example/a/b.git"}})
        .to_string();
        let headers = [("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "l")];
        assert!(
            ask(&headers, gitlab.as_bytes(), &keys()).unwrap().unwrap().is_of("https://gitlab.example/a/b")
        );
    }

    #[test]
    fn others_are_refused() {
        let body = br#"{"ref":"refs/heads/main","repository":{"html_url":"https://h/r"}}"#;
        for headers in [
            vec![("x-github-event", "push")],
            vec![("x-github-event", "push"), ("x-hub-signature-256", "sha256=00")],
            vec![("x-github-event", "push"), ("x-hub-signature-256", "nonsense")],
            vec![("x-gitlab-event", "Push Hook")],
            vec![("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "wrong")],
            vec![("x-gitea-event", "push"), ("x-gitea-signature", "é")],
        ] {
            let answer = ask(&headers, body, &keys());
            assert!(matches!(answer, Err(WebhookError::Signature { .. })), "{headers:?}: {answer:?}");
        }
        assert_eq!(ask(&[], body, &keys()), Err(WebhookError::Unknown));
        let open = Keys::default();
        assert!(ask(&[("x-github-event", "push")], body, &open).unwrap().is_some());
        for body in ["", "[]", "{", "{}", r#"{"ref":1}"#] {
            let answer = ask(&[("x-github-event", "push")], body.as_bytes(), &open);
            assert!(matches!(answer, Err(WebhookError::Body(_))), "{body}: {answer:?}");
        }
    }
}
