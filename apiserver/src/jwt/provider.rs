//! The algorithms of tokens by the library that TLS uses already: ECDSA on P-256 and RSA, both with SHA-256. Everything
//! else is refused.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents, UnparsedPublicKey,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    jwk_utils: JwkUtils::new_unimplemented(),
};

/// Has tokens signed and checked by these algorithms, for as long as the process runs. A second call changes nothing.
pub fn install() {
    if PROVIDER.install_default().is_err() {
        tracing::trace!("the algorithms of tokens are in place already");
    }
}

/// An RSA key, in either of its two forms.
pub fn rsa(der: &[u8]) -> Option<RsaKeyPair> {
    RsaKeyPair::from_pkcs8(der).or_else(|_| RsaKeyPair::from_der(der)).ok()
}

/// A key on P-256.
pub fn ecdsa(der: &[u8]) -> Option<EcdsaKeyPair> {
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new()).ok()
}

struct EcdsaSigner(EcdsaKeyPair);
struct RsaSigner(RsaKeyPair);
struct EcdsaVerifier(Vec<u8>);
struct RsaVerifier(RsaPublicKeyComponents<Vec<u8>>);

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    match algorithm {
        Algorithm::ES256 => match ecdsa(key.inner()) {
            Some(key) => Ok(Box::new(EcdsaSigner(key))),
            None => Err(ErrorKind::InvalidEcdsaKey.into()),
        },
        Algorithm::RS256 => match rsa(key.inner()) {
            Some(key) => Ok(Box::new(RsaSigner(key))),
            None => Err(ErrorKind::InvalidKeyFormat.into()),
        },
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    match (algorithm, key.kind()) {
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => Ok(Box::new(EcdsaVerifier(point.clone()))),
        (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Ok(Box::new(RsaVerifier(RsaPublicKeyComponents { n: n.clone(), e: e.clone() })))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

impl Signer<Vec<u8>> for EcdsaSigner {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        let signed = self.0.sign(&SystemRandom::new(), message).map_err(|_| SignatureError::new())?;
        Ok(signed.as_ref().to_vec())
    }
}

impl JwtSigner for EcdsaSigner {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}

impl Signer<Vec<u8>> for RsaSigner {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, SignatureError> {
        let mut signature = vec![0; self.0.public().modulus_len()];
        self.0
            .sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature)
            .map_err(|_| SignatureError::new())?;
        Ok(signature)
    }
}

impl JwtSigner for RsaSigner {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}

impl Verifier<Vec<u8>> for EcdsaVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.0)
            .verify(message, signature)
            .map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for EcdsaVerifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}

impl Verifier<Vec<u8>> for RsaVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        self.0.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RsaVerifier {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}
