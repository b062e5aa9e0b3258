//! Paths of the API, as places. Pure.

/// The checks of a server's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// `/healthz`
    Health,
    /// `/livez`
    Live,
    /// `/readyz`
    Ready,
}

/// An object, a collection, or a part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// Group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Plural.
    pub resource: String,
    /// Name, or empty.
    pub name: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Whether the old `watch` prefix was used.
    pub watch: bool,
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// `/`
    Root,
    /// `/version`
    Version,
    /// `/metrics`
    Metrics,
    /// Health, and the single check if one is named.
    Health(Health, String),
    /// `/openapi/v2`
    OpenApi2,
    /// `/openapi/v3`
    OpenApi3,
    /// One document below it.
    OpenApi3Document(String),
    /// `/.well-known/openid-configuration`
    TokenIssuer,
    /// `/openid/v1/jwks`
    TokenKeys,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/<group>`
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`
    GroupVersion(String, String),
    /// Objects.
    Resource(ResourcePath),
    /// Nothing.
    Unknown,
}

/// Parts of a namespace, which look like resources in it.
const NAMESPACE_PARTS: &[&str] = &["status", "finalize"];

/// Reads a path.
pub fn parse(path: &str) -> Place {
    let Some(parts) = decode(path) else { return Place::Unknown };
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let health = |which, rest: &[&str]| Place::Health(which, rest.join("/"));
    match parts.as_slice() {
        [] => Place::Root,
        ["version"] => Place::Version,
        ["metrics"] => Place::Metrics,
        ["healthz", rest @ ..] => health(Health::Health, rest),
        ["livez", rest @ ..] => health(Health::Live, rest),
        ["readyz", rest @ ..] => health(Health::Ready, rest),
        ["openapi", "v2"] => Place::OpenApi2,
        ["openapi", "v3"] => Place::OpenApi3,
        ["openapi", "v3", rest @ ..] => Place::OpenApi3Document(rest.join("/")),
        [".well-known", "openid-configuration"] => Place::TokenIssuer,
        ["openid", "v1", "jwks"] => Place::TokenKeys,
        ["api"] => Place::CoreVersions,
        ["apis"] => Place::Groups,
        ["apis", group] => Place::Group((*group).to_owned()),
        ["api", version] => Place::GroupVersion(String::new(), (*version).to_owned()),
        ["apis", group, version] => Place::GroupVersion((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Place::Unknown,
    }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Place {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let mut found = ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        watch,
        ..ResourcePath::default()
    };
    let rest = match rest {
        ["namespaces", namespace, rest @ ..]
            if group.is_empty()
                && !rest.is_empty()
                && !(rest.len() == 1 && NAMESPACE_PARTS.contains(&rest[0])) =>
        {
            found.namespace = (*namespace).to_owned();
            rest
        }
        ["namespaces", namespace, rest @ ..] if !group.is_empty() && !rest.is_empty() => {
            found.namespace = (*namespace).to_owned();
            rest
        }
        rest => rest,
    };
    match rest {
        [resource] => found.resource = (*resource).to_owned(),
        [resource, name] => {
            found.resource = (*resource).to_owned();
            found.name = (*name).to_owned();
        }
        [resource, name, sub] => {
            found.resource = (*resource).to_owned();
            found.name = (*name).to_owned();
            found.subresource = (*sub).to_owned();
        }
        _ => return Place::Unknown,
    }
    Place::Resource(found)
}

/// The parts of a path, with `%xx` decoded; `None` where that is no text, or a part is no single name.
fn decode(path: &str) -> Option<Vec<String>> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    parts.map(|part| percent(part).filter(|p| !p.contains('/') && p != "." && p != "..")).collect()
}

/// Text with `%xx` decoded; `None` where that is no text.
pub fn percent(part: &str) -> Option<String> {
    let mut out = Vec::with_capacity(part.len());
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |b: u8| char::from(b).to_digit(16);
            let value = digit(bytes.next()?)? * 16 + digit(bytes.next()?)?;
            out.push(u8::try_from(value).ok()?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &str) -> (String, String, String, String, String) {
        let Place::Resource(r) = parse(path) else { panic!("{path}: {:?}", parse(path)) };
        (r.group, r.namespace, r.resource, r.name, r.subresource)
    }

    #[test]
    fn paths_name_their_places() {
        let s = |a: &str, b: &str, c: &str, d: &str, e: &str| {
            (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned(), e.to_owned())
        };
        assert_eq!(at("/api/v1/pods"), s("", "", "pods", "", ""));
        assert_eq!(at("/api/v1/namespaces/n/pods/p/log"), s("", "n", "pods", "p", "log"));
        assert_eq!(at("/api/v1/namespaces/n"), s("", "", "namespaces", "n", ""));
        assert_eq!(at("/api/v1/namespaces/n/status"), s("", "", "namespaces", "n", "status"));
        assert_eq!(at("/api/v1/namespaces/n/finalize"), s("", "", "namespaces", "n", "finalize"));
        assert_eq!(
            at("/apis/apps/v1/namespaces/n/deployments/d/scale"),
            s("apps", "n", "deployments", "d", "scale")
        );
        assert_eq!(at("/api/v1/watch/namespaces/n/pods"), s("", "n", "pods", "", ""));
        assert_eq!(at("/api/v1/nodes/a%3ab"), s("", "", "nodes", "a:b", ""));
    }

    #[test]
    fn everything_else_is_found_or_unknown() {
        assert_eq!(parse("/"), Place::Root);
        assert_eq!(parse("/apis/apps/v1/"), Place::GroupVersion("apps".to_owned(), "v1".to_owned()));
        assert_eq!(parse("/openapi/v3/apis/apps/v1"), Place::OpenApi3Document("apis/apps/v1".to_owned()));
        assert_eq!(parse("/readyz/store"), Place::Health(Health::Ready, "store".to_owned()));
        for path in
            ["/nope", "/api/v1/pods/a/b/c/d", "/api/v1/pods/%zz", "/api/v1/pods/a%2fb", "/api/v1/pods/%2e%2e"]
        {
            assert_eq!(parse(path), Place::Unknown, "{path}");
        }
    }
}
