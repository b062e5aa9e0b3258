//! The rules names, labels and annotations follow (Kubernetes "Object Names and IDs", RFC 1123, RFC 1035).
//! Each check answers with the sentence a user should read, or nothing.

/// Longest DNS label.
pub const LABEL_MAX: usize = 63;
/// Longest DNS subdomain.
pub const SUBDOMAIN_MAX: usize = 253;
/// Most bytes that the annotations of one object may hold together.
pub const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
/// Longest prefix of `generateName` that is kept, so that the name fits a DNS label.
pub const GENERATE_NAME_PREFIX_MAX: usize = 58;
/// Characters of a generated suffix: no vowels and no look-alikes, so that no words arise.
pub const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Length of a generated suffix.
pub const SUFFIX_LENGTH: usize = 5;

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
     and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
     '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
     validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
     with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', \
     regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start \
     and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
     validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
     '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
     regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// A check of one name: `None` is fine, `Some` says what is wrong.
pub type NameRule = fn(&str) -> Option<String>;

/// RFC 1123 label: namespaces, container names.
pub fn dns_label(name: &str) -> Option<String> {
    if name.len() > LABEL_MAX {
        return Some(too_long(LABEL_MAX));
    }
    (!is_label(name)).then(|| LABEL_RULE.to_owned())
}

/// RFC 1123 subdomain: most object names.
pub fn dns_subdomain(name: &str) -> Option<String> {
    if name.len() > SUBDOMAIN_MAX {
        return Some(too_long(SUBDOMAIN_MAX));
    }
    (!name.split('.').all(is_label)).then(|| SUBDOMAIN_RULE.to_owned())
}

/// RFC 1035 label: Services.
pub fn dns_1035_label(name: &str) -> Option<String> {
    if name.len() > LABEL_MAX {
        return Some(too_long(LABEL_MAX));
    }
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    (!(starts && is_label(name))).then(|| LABEL_1035_RULE.to_owned())
}

/// A name that must only be one path segment: RBAC.
pub fn path_segment(name: &str) -> Option<String> {
    match name {
        "." | ".." => Some(format!("may not be '{name}'")),
        _ if name.contains('/') => Some("may not contain '/'".to_owned()),
        _ if name.contains('%') => Some("may not contain '%'".to_owned()),
        _ => None,
    }
}

/// A label or annotation key: `[prefix/]name`.
pub fn qualified_name(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty".to_owned());
        }
        if let Some(fault) = dns_subdomain(prefix) {
            return Some(format!("prefix part {fault}"));
        }
    }
    if name.contains('/') {
        return Some("a qualified name must have at most one '/'".to_owned());
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > LABEL_MAX {
        return Some(format!("name part {}", too_long(LABEL_MAX)));
    }
    (!is_qualified(name)).then(|| QUALIFIED_RULE.to_owned())
}

/// A label value.
pub fn label_value(value: &str) -> Option<String> {
    if value.len() > LABEL_MAX {
        return Some(too_long(LABEL_MAX));
    }
    (!value.is_empty() && !is_qualified(value)).then(|| VALUE_RULE.to_owned())
}

/// The name made from a `generateName` prefix. `random` gives the next random number.
pub fn generate(prefix: &str, mut random: impl FnMut() -> u32) -> String {
    let mut end = prefix.len().min(GENERATE_NAME_PREFIX_MAX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix[..end].to_owned();
    for _ in 0..SUFFIX_LENGTH {
        name.push(char::from(SUFFIX_ALPHABET[random() as usize % SUFFIX_ALPHABET.len()]));
    }
    name
}

/// A short stable text for a hash, in the same alphabet as generated names.
pub fn safe_encode(hash: u32) -> String {
    hash.to_string()
        .bytes()
        .map(|b| char::from(SUFFIX_ALPHABET[b as usize % SUFFIX_ALPHABET.len()]))
        .collect()
}

/// FNV-1a over bytes, 32 bit: stable across releases, as names are made from it.
pub fn fnv32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, b| (hash ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn is_label(text: &str) -> bool {
    let alnum = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|b| alnum(*b))
        && bytes.last().is_some_and(|b| alnum(*b))
        && bytes.iter().all(|b| alnum(*b) || *b == b'-')
}

fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rules() {
        let cases: &[(NameRule, &str, bool)] = &[
            (dns_label, "a-1", true),
            (dns_label, "-a", false),
            (dns_label, "a.b", false),
            (dns_label, "", false),
            (dns_subdomain, "a.b-c.d", true),
            (dns_subdomain, "a..b", false),
            (dns_subdomain, "A", false),
            (dns_1035_label, "1a", false),
            (dns_1035_label, "a1", true),
            (path_segment, "system:node", true),
            (path_segment, "a/b", false),
            (qualified_name, "example.com/Name_1", true),
            (qualified_name, "/x", false),
            (qualified_name, "a/b/c", false),
            (label_value, "", true),
            (label_value, "a b", false),
        ];
        for (rule, name, fine) in cases {
            assert_eq!(rule(name).is_none(), *fine, "{name}: {:?}", rule(name));
        }
        assert!(dns_label(&"a".repeat(64)).is_some());
        assert!(dns_subdomain(&"a".repeat(254)).is_some());
    }

    #[test]
    fn generated_names_keep_the_prefix_and_fit_a_label() {
        let mut n = 0;
        let name = generate("web-", || {
            n += 1;
            n
        });
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generate(&"x".repeat(80), || 0).len(), 63);
        assert_eq!(safe_encode(fnv32(b"abc")), safe_encode(fnv32(b"abc")));
    }
}
