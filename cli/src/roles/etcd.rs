//! Etcd: the flags that name an etcd cluster, in the words of kube-apiserver, and what they mean to the store.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use strata_store::engine::etcd::{EtcdConfig, EtcdIdentity};

use super::files::FileError;

/// The flags.
#[derive(Clone, Debug, Args)]
pub struct EtcdArgs {
    /// Keep the data in this etcd cluster (3.4 or newer), which several API servers may share.
    #[arg(long, value_name = "URL,…", value_delimiter = ',', env = "STRATA_ETCD_SERVERS")]
    pub etcd_servers: Vec<String>,
    #[command(flatten)]
    pub access: EtcdAccess,
}

/// How the cluster is used, wherever it is.
#[derive(Clone, Debug, Args)]
pub struct EtcdAccess {
    /// Prefix of all keys in etcd.
    #[arg(long, value_name = "PREFIX", default_value = "/strata", env = "STRATA_ETCD_PREFIX")]
    pub etcd_prefix: String,
    /// Authority that signed the certificates of etcd's servers, PEM.
    #[arg(long, value_name = "FILE", env = "STRATA_ETCD_CAFILE")]
    pub etcd_cafile: Option<PathBuf>,
    /// Certificate to show to etcd, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile", env = "STRATA_ETCD_CERTFILE")]
    pub etcd_certfile: Option<PathBuf>,
    /// Its private key, PEM.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile", env = "STRATA_ETCD_KEYFILE")]
    pub etcd_keyfile: Option<PathBuf>,
}

impl EtcdAccess {
    /// What the store is told of a cluster with these servers.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn config(&self, servers: Vec<String>) -> Result<EtcdConfig, FileError> {
        let read = |path: &Path| fs::read(path).map_err(FileError::of("read", path));
        let identity = match (&self.etcd_certfile, &self.etcd_keyfile) {
            (Some(certificate), Some(key)) => {
                Some(EtcdIdentity { certificate_pem: read(certificate)?, key_pem: read(key)? })
            }
            _ => None,
        };
        let authority_pem = self.etcd_cafile.as_deref().map(read).transpose()?;
        Ok(EtcdConfig {
            prefix: self.etcd_prefix.clone(),
            authority_pem,
            identity,
            ..EtcdConfig::new(servers)
        })
    }
}

impl EtcdArgs {
    /// The flags that say the same in another directory, with their values; none if no server is named.
    pub fn words(&self, absolute: impl Fn(&Path) -> OsString) -> Vec<(&'static str, OsString)> {
        if self.etcd_servers.is_empty() {
            return Vec::new();
        }
        let access = &self.access;
        let files = [
            ("--etcd-cafile", &access.etcd_cafile),
            ("--etcd-certfile", &access.etcd_certfile),
            ("--etcd-keyfile", &access.etcd_keyfile),
        ];
        let mut words = vec![
            ("--etcd-servers", self.etcd_servers.join(",").into()),
            ("--etcd-prefix", access.etcd_prefix.clone().into()),
        ];
        words.extend(files.iter().filter_map(|(flag, file)| Some((*flag, absolute(file.as_deref()?)))));
        words
    }
}
