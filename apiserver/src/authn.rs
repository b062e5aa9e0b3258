//! Who asks: a client certificate or a bearer token, turned into a user. Reads no sockets and no files.

use std::collections::{BTreeMap, HashMap};

use x509_parser::prelude::{FromDer, X509Certificate};

/// Group of everybody who showed who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Group of everybody else.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Name of everybody else.
pub const ANONYMOUS: &str = "system:anonymous";

/// Group of all service accounts; those of a namespace are in this group, a colon and the namespace.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
/// What the names of service accounts as users begin with; namespace, a colon and the name follow.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The name of a service account as a user.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Namespace and name of a service account, where a user's name is that of one.
pub fn service_account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The groups of a namespace's service accounts.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}

/// An identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Unique id, where the source has one.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else the source tells, such as the pod that a token is bound to.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody known, in the groups given and in the group of all authenticated users.
    pub fn known(name: impl Into<String>, uid: impl Into<String>, mut groups: Vec<String>) -> Self {
        if !groups.iter().any(|g| g == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { name: name.into(), uid: uid.into(), groups, extra: BTreeMap::new() }
    }

    /// Somebody who showed nothing.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
        }
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether nobody knows who this is.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }
}

/// A line of a token file that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("token file line {line}: {fault}; a line is `token,user,uid[,\"group1,group2\"]`")]
pub struct TokenFileError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: &'static str,
}

/// Bearer tokens and whose they are, from the CSV file kube-apiserver knows as `--token-auth-file`.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    users: HashMap<String, User>,
}

impl Tokens {
    /// Reads the file's text: `token,user,uid[,"group1,group2"]`, one a line; empty lines and `#` lines are skipped.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut users = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let fault = |fault| TokenFileError { line: index + 1, fault };
            let columns = columns(line).ok_or_else(|| fault("a quote is not closed"))?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                return Err(fault("fewer than three columns"));
            };
            if token.is_empty() || name.is_empty() {
                return Err(fault("token and user may not be empty"));
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups =
                groups.split(',').map(str::trim).filter(|g| !g.is_empty()).map(str::to_owned).collect();
            if users.insert(token.clone(), User::known(name, uid, groups)).is_some() {
                return Err(fault("the token is there twice"));
            }
        }
        Ok(Self { users })
    }

    /// Whose token it is.
    pub fn user(&self, token: &str) -> Option<&User> {
        self.users.get(token)
    }
}

/// The columns of a CSV line; `None` where a quote stays open.
fn columns(line: &str) -> Option<Vec<String>> {
    let (mut columns, mut column, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                column.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(std::mem::take(&mut column).trim().to_owned()),
            other => column.push(other),
        }
    }
    columns.push(column.trim().to_owned());
    (!quoted).then_some(columns)
}

/// The user a verified client certificate names: its common name, with its organisations as groups.
pub fn of_certificate(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    (!name.is_empty()).then(|| User::known(name, "", groups))
}

/// Whom a request asks to be taken for instead of who sent it: `Impersonate-User` and its companions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impersonation {
    /// Name.
    pub name: String,
    /// Unique id, or empty.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else is to be told of them.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The user that is meant. A service account is in its groups even where none are asked for.
    pub fn user(mut self) -> User {
        if self.name == ANONYMOUS {
            return User::anonymous();
        }
        if let Some((namespace, _)) = service_account(&self.name).filter(|_| self.groups.is_empty()) {
            self.groups = service_account_groups(namespace);
        }
        User { extra: self.extra, ..User::known(self.name, self.uid, self.groups) }
    }
}

/// The token of an `Authorization` header, if it is of the bearer kind.
pub fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|t| !t.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_files_are_read_as_kube_apiserver_reads_them() {
        let text = "# people\nabc,alice,1,\"dev,system:masters\"\n\nxyz,bob,2\n";
        let tokens = Tokens::parse(text).unwrap();
        assert!(tokens.user("abc").unwrap().is_in("system:masters"));
        assert_eq!(tokens.user("xyz").unwrap().groups, [AUTHENTICATED]);
        assert_eq!(tokens.user("nope"), None);
    }

    #[test]
    fn faults_of_a_token_file_name_their_line() {
        for (text, line) in [("a,b", 1), ("a,b,c\na,b,c", 2), ("a,\"b,c,d", 1), (",b,c", 1)] {
            assert_eq!(Tokens::parse(text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn only_bearer_tokens_count() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc "), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearer"), None);
    }
}
