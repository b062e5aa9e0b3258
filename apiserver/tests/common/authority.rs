//! Certificates made on the spot.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, Error, IsCa, KeyPair};

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, PEM.
#[derive(Clone)]
pub struct Pair {
    /// Certificate.
    pub certificate: String,
    /// Key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    pub fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "example");
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Its own certificate, PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a name in a group, and for these hosts.
    pub fn identity(&self, name: &str, group: &str, hosts: &[&str]) -> Result<Pair, Error> {
        let mut params =
            CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<String>>())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    }
}
