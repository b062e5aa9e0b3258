//! Leaf: who a certificate speaks for and for how long; making one, and judging one that is there. Pure but for the
//! randomness of keys: the time is passed in.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer, X509Certificate};

/// How long the authority is valid.
const CA_LIFE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How long a leaf is valid.
const LEAF_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// A certificate with less left than this is made anew.
pub const RENEW_BEFORE: Duration = Duration::from_secs(30 * 24 * 3600);
/// How far clocks may be apart.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);

/// What a certificate may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// To be known to a server.
    Client,
    /// To serve.
    Server,
    /// Both: the node agent, which serves logs and speaks to the API server.
    ClientAndServer,
}

/// A name or address that a server answers to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum San {
    /// A DNS name.
    Name(String),
    /// An IP address.
    Address(IpAddr),
}

/// One identity's certificate, before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its files are `FILE.crt` and `FILE.key`.
    pub file: String,
    /// The user that it speaks for (common name).
    pub user: String,
    /// The user's group (organization).
    pub group: Option<String>,
    /// What it is for.
    pub usage: Use,
    /// What a server answers to; empty for clients.
    pub sans: BTreeSet<San>,
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key, PKCS #8.
    pub key: String,
}

/// The authority that signs.
pub struct Authority {
    certificate: String,
    key_id: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority, valid from `now` for ten years. The second value is what to keep.
    ///
    /// # Errors
    /// No randomness.
    pub fn create(now: Timestamp) -> Result<(Authority, Pair), rcgen::Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = params("strata-ca", None, now, CA_LIFE);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&key)?.pem();
        let pair = Pair { certificate: certificate.clone(), key: key.serialize_pem() };
        Ok((Authority::load(&pair)?, pair))
    }

    /// The authority that was kept.
    ///
    /// # Errors
    /// One of the two is not what it should be.
    pub fn load(pair: &Pair) -> Result<Authority, rcgen::Error> {
        let key = KeyPair::from_pem(&pair.key)?;
        let der = der(&pair.certificate).ok_or(rcgen::Error::CouldNotParseCertificate)?;
        let (_, parsed) =
            X509Certificate::from_der(&der).map_err(|_| rcgen::Error::CouldNotParseCertificate)?;
        let key_id = extension(&parsed, |found| match found {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        })
        .ok_or(rcgen::Error::CouldNotParseCertificate)?;
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            return Err(rcgen::Error::CouldNotParseKeyPair);
        }
        let issuer = Issuer::from_ca_cert_pem(&pair.certificate, key)?;
        Ok(Authority { certificate: pair.certificate.clone(), key_id, issuer })
    }

    /// Its certificate, which everybody who trusts it needs.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Whether the authority itself must be made anew.
    pub fn is_ending(&self, now: Timestamp) -> bool {
        der(&self.certificate)
            .and_then(|der| X509Certificate::from_der(&der).ok().map(|(_, parsed)| is_ending(&parsed, now)))
            .unwrap_or(true)
    }

    /// Makes the leaf's certificate, with a new key, valid from `now` for a year.
    ///
    /// # Errors
    /// A name that no certificate can carry.
    pub fn issue(&self, leaf: &Leaf, now: Timestamp) -> Result<Pair, rcgen::Error> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = params(&leaf.user, leaf.group.as_deref(), now, LEAF_LIFE);
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match leaf.usage {
            Use::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
            Use::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Use::ClientAndServer => {
                vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth]
            }
        };
        for san in &leaf.sans {
            params.subject_alt_names.push(match san {
                San::Name(name) => SanType::DnsName(name.as_str().try_into()?),
                San::Address(address) => SanType::IpAddress(*address),
            });
        }
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }

    /// Why a certificate that is there must be made anew; `None` while it serves.
    pub fn judge(&self, leaf: &Leaf, pair: &Pair, now: Timestamp) -> Option<Unfit> {
        let Some(der) = der(&pair.certificate) else { return Some(Unfit::Unreadable) };
        let Ok((_, parsed)) = X509Certificate::from_der(&der) else { return Some(Unfit::Unreadable) };
        let Ok(key) = KeyPair::from_pem(&pair.key) else { return Some(Unfit::Unreadable) };
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            return Some(Unfit::Unreadable);
        }
        let authority = extension(&parsed, |found| match found {
            ParsedExtension::AuthorityKeyIdentifier(id) => id.key_identifier.as_ref().map(|id| id.0.to_vec()),
            _ => None,
        });
        if authority.as_ref() != Some(&self.key_id) {
            return Some(Unfit::OtherAuthority);
        }
        if is_ending(&parsed, now) {
            return Some(Unfit::Ending);
        }
        let subject = |mut names: Vec<&str>| (names.len() == 1).then(|| names.remove(0).to_owned());
        let user = subject(parsed.subject().iter_common_name().filter_map(|n| n.as_str().ok()).collect());
        let group = subject(parsed.subject().iter_organization().filter_map(|n| n.as_str().ok()).collect());
        if user.as_deref() != Some(&leaf.user) || group != leaf.group || sans(&parsed) != leaf.sans {
            return Some(Unfit::OtherNames);
        }
        None
    }
}

/// Why a certificate is made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It or its key cannot be read, or they do not belong together.
    Unreadable,
    /// Another authority signed it.
    OtherAuthority,
    /// It has expired or soon will, or is not valid yet.
    Ending,
    /// It speaks for other names.
    OtherNames,
}

/// The DER bytes of a PEM certificate.
fn der(pem: &str) -> Option<Vec<u8>> {
    let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).ok()?;
    Some(block.contents)
}

fn is_ending(certificate: &X509Certificate<'_>, now: Timestamp) -> bool {
    let validity = certificate.validity();
    let renew = i64::try_from(RENEW_BEFORE.as_secs()).unwrap_or(i64::MAX);
    validity.not_before.timestamp() > now.as_second()
        || validity.not_after.timestamp().saturating_sub(renew) < now.as_second()
}

/// The first extension that `pick` takes.
fn extension<T>(
    certificate: &X509Certificate<'_>,
    pick: impl Fn(&ParsedExtension<'_>) -> Option<T>,
) -> Option<T> {
    certificate.extensions().iter().find_map(|extension| pick(extension.parsed_extension()))
}

/// The names that a certificate answers to.
fn sans(certificate: &X509Certificate<'_>) -> BTreeSet<San> {
    extension(certificate, |found| match found {
        ParsedExtension::SubjectAlternativeName(names) => {
            Some(names.general_names.iter().filter_map(san).collect())
        }
        _ => None,
    })
    .unwrap_or_default()
}

fn san(name: &GeneralName<'_>) -> Option<San> {
    match name {
        GeneralName::DNSName(name) => Some(San::Name((*name).to_owned())),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| San::Address(bytes.into())),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| San::Address(bytes.into())),
            _ => None,
        },
        _ => None,
    }
}

/// What all certificates have in common.
fn params(user: &str, group: Option<&str>, now: Timestamp, life: Duration) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut name = DistinguishedName::new();
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    name.push(DnType::CommonName, user);
    params.distinguished_name = name;
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
    params.not_after = epoch + now + life;
    params
}
