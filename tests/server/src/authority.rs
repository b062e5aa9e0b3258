//! Certificates made on the spot, and the kubeconfig that carries them. Knows no server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, Error, IsCa, KeyPair};
use serde_json::json;
use strata_apiserver::server::Pem;
use strata_apiserver::server::config::Identity;

/// Signs for one test server.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new authority.
    pub fn new() -> Result<Self, Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "strata-testing");
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Its own certificate, PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// What the server shows.
    pub fn server(&self) -> Result<Identity, Error> {
        let (certificate, key) = self.sign("strata-testing", None, &["127.0.0.1", "localhost"])?;
        Ok(Identity { certificate: Pem::Text(certificate), key: Pem::Text(key) })
    }

    /// A kubeconfig of somebody who may do everything, as JSON.
    pub fn kubeconfig(&self, url: &str) -> Result<String, Error> {
        let (certificate, key) = self.sign("tester", Some("system:masters"), &[])?;
        let encode = |text: &str| STANDARD.encode(text);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster":
                {"server": url, "certificate-authority-data": encode(&self.pem())}}],
            "users": [{"name": "tester", "user":
                {"client-certificate-data": encode(&certificate), "client-key-data": encode(&key)}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "tester"}}],
        });
        Ok(config.to_string())
    }

    fn sign(&self, name: &str, group: Option<&str>, hosts: &[&str]) -> Result<(String, String), Error> {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?.pem();
        Ok((certificate, key.serialize_pem()))
    }
}
