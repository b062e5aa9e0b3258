//! The authority's key: signs requests for certificates that were found to be in order, and says what is not. Knows no
//! objects.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rcgen::{
    CertificateSigningRequestParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use strata_plan::certificates::{Authority, Signer, Wanted};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Longest life of a certificate, and its life where the request does not say.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// How far clocks may be apart.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// The key and certificate of an authority.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// Second at which the authority itself ends.
    ends: i64,
}

/// An authority whose files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The certificate is none.
    #[error("the authority's certificate cannot be read")]
    Certificate,
    /// They are no certificate and key that belong together.
    #[error("the authority's key cannot be used with its certificate")]
    Key(#[from] rcgen::Error),
}

/// The authority of a certificate and its key, PEM, as controllers use it.
///
/// # Errors
/// They cannot be used.
pub fn authority(certificate: &str, key: &str) -> Result<Arc<dyn Authority>, AuthorityError> {
    Ok(Arc::new(CertificateAuthority::load(certificate, key)?))
}

impl CertificateAuthority {
    /// The authority of a certificate and its key, PEM.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn load(certificate: &str, key: &str) -> Result<Self, AuthorityError> {
        let key = KeyPair::from_pem(key)?;
        let (_, block) = x509_parser::pem::parse_x509_pem(certificate.as_bytes())
            .map_err(|_| AuthorityError::Certificate)?;
        let (_, parsed) =
            X509Certificate::from_der(&block.contents).map_err(|_| AuthorityError::Certificate)?;
        if parsed.public_key().subject_public_key.data.as_ref() != key.public_key_raw() {
            return Err(rcgen::Error::CouldNotParseKeyPair.into());
        }
        let ends = parsed.validity().not_after.timestamp();
        Ok(Self { issuer: Issuer::from_ca_cert_pem(certificate, key)?, ends })
    }

    fn lifetime(&self, wanted: &Wanted<'_>) -> Duration {
        let asked = wanted.seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
        let left = u64::try_from(self.ends.saturating_sub(wanted.now.as_second())).unwrap_or(0);
        asked.unwrap_or(LONGEST).min(LONGEST).min(Duration::from_secs(left))
    }
}

impl Authority for CertificateAuthority {
    fn sign(&self, wanted: &Wanted<'_>) -> Result<String, String> {
        let bytes = STANDARD.decode(wanted.request).map_err(|_| "the request is no base64".to_owned())?;
        let pem = String::from_utf8(bytes).map_err(|_| "the request is no PEM text".to_owned())?;
        check(wanted, &pem)?;
        let mut asked = CertificateSigningRequestParams::from_pem(&pem)
            .map_err(|error| format!("the request cannot be used: {error}"))?;
        let life = self.lifetime(wanted);
        let now = since_epoch(wanted.now);
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        asked.params.not_before = epoch + now.saturating_sub(CLOCK_SKEW);
        asked.params.not_after = epoch + now + life;
        asked.params.is_ca = IsCa::ExplicitNoCa;
        asked.params.use_authority_key_identifier_extension = true;
        asked.params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        if wanted.usages.contains(&"key encipherment") {
            asked.params.key_usages.push(KeyUsagePurpose::KeyEncipherment);
        }
        asked.params.extended_key_usages = vec![match wanted.signer {
            Signer::Client | Signer::KubeletClient => ExtendedKeyUsagePurpose::ClientAuth,
            Signer::KubeletServing => ExtendedKeyUsagePurpose::ServerAuth,
        }];
        let made = asked.signed_by(&self.issuer).map_err(|error| format!("it cannot be signed: {error}"))?;
        Ok(made.pem())
    }
}

fn since_epoch(now: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0))
}

/// Checks that the subject and names of a request are such as its signer gives.
fn check(wanted: &Wanted<'_>, pem: &str) -> Result<(), String> {
    let unreadable = || "the request is no PKCS #10 request for a certificate".to_owned();
    let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(|_| unreadable())?;
    let (_, parsed) = X509CertificationRequest::from_der(&block.contents).map_err(|_| unreadable())?;
    if wanted.signer == Signer::Client {
        return Ok(());
    }
    let subject = &parsed.certification_request_info.subject;
    let groups: Vec<&str> = subject.iter_organization().filter_map(|part| part.as_str().ok()).collect();
    if groups != ["system:nodes"] {
        return Err("the subject's organization is not exactly system:nodes".to_owned());
    }
    let name = subject.iter_common_name().next().and_then(|part| part.as_str().ok()).unwrap_or_default();
    if !name.starts_with("system:node:") {
        return Err("the subject's common name does not begin with system:node:".to_owned());
    }
    let named = parsed
        .requested_extensions()
        .into_iter()
        .flatten()
        .any(|part| matches!(part, ParsedExtension::SubjectAlternativeName(_)));
    match wanted.signer {
        Signer::KubeletServing if name != wanted.user => {
            Err(format!("the subject's common name is not that of who asks ({})", wanted.user))
        }
        Signer::KubeletServing if !named => Err("no name or address is asked for".to_owned()),
        Signer::KubeletClient if named => Err("a client's certificate has no names or addresses".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, DnType};

    fn authority() -> CertificateAuthority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = rcgen::date_time_ymd(2100, 1, 1);
        let certificate = params.self_signed(&key).unwrap().pem();
        CertificateAuthority::load(&certificate, &key.serialize_pem()).unwrap()
    }

    fn request(name: &str, group: &str, hosts: &[&str]) -> String {
        let names: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        STANDARD.encode(request.pem().unwrap())
    }

    fn wanted<'a>(signer: Signer, request: &'a str, user: &'a str) -> Wanted<'a> {
        let now = "2026-12-01T00:00:00Z".parse().unwrap();
        Wanted { signer, request, usages: &[], seconds: Some(3600), user, now }
    }

    #[test]
    fn a_client_gets_what_it_asks_for_as_long_as_it_asks() {
        let pem = authority().sign(&wanted(Signer::Client, &request("ann", "people", &[]), "x")).unwrap();
        let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        let (_, made) = X509Certificate::from_der(&block.contents).unwrap();
        assert_eq!(made.subject().iter_common_name().next().unwrap().as_str(), Ok("ann"));
        assert!(!made.is_ca() && made.extended_key_usage().unwrap().unwrap().value.client_auth);
        let validity = made.validity();
        assert_eq!(validity.not_after.timestamp() - validity.not_before.timestamp(), 3600 + 300);
    }

    #[test]
    fn nodes_get_certificates_of_nodes_alone() {
        let node = "system:node:n";
        for (signer, request, user, fine) in [
            (Signer::KubeletClient, request(node, "system:nodes", &[]), "any", true),
            (Signer::KubeletClient, request(node, "system:masters", &[]), "any", false),
            (Signer::KubeletClient, request("n", "system:nodes", &[]), "any", false),
            (Signer::KubeletClient, request(node, "system:nodes", &["h"]), "any", false),
            (Signer::KubeletServing, request(node, "system:nodes", &["h"]), node, true),
            (Signer::KubeletServing, request(node, "system:nodes", &["h"]), "other", false),
            (Signer::KubeletServing, request(node, "system:nodes", &[]), node, false),
            (Signer::Client, "AAAA".to_owned(), "any", false),
        ] {
            let signed = authority().sign(&wanted(signer, &request, user));
            assert_eq!(signed.is_ok(), fine, "{signer:?} {user}: {signed:?}");
        }
    }
}
