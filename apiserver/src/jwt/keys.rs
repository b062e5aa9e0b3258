//! Keys of tokens: read from PEM, told apart by an id, and published as a set. Knows no claims.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::digest;
use ring::rsa::PublicKeyComponents;
use ring::signature::KeyPair as _;
use serde_json::{Value, json};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::provider;

/// A file of keys that cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no PEM text.
    #[error("it is no PEM text")]
    NoPem,
    /// It holds nothing that is a key.
    #[error("it holds no key: expected a block PRIVATE KEY, RSA PRIVATE KEY or PUBLIC KEY")]
    Empty,
    /// A block is no key that can be used.
    #[error("its block {0} is no RSA key of at least 2048 bits and no key on P-256 in PKCS #8 form")]
    Unusable(String),
}

/// A key that checks tokens.
pub struct PublicKey {
    /// Its id, made of the key itself.
    pub id: String,
    /// Its algorithm.
    pub algorithm: Algorithm,
    /// The key.
    pub key: DecodingKey,
    told: Value,
}

/// A key that signs tokens.
pub struct SigningKey {
    /// Its public half.
    pub public: PublicKey,
    /// The key.
    pub key: EncodingKey,
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl PublicKey {
    fn ecdsa(point: &[u8]) -> Option<Self> {
        let (x, y) = point.strip_prefix(&[4])?.split_at_checked(32)?;
        let id = encode(digest::digest(&digest::SHA256, point).as_ref());
        let told = json!({"use": "sig", "kty": "EC", "kid": id, "crv": "P-256", "alg": "ES256", "x": encode(x), "y": encode(y)});
        let key = DecodingKey::from_ec_der(point);
        (y.len() == 32).then_some(Self { id, algorithm: Algorithm::ES256, key, told })
    }

    fn rsa(modulus: &[u8], exponent: &[u8]) -> Self {
        // A leading zero is of the encoding, not of the number.
        let bare = |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<u8>>();
        let (n, e) = (bare(modulus), bare(exponent));
        let id = encode(digest::digest(&digest::SHA256, &[n.as_slice(), e.as_slice()].concat()).as_ref());
        let told =
            json!({"use": "sig", "kty": "RSA", "kid": id, "alg": "RS256", "n": encode(&n), "e": encode(&e)});
        Self { id, algorithm: Algorithm::RS256, key: DecodingKey::from_rsa_raw_components(&n, &e), told }
    }

    fn of_block(der: &[u8]) -> Option<Self> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).ok()?;
        match info.parsed().ok()? {
            Parsed::EC(point) => Self::ecdsa(point.data()),
            Parsed::RSA(key) => Some(Self::rsa(key.modulus, key.exponent)),
            _ => None,
        }
    }
}

impl SigningKey {
    fn of_block(der: &[u8]) -> Option<Self> {
        if let Some(pair) = provider::ecdsa(der) {
            let public = PublicKey::ecdsa(pair.public_key().as_ref())?;
            return Some(Self { public, key: EncodingKey::from_ec_der(der) });
        }
        let pair = provider::rsa(der)?;
        let parts: PublicKeyComponents<Vec<u8>> = pair.public().into();
        Some(Self { public: PublicKey::rsa(&parts.n, &parts.e), key: EncodingKey::from_rsa_der(der) })
    }

    /// The first private key of a text.
    ///
    /// # Errors
    /// It holds none that can be used.
    pub fn read(pem: &str) -> Result<Self, KeyError> {
        let blocks = blocks(pem)?;
        let (label, der) =
            blocks.into_iter().find(|(label, _)| label.ends_with("PRIVATE KEY")).ok_or(KeyError::Empty)?;
        Self::of_block(&der).ok_or(KeyError::Unusable(label))
    }
}

/// All keys of a text that check tokens: the public halves of private ones too.
///
/// # Errors
/// It holds none, or one that cannot be used.
pub fn read_public(pem: &str) -> Result<Vec<PublicKey>, KeyError> {
    let mut keys = Vec::new();
    for (label, der) in blocks(pem)? {
        let key = match label.as_str() {
            "PUBLIC KEY" => PublicKey::of_block(&der),
            label if label.ends_with("PRIVATE KEY") => SigningKey::of_block(&der).map(|key| key.public),
            _ => continue,
        };
        keys.push(key.ok_or(KeyError::Unusable(label))?);
    }
    if keys.is_empty() { Err(KeyError::Empty) } else { Ok(keys) }
}

fn blocks(pem: &str) -> Result<Vec<(String, Vec<u8>)>, KeyError> {
    x509_parser::pem::Pem::iter_from_buffer(pem.as_bytes())
        .map(|block| block.map(|block| (block.label, block.contents)).map_err(|_| KeyError::NoPem))
        .collect()
}

/// The set of keys as it is published.
pub fn published(keys: &[PublicKey]) -> Value {
    json!({"keys": keys.iter().map(|key| key.told.clone()).collect::<Vec<_>>()})
}
