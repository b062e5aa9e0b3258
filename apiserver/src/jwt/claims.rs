//! What tokens of service accounts claim: made, signed and checked, with the time passed in. Whether what they name is
//! still there is for others to look up.

use std::collections::BTreeMap;

use jsonwebtoken::{Header, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::keys::{PublicKey, SigningKey, published};
use super::provider;
use crate::authn::{User, service_account_groups, service_account_name};

/// Longest token that is looked at, in bytes.
const MAX_TOKEN: usize = 16 * 1024;
/// How far clocks may be apart, in seconds.
const CLOCK_SKEW: i64 = 10;

/// An object by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Name.
    pub name: String,
    /// Uid.
    #[serde(default)]
    pub uid: String,
}

/// Whose a token is, and what it ends with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Namespace of the account.
    pub namespace: String,
    /// The account.
    pub serviceaccount: Named,
    /// The pod that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Named>,
    /// The secret that it is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Named>,
    /// The node that it is bound to, or that its pod runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Named>,
}

/// All that a token claims.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// For whom it is.
    pub aud: Vec<String>,
    /// Second after which it counts no more.
    pub exp: i64,
    /// Second at which it was made.
    pub iat: i64,
    /// Who made it.
    pub iss: String,
    /// Its id.
    pub jti: String,
    /// Whose it is.
    #[serde(rename = "kubernetes.io")]
    pub binding: Binding,
    /// Second before which it does not count.
    pub nbf: i64,
    /// The account as a user.
    pub sub: String,
}

/// Why a token does not count.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is not of this issuer, or no token at all.
    #[error("the token is nobody's")]
    Foreign,
    /// No key of this server signed it.
    #[error("the token's signature is not of a key of this server")]
    Signature,
    /// It has expired, or does not count yet.
    #[error("the token has expired or is not valid yet")]
    Time,
    /// It is for others.
    #[error("the token's audiences do not include any that is asked for")]
    Audience,
    /// It claims to be of another account than it names.
    #[error("the token's claims contradict each other")]
    Odd,
}

/// A token could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the token cannot be signed")]
pub struct SignError(#[from] jsonwebtoken::errors::Error);

/// The keys of a server, and in whose name it makes tokens.
pub struct Issuer {
    /// The issuer that tokens name.
    pub name: String,
    /// The audiences that this server is.
    pub audiences: Vec<String>,
    signing: Option<SigningKey>,
    keys: Vec<PublicKey>,
}

impl Issuer {
    /// An issuer that signs with one key, if it has one, and checks with that and others.
    pub fn new(name: String, signing: Option<SigningKey>, keys: Vec<PublicKey>) -> Self {
        provider::install();
        Self { audiences: vec![name.clone()], name, signing, keys }
    }

    /// Whether it can make tokens.
    pub fn signs(&self) -> bool {
        self.signing.is_some()
    }

    /// Makes a token; `None` where there is no key to sign with.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn sign(&self, claims: &Claims) -> Result<Option<String>, SignError> {
        let Some(signing) = &self.signing else { return Ok(None) };
        let header = Header {
            kid: Some(signing.public.id.clone()),
            typ: None,
            ..Header::new(signing.public.algorithm)
        };
        Ok(Some(encode(&header, claims, &signing.key)?))
    }

    fn keys(&self) -> impl Iterator<Item = &PublicKey> {
        let own = self.signing.as_ref().map(|signing| &signing.public);
        let others = self.keys.iter().filter(move |key| own.is_none_or(|own| own.id != key.id));
        own.into_iter().chain(others)
    }

    /// Checks a token that should be for one of these audiences at an instant (in seconds).
    ///
    /// # Errors
    /// It does not count, and why.
    pub fn check(&self, token: &str, audiences: &[String], now: i64) -> Result<Claims, TokenError> {
        if token.len() > MAX_TOKEN {
            return Err(TokenError::Foreign);
        }
        let header = decode_header(token).map_err(|_| TokenError::Foreign)?;
        let named = |key: &&PublicKey| header.kid.as_ref().is_none_or(|id| *id == key.id);
        // A key named otherwise than by us may still be ours: older tokens of another server have other ids.
        let known = self.keys().any(|key| named(&key));
        let claims = self
            .keys()
            .filter(|key| !known || named(key))
            .find_map(|key| claims(token, key))
            .ok_or(TokenError::Signature)?;
        if claims.iss != self.name {
            return Err(TokenError::Foreign);
        }
        if now > claims.exp.saturating_add(CLOCK_SKEW) || now < claims.nbf.saturating_sub(CLOCK_SKEW) {
            return Err(TokenError::Time);
        }
        if !claims.aud.iter().any(|own| audiences.contains(own)) {
            return Err(TokenError::Audience);
        }
        let Binding { namespace, serviceaccount, .. } = &claims.binding;
        if claims.sub != service_account_name(namespace, &serviceaccount.name) {
            return Err(TokenError::Odd);
        }
        Ok(claims)
    }

    /// The keys that check tokens, as they are published.
    pub fn published(&self) -> Value {
        let own = self.signing.as_ref().map(|signing| published(std::slice::from_ref(&signing.public)));
        let mut all = own.unwrap_or_else(|| json!({"keys": []}));
        let id = self.signing.as_ref().map(|signing| signing.public.id.as_str());
        let others = published(&self.keys);
        if let (Some(all), Some(others)) = (all["keys"].as_array_mut(), others["keys"].as_array()) {
            all.extend(others.iter().filter(|key| key["kid"].as_str() != id).cloned());
        }
        all
    }

    /// What tells others how to check its tokens; the keys are found at an address.
    pub fn described(&self, keys_at: &str) -> Value {
        let mut algorithms: Vec<String> = self.keys().map(|key| format!("{:?}", key.algorithm)).collect();
        algorithms.sort();
        algorithms.dedup();
        json!({
            "issuer": self.name,
            "jwks_uri": keys_at,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
    }
}

/// The claims of a token, if a key signed them. Times and audiences are not looked at.
fn claims(token: &str, key: &PublicKey) -> Option<Claims> {
    let mut validation = Validation::new(key.algorithm);
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    decode::<Claims>(token, &key.key, &validation).ok().map(|data| data.claims)
}

impl Claims {
    /// The user that a token speaks for.
    pub fn user(&self) -> User {
        let Binding { namespace, serviceaccount, pod, node, .. } = &self.binding;
        let mut extra = BTreeMap::new();
        let mut tell = |name: &str, value: &str| {
            if !value.is_empty() {
                extra.insert(format!("authentication.kubernetes.io/{name}"), vec![value.to_owned()]);
            }
        };
        tell("credential-id", &format!("JTI={}", self.jti));
        for (kind, object) in [("pod", pod), ("node", node)] {
            if let Some(Named { name, uid }) = object {
                tell(&format!("{kind}-name"), name);
                tell(&format!("{kind}-uid"), uid);
            }
        }
        let groups = service_account_groups(namespace);
        let name = service_account_name(namespace, &serviceaccount.name);
        User { extra, ..User::known(name, serviceaccount.uid.clone(), groups) }
    }
}
