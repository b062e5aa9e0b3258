//! Client: how a role finds the API server and who it is there: a kubeconfig, as everybody else's. Knows no role.

use std::path::Path;

use strata_client::config::ClientConfig;
use strata_client::kubeconfig::Kubeconfig;

use super::shell::Failure;

/// What the current context of a kubeconfig says, with a user agent that names the role.
///
/// # Errors
/// A file that is missing or makes no sense: no other start will find it better.
pub fn config(kubeconfig: &Path, role: &str) -> Result<ClientConfig, Failure> {
    let loaded = Kubeconfig::load(&[kubeconfig.to_owned()]).map_err(Failure::lasting)?;
    let mut config = loaded.client_config(None).map_err(Failure::lasting)?;
    config.user_agent = format!("strata-{role}/{}", env!("CARGO_PKG_VERSION"));
    Ok(config)
}
