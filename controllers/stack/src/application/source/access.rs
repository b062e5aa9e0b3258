//! With which credentials a repository is read: Secrets and ConfigMaps in Argo CD's shape to values, and the choice among
//! them. Connects to nothing, logs nothing of what it holds.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use strata_plan::application::rendered::{Fault, RenderError};

use super::address::normal;

/// Label of Secrets that hold credentials.
pub const SECRET_TYPE: &str = "argocd.argoproj.io/secret-type";
/// Its value for one repository.
pub const REPOSITORY: &str = "repository";
/// Its value for all repositories whose URL begins with that of the Secret.
pub const TEMPLATE: &str = "repo-creds";
/// ConfigMap whose `ssh_known_hosts` lists keys of hosts.
pub const KNOWN_HOSTS: &str = "argocd-ssh-known-hosts-cm";
/// ConfigMap with certificates of authorities in PEM, one key a host.
pub const CERTIFICATES: &str = "argocd-tls-certs-cm";

/// Everything that is known about how to reach repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Credentials, in no order.
    pub credentials: Vec<Credential>,
    /// Keys of hosts as ssh has them in `known_hosts`; where empty, ssh's own files count.
    pub known_hosts: String,
    /// Authorities beside those of the system, in PEM, by host.
    pub certificates: BTreeMap<String, String>,
}

/// One set of credentials.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Credential {
    /// The repository, or the beginning of its URL.
    pub url: String,
    /// Whether it is a beginning.
    pub template: bool,
    /// For HTTP; `x-access-token` or the like where only a token counts.
    pub username: String,
    /// Password or token for HTTP.
    pub password: String,
    /// Token that is sent as `Bearer`, instead of user and password.
    pub bearer_token: String,
    /// Private key for ssh, in OpenSSH's or PEM form.
    pub ssh_private_key: String,
    /// The host is not asked who it is: neither certificate nor host key is checked.
    pub insecure: bool,
    /// Certificate for TLS in PEM.
    pub tls_certificate: String,
    /// Its key in PEM.
    pub tls_key: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("url", &self.url)
            .field("template", &self.template)
            .field("username", &self.username)
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}

impl Credential {
    /// Reads a Secret; none where it holds no credentials of repositories. What is wrong with it is told by field, never by
    /// value.
    pub fn from_secret(secret: &Value) -> Option<Result<Self, RenderError>> {
        let template = match secret["metadata"]["labels"][SECRET_TYPE].as_str()? {
            REPOSITORY => false,
            TEMPLATE => true,
            _ => return None,
        };
        Some(Self::read(secret, template))
    }

    fn read(secret: &Value, template: bool) -> Result<Self, RenderError> {
        let fail = |why: &str| {
            let metadata = &secret["metadata"];
            let part = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
            let message = format!("Secret {}/{}: {why}", part("namespace"), part("name"));
            RenderError::new(Fault::Settings, message)
        };
        let field = |name: &str| -> Result<String, RenderError> {
            if let Some(text) = secret["stringData"][name].as_str() {
                return Ok(text.to_owned());
            }
            let Some(text) = secret["data"][name].as_str() else { return Ok(String::new()) };
            let bytes = STANDARD.decode(text).map_err(|_| fail(&format!("data.{name} is no base64")))?;
            String::from_utf8(bytes).map_err(|_| fail(&format!("data.{name} is no text")))
        };
        let read = Self {
            url: field("url")?.trim().to_owned(),
            template,
            username: field("username")?,
            password: field("password")?,
            bearer_token: field("bearerToken")?.trim().to_owned(),
            ssh_private_key: field("sshPrivateKey")?,
            insecure: is_true(&field("insecure")?) || is_true(&field("insecureIgnoreHostKey")?),
            tls_certificate: field("tlsClientCertData")?,
            tls_key: field("tlsClientCertKey")?,
        };
        if read.url.is_empty() {
            return Err(fail("url is not set: write which repository it is for"));
        }
        if read.tls_certificate.is_empty() != read.tls_key.is_empty() {
            return Err(fail("tlsClientCertData and tlsClientCertKey come together"));
        }
        Ok(read)
    }

    /// Whether it says who we are, and not only how to connect.
    fn has_identity(&self) -> bool {
        [&self.username, &self.password, &self.bearer_token, &self.ssh_private_key, &self.tls_certificate]
            .iter()
            .any(|field| !field.is_empty())
    }
}

impl Access {
    /// Reads all Secrets and ConfigMaps of a namespace; others than ours are passed over. Faults come beside what could be
    /// read.
    pub fn from_objects<'a>(
        secrets: impl IntoIterator<Item = &'a Value>,
        config_maps: impl IntoIterator<Item = &'a Value>,
    ) -> (Self, Vec<RenderError>) {
        let mut access = Self::default();
        let mut faults = Vec::new();
        for read in secrets.into_iter().filter_map(Credential::from_secret) {
            match read {
                Ok(credential) => access.credentials.push(credential),
                Err(fault) => faults.push(fault),
            }
        }
        for map in config_maps {
            let data = map["data"].as_object().into_iter().flatten();
            let texts = data.filter_map(|(key, value)| Some((key, value.as_str()?)));
            match map["metadata"]["name"].as_str() {
                Some(KNOWN_HOSTS) => {
                    let hosts = texts.filter(|(key, _)| *key == "ssh_known_hosts");
                    access.known_hosts.extend(hosts.map(|(_, value)| value));
                }
                Some(CERTIFICATES) => {
                    access.certificates.extend(texts.map(|(key, value)| (key.clone(), value.to_owned())));
                }
                _ => {}
            }
        }
        (access, faults)
    }

    /// The credentials of a repository: those of its own Secret; where that has none, or there is no such Secret, those of
    /// the longest beginning of its URL. Empty where there are none.
    pub fn of(&self, url: &str) -> Credential {
        let wanted = normal(url);
        let own = self.credentials.iter().find(|c| !c.template && normal(&c.url) == wanted);
        let begins = |c: &&Credential| c.template && begins_with(&wanted, &normal(&c.url));
        let template = self.credentials.iter().filter(begins).max_by_key(|c| c.url.len());
        match (own, template) {
            (Some(own), _) if own.has_identity() => own.clone(),
            (Some(own), Some(template)) => {
                Credential { insecure: own.insecure || template.insecure, ..template.clone() }
            }
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => Credential::default(),
        }
    }
}

/// A beginning ends where a name ends: `https://host/team` is none of `https://host/teammates/repo`, and above all
/// `https://host` is none of `https://host.evil.example/repo`.
fn begins_with(url: &str, beginning: &str) -> bool {
    let Some(rest) = url.strip_prefix(beginning) else { return false };
    rest.is_empty() || rest.starts_with(['/', ':']) || beginning.ends_with(['/', ':'])
}

fn is_true(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(kind: &str, data: &[(&str, &str)]) -> Value {
        let data: BTreeMap<_, _> = data.iter().map(|(k, v)| (*k, STANDARD.encode(v))).collect();
        json!({"metadata": {"name": "s", "namespace": "argocd", "labels": {SECRET_TYPE: kind}}, "data": data})
    }

    #[test]
    fn the_closest_credentials_count() {
        let secrets = [
            secret(TEMPLATE, &[("url", "https://h"), ("username", "all"), ("password", "p1")]),
            secret(TEMPLATE, &[("url", "https://h/team"), ("username", "team"), ("password", "p2")]),
            secret(REPOSITORY, &[("url", "https://h/team/own.git"), ("password", "p3"), ("username", "own")]),
            secret(REPOSITORY, &[("url", "https://h/team/bare"), ("insecure", "true")]),
            secret("cluster", &[("server", "x")]),
            json!({"metadata": {"name": "other"}, "data": {"url": "!"}}),
        ];
        let (access, faults) = Access::from_objects(&secrets, &[]);
        assert!(faults.is_empty(), "{faults:?}");
        let user = |url: &str| access.of(url).username;
        assert_eq!(user("https://H/team/own"), "own");
        assert_eq!(user("https://h/team/x"), "team");
        assert_eq!(user("https://h/teammates/x"), "all");
        assert_eq!(user("https://h.evil.example/x"), "");
        let bare = access.of("https://h/team/bare");
        assert_eq!((bare.username.as_str(), bare.insecure), ("team", true));
        let shown = format!("{access:?}");
        assert!(!shown.contains("p1") && !shown.contains("p3"), "{shown}");
    }

    #[test]
    fn faults_name_secret_and_field() {
        let mut bad = secret(REPOSITORY, &[("url", "https://h/r")]);
        bad["data"]["password"] = json!("%%");
        let half = secret(REPOSITORY, &[("url", "https://h/r"), ("tlsClientCertData", "x")]);
        let (access, faults) = Access::from_objects(&[bad, secret(REPOSITORY, &[]), half], &[]);
        assert!(access.credentials.is_empty());
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(texts[0].contains("argocd/s") && texts[0].contains("data.password"), "{texts:?}");
        assert!(texts[1].contains("url") && texts[2].contains("tlsClientCertKey"), "{texts:?}");
    }

    #[test]
    fn hosts_and_authorities_come_from_config_maps() {
        let hosts =
            json!({"metadata": {"name": KNOWN_HOSTS}, "data": {"ssh_known_hosts": "h ssh-ed25519 A"}});
        let authorities = json!({"metadata": {"name": CERTIFICATES}, "data": {"h": "PEM"}});
        let (access, _) = Access::from_objects(&[], &[hosts, authorities]);
        assert_eq!(access.known_hosts, "h ssh-ed25519 A");
        assert_eq!(access.certificates["h"], "PEM");
    }
}
