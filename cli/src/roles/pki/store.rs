//! Pki: the certificates of a data directory, made where they are missing and renewed where they no longer serve.
//! Knows the directory, never who uses what.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use tracing::info;

use super::leaf::{Authority, Leaf, Pair};
use crate::roles::files::{self, FileError};

/// Why the certificates cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The authority's files are there and make no sense.
    #[error(
        "the certificate authority in {path} is damaged or half missing: restore ca.crt and ca.key, or remove that \
         directory and all certificates are made anew"
    )]
    Authority {
        /// The directory of the certificates.
        path: PathBuf,
        /// What is wrong with them.
        #[source]
        source: rcgen::Error,
    },
    /// A certificate cannot be made.
    #[error("cannot make the certificate of {user}")]
    Issue {
        /// Whom it would speak for.
        user: String,
        /// Why not.
        #[source]
        source: rcgen::Error,
    },
}

/// The certificates of a data directory.
pub struct Pki {
    dir: PathBuf,
    authority: Authority,
}

impl Pki {
    /// Loads the authority of `dir`, or makes one: where there is none, and where the old one ends within a month.
    ///
    /// # Errors
    /// Files that cannot be read or written, or that make no sense.
    pub fn open(dir: &Path, now: Timestamp) -> Result<Pki, PkiError> {
        let (certificate, key) = (dir.join("ca.crt"), dir.join("ca.key"));
        let found = (files::read_text(&certificate)?, files::read_text(&key)?);
        let damaged = |source| PkiError::Authority { path: dir.to_owned(), source };
        let authority = match found {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(Authority::load(&Pair { certificate, key }).map_err(damaged)?)
            }
            _ => return Err(damaged(rcgen::Error::CouldNotParseKeyPair)),
        };
        let authority = match authority.filter(|authority| !authority.is_ending(now)) {
            Some(authority) => authority,
            None => {
                let (authority, pair) = Authority::create(now)
                    .map_err(|source| PkiError::Issue { user: "strata-ca".to_owned(), source })?;
                write(&key, &certificate, &pair)?;
                authority
            }
        };
        Ok(Pki { dir: dir.to_owned(), authority })
    }

    /// The authority's certificate, as PEM.
    pub fn authority(&self) -> &str {
        self.authority.certificate()
    }

    /// The authority's certificate file.
    pub fn authority_file(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    /// The authority's key file.
    pub fn authority_key_file(&self) -> PathBuf {
        self.dir.join("ca.key")
    }

    /// The files of a leaf: its certificate and its key.
    pub fn files(&self, leaf: &str) -> (PathBuf, PathBuf) {
        (self.dir.join(format!("{leaf}.crt")), self.dir.join(format!("{leaf}.key")))
    }

    /// The leaf's certificate: the one that is there while it serves, else a new one.
    ///
    /// # Errors
    /// As of [`Pki::open`].
    pub fn ensure(&self, leaf: &Leaf, now: Timestamp) -> Result<Pair, PkiError> {
        let (certificate, key) = self.files(&leaf.file);
        if let (Some(certificate), Some(key)) = (files::read_text(&certificate)?, files::read_text(&key)?) {
            let pair = Pair { certificate, key };
            match self.authority.judge(leaf, &pair, now) {
                None => return Ok(pair),
                Some(reason) => info!(user = leaf.user, ?reason, "certificate is made anew"),
            }
        }
        let pair = self
            .authority
            .issue(leaf, now)
            .map_err(|source| PkiError::Issue { user: leaf.user.clone(), source })?;
        write(&key, &certificate, &pair)?;
        Ok(pair)
    }

    /// Makes the key pair `NAME.key` and `NAME.pub` where it is missing.
    ///
    /// # Errors
    /// As of [`Pki::open`].
    pub fn ensure_key(&self, name: &str) -> Result<(), PkiError> {
        let (private, public) = (self.dir.join(format!("{name}.key")), self.dir.join(format!("{name}.pub")));
        let failed = |source| PkiError::Issue { user: name.to_owned(), source };
        let key = match files::read_text(&private)? {
            Some(pem) => KeyPair::from_pem(&pem).map_err(failed)?,
            None => {
                let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
                files::write_private(&private, key.serialize_pem().as_bytes())?;
                key
            }
        };
        files::write_if_changed(&public, key.public_key_pem().as_bytes())?;
        Ok(())
    }
}

/// The key goes first: a certificate without its key would look whole, the other way round it is made anew.
fn write(key: &Path, certificate: &Path, pair: &Pair) -> Result<(), FileError> {
    files::write_private(key, pair.key.as_bytes())?;
    files::write_private(certificate, pair.certificate.as_bytes())
}
