//! ConfigMaps, Secrets and ServiceAccounts: data that pods use.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::{FieldError, FieldPath};

use super::rules::{AGE, Column, Faults, NAME, PLAIN, Rules, column, field};
use super::{meta, print};
use crate::value::{default, flag, list, members, object, text};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Most bytes of data that one object may hold.
pub const MAX_DATA_BYTES: usize = 1024 * 1024;

/// Longest key.
const MAX_KEY: usize = 253;

const KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
    'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Keys that a secret of a type must have.
const REQUIRED_KEYS: &[(&str, &[&str])] = &[
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
];

/// Rules of config maps.
pub static CONFIG_MAP: Rules = Rules {
    validate: |map, faults| check_data(map, &["data", "binaryData"], faults),
    validate_update: |new, old, faults| frozen(new, old, &["data", "binaryData"], faults),
    columns: const { &[NAME, column("Data", "How many entries it has."), AGE] as &[Column] },
    row: |map, now| {
        let entries = count(map, "data") + count(map, "binaryData");
        vec![print::name(map), json!(entries), print::created(map, now)]
    },
    ..PLAIN
};

/// Rules of secrets.
pub static SECRET: Rules = Rules {
    defaults: secret_defaults,
    validate: secret_validate,
    validate_update: |new, old, faults| {
        meta::immutable(new, old, &["type"], faults);
        frozen(new, old, &["data"], faults);
    },
    columns: const {
        &[NAME, column("Type", "What it is for."), column("Data", "How many entries it has."), AGE]
            as &[Column]
    },
    row: secret_row,
    fields: const { &[field("type", &["/type"])] },
    ..PLAIN
};

/// Rules of service accounts.
pub static SERVICE_ACCOUNT: Rules = Rules {
    columns: const { &[NAME, column("Secrets", "How many secrets it may use."), AGE] as &[Column] },
    row: |account, now| {
        vec![print::name(account), json!(list(account, &["secrets"]).len()), print::created(account, now)]
    },
    ..PLAIN
};

fn count(object: &Value, field: &str) -> usize {
    members(object, &[field]).map_or(0, serde_json::Map::len)
}

fn check_data(object: &Value, fields: &[&str], faults: &mut Faults) {
    let mut size = 0;
    for name in fields {
        for (key, value) in members(object, &[name]).into_iter().flatten() {
            size += value.as_str().unwrap_or_default().len();
            let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
            if key.is_empty() || key.len() > MAX_KEY || !key.bytes().all(known) {
                faults.push(FieldError::invalid(FieldPath::new(name).key(key), key, KEY_RULE));
            }
            if *name == "data"
                && fields.len() > 1
                && members(object, &["binaryData"]).is_some_and(|b| b.contains_key(key))
            {
                let detail = "duplicate of key present in binaryData";
                faults.push(FieldError::invalid(FieldPath::new(name).key(key), key, detail));
            }
        }
    }
    if size > MAX_DATA_BYTES {
        faults.push(FieldError::too_long(FieldPath::new(""), MAX_DATA_BYTES));
    }
}

fn frozen(new: &Value, old: &Value, fields: &[&str], faults: &mut Faults) {
    if !flag(old, &["immutable"]) {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if !flag(new, &["immutable"]) {
        faults.push(FieldError::forbidden(FieldPath::new("immutable"), detail));
    }
    for name in fields {
        if new.get(name) != old.get(name) {
            faults.push(FieldError::forbidden(FieldPath::new(name), detail));
        }
    }
}

fn secret_defaults(secret: &mut Value) {
    let members = object(secret);
    default(members, "type", "Opaque");
    if let Some(Value::Object(plain)) = members.remove("stringData") {
        let data = object(members.entry("data").or_insert(Value::Null));
        for (key, value) in plain {
            data.insert(key, json!(STANDARD.encode(value.as_str().unwrap_or_default())));
        }
    }
}

fn secret_validate(secret: &Value, faults: &mut Faults) {
    check_data(secret, &["data"], faults);
    let kind = text(secret, &["type"]);
    let path = FieldPath::new("data");
    let required = REQUIRED_KEYS.iter().find(|(k, _)| *k == kind).map_or(&[][..], |(_, keys)| *keys);
    for key in required {
        if secret.get("data").and_then(|d| d.get(key)).is_none() {
            faults.push(FieldError::required(path.key(key), ""));
        }
    }
    let given = |key: &str| secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str);
    if kind == "kubernetes.io/basic-auth" && given("username").is_none() && given("password").is_none() {
        faults.push(FieldError::required(path.key("username"), ""));
        faults.push(FieldError::required(path.key("password"), ""));
    }
    for key in [".dockercfg", ".dockerconfigjson"].iter().filter(|key| required.contains(key)) {
        let decoded = given(key).and_then(|text| STANDARD.decode(text).ok());
        if decoded.is_some_and(|bytes| serde_json::from_slice::<Value>(&bytes).is_err()) {
            let detail = "<secret contents redacted>";
            faults.push(FieldError::invalid(
                path.key(key),
                detail,
                "invalid character looking for beginning of value",
            ));
        }
    }
    let account = "kubernetes.io/service-account.name";
    if kind == "kubernetes.io/service-account-token"
        && text(secret, &["metadata", "annotations", account]).is_empty()
    {
        faults.push(FieldError::required(meta::path().child("annotations").key(account), ""));
    }
}

fn secret_row(secret: &Value, now: Timestamp) -> Vec<Value> {
    let kind = json!(text(secret, &["type"]));
    vec![print::name(secret), kind, json!(count(secret, "data")), print::created(secret, now)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_of_secrets_becomes_data() {
        let mut secret = json!({"stringData": {"a": "b"}, "data": {"c": "ZA=="}});
        secret_defaults(&mut secret);
        assert_eq!(secret, json!({"type": "Opaque", "data": {"a": "Yg==", "c": "ZA=="}}));
    }

    #[test]
    fn keys_and_frozen_data_are_checked() {
        let mut faults = Vec::new();
        check_data(
            &json!({"data": {"a b": "c", "d": "e"}, "binaryData": {"d": ""}}),
            &["data", "binaryData"],
            &mut faults,
        );
        assert_eq!(faults.len(), 2, "{faults:?}");
        faults.clear();
        let old = json!({"immutable": true, "data": {"a": "b"}});
        frozen(&json!({"data": {"a": "c"}}), &old, &["data"], &mut faults);
        assert_eq!(faults.len(), 2, "{faults:?}");
        faults.clear();
        secret_validate(&json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}), &mut faults);
        assert_eq!(faults[0].to_string(), "data[tls.key]: Required value");
        faults.clear();
        secret_validate(&json!({"type": "kubernetes.io/basic-auth", "data": {}}), &mut faults);
        let config = json!({"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "bm8="}});
        secret_validate(&config, &mut faults);
        assert_eq!(faults.len(), 3, "{faults:?}");
    }
}
