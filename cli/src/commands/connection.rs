//! Which server, as whom, in which namespace: the flags every resource command takes. Knows no command.

use std::path::{Path, PathBuf};

use clap::Args;
use strata_client::config::{ClientConfig, Identity, Token};
use strata_client::kubeconfig::Kubeconfig;

use crate::commands::error::{CliResult, usage};
use crate::output::duration;

/// What stands over these flags in help, and tells them from others.
pub const HEADING: &str = "Connection";
/// The file's name in a data directory.
const KUBECONFIG: &str = "kubeconfig";
/// What "as long as it takes" comes to: a year.
const NO_TIMEOUT_SECONDS: u64 = 365 * 24 * 3600;

/// What of the environment decides on the kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// `KUBECONFIG`.
    pub kubeconfig: Option<String>,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<PathBuf>,
    /// `HOME`.
    pub home: Option<PathBuf>,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        let path = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Self {
            kubeconfig: std::env::var("KUBECONFIG").ok(),
            data_home: path("XDG_DATA_HOME"),
            home: path("HOME"),
        }
    }
}

/// Flags of the connection. They may stand before or behind the command; behind wins.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = HEADING)]
pub struct ConnectionArgs {
    /// The namespace of the request
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// The kubeconfig to use [default: $KUBECONFIG, else that of the data directory, else ~/.kube/config]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub kubeconfig: Option<PathBuf>,

    /// The data directory of a `strata up` on this machine, whose kubeconfig is used
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub data_dir: Option<PathBuf>,

    /// The kubeconfig context to use
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub context: Option<String>,

    /// The address of the API server
    #[arg(short = 's', long, value_name = "URL", hide_short_help = true)]
    pub server: Option<String>,

    /// Bearer token
    #[arg(long, value_name = "TOKEN", hide_short_help = true)]
    pub token: Option<String>,

    /// File with the certificate of the authority that signed the server's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub certificate_authority: Option<PathBuf>,

    /// File with the client certificate
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub client_certificate: Option<PathBuf>,

    /// File with the key of the client certificate
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub client_key: Option<PathBuf>,

    /// How long to wait for one answer of the server, and to watch, such as 5s or 2m; 0 takes as long as it takes
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub request_timeout: Option<String>,

    /// Say on stderr what is asked of the server; again for more
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count, hide_short_help = true)]
    pub verbose: u8,
}

impl ConnectionArgs {
    /// These flags, and where one is not set, that of `before`.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        Self {
            namespace: self.namespace.or(before.namespace),
            kubeconfig: self.kubeconfig.or(before.kubeconfig),
            data_dir: self.data_dir.or(before.data_dir),
            context: self.context.or(before.context),
            server: self.server.or(before.server),
            token: self.token.or(before.token),
            certificate_authority: self.certificate_authority.or(before.certificate_authority),
            client_certificate: self.client_certificate.or(before.client_certificate),
            client_key: self.client_key.or(before.client_key),
            request_timeout: self.request_timeout.or(before.request_timeout),
            verbose: self.verbose.max(before.verbose),
        }
    }

    /// The kubeconfig files to read. Pure: the environment comes in, and whether a file is there.
    pub fn kubeconfigs(&self, env: &Environment, exists: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
        if let Some(file) = &self.kubeconfig {
            return vec![file.clone()];
        }
        if let Some(dir) = &self.data_dir {
            return vec![dir.join(KUBECONFIG)];
        }
        if let Some(variable) = env.kubeconfig.as_deref().filter(|v| !v.is_empty()) {
            return Kubeconfig::paths_of(variable);
        }
        let home = env.home.as_deref().unwrap_or_else(|| Path::new(""));
        let data = env.data_home.clone().unwrap_or_else(|| home.join(".local/share"));
        let ours = data.join("strata").join(KUBECONFIG);
        let own = home.join(".kube/config");
        if exists(&ours) || !exists(&own) { vec![ours] } else { vec![own] }
    }

    /// Whether nothing says where a kubeconfig could be.
    fn is_homeless(&self, env: &Environment) -> bool {
        let named = self.kubeconfig.is_some() || self.data_dir.is_some() || self.server.is_some();
        let set = env.kubeconfig.as_deref().is_some_and(|variable| !variable.is_empty());
        !named && !set && env.home.is_none() && env.data_home.is_none()
    }

    /// The server and the identity, and where they came from in words.
    pub fn resolve(&self, env: &Environment) -> CliResult<(ClientConfig, String)> {
        if self.is_homeless(env) {
            return Err(usage(
                "no kubeconfig: neither KUBECONFIG, XDG_DATA_HOME nor HOME is set; name one with --kubeconfig",
            ));
        }
        let files = self.kubeconfigs(env, |path| path.exists());
        let origin = files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ");
        let loaded = Kubeconfig::load(&files).and_then(|k| k.client_config(self.context.as_deref()));
        let (mut config, origin) = match (loaded, &self.server) {
            (Ok(config), None) => (config, origin),
            (Ok(mut config), Some(server)) => {
                config.server = address(server)?;
                (config, "--server".to_owned())
            }
            (Err(_), Some(server)) if self.kubeconfig.is_none() && self.context.is_none() => {
                (ClientConfig::new(address(server)?), "--server".to_owned())
            }
            (Err(error), _) => return Err(error.into()),
        };
        self.overrule(&mut config)?;
        Ok((config, origin))
    }

    fn overrule(&self, config: &mut ClientConfig) -> CliResult {
        if let Some(file) = &self.certificate_authority {
            config.ca_pem = Some(read(file, "--certificate-authority")?);
        }
        match (&self.client_certificate, &self.client_key) {
            (Some(certificate), Some(key)) => {
                config.identity = Some(Identity {
                    certificate_pem: read(certificate, "--client-certificate")?,
                    key_pem: read(key, "--client-key")?,
                });
            }
            (None, None) => {}
            _ => return Err(usage("--client-certificate and --client-key belong together: give both")),
        }
        if let Some(token) = &self.token {
            config.token = Some(Token(token.clone()));
            // One identity at a time: a token that is asked for must not lose to a certificate of the file.
            if self.client_certificate.is_none() {
                config.identity = None;
            }
        }
        if let Some(namespace) = self.namespace.as_deref().filter(|n| !n.is_empty()) {
            namespace.clone_into(&mut config.namespace);
        }
        if let Some(text) = &self.request_timeout {
            let asked = duration::parse(text).map_err(|e| usage(format!("--request-timeout: {e}")))?;
            let seconds = asked.map_or(0, |d| d.as_secs().max(u64::from(d.subsec_nanos() > 0)));
            config.request_timeout_seconds = if seconds == 0 { NO_TIMEOUT_SECONDS } else { seconds };
        }
        Ok(())
    }
}

fn address(text: &str) -> CliResult<http::Uri> {
    let full = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let uri: Result<http::Uri, _> = full.parse();
    match uri {
        Ok(uri) if uri.host().is_some() => Ok(uri),
        _ => Err(usage(format!("--server {text:?} is no address: write https://HOST:PORT"))),
    }
}

fn read(file: &Path, flag: &str) -> CliResult<Vec<u8>> {
    std::fs::read(file).map_err(|e| usage(format!("{flag}: cannot read {}: {e}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_kubeconfig_wins() {
        let env = Environment {
            kubeconfig: Some("/e1:/e2".into()),
            data_home: Some("/data".into()),
            home: Some("/home/u".into()),
        };
        let quiet = Environment { kubeconfig: None, ..env.clone() };
        let flags = ConnectionArgs {
            kubeconfig: Some("/k".into()),
            data_dir: Some("/d".into()),
            ..Default::default()
        };
        let paths = |args: &ConnectionArgs, env: &Environment, there: &str| {
            args.kubeconfigs(env, |path| path == Path::new(there))
        };
        assert_eq!(paths(&flags, &env, ""), [Path::new("/k")]);
        let flags = ConnectionArgs { kubeconfig: None, ..flags };
        assert_eq!(paths(&flags, &env, ""), [Path::new("/d/kubeconfig")]);
        let none = ConnectionArgs::default();
        assert_eq!(paths(&none, &env, ""), [Path::new("/e1"), Path::new("/e2")]);
        assert_eq!(paths(&none, &quiet, "/data/strata/kubeconfig"), [Path::new("/data/strata/kubeconfig")]);
        assert_eq!(paths(&none, &quiet, "/home/u/.kube/config"), [Path::new("/home/u/.kube/config")]);
        assert_eq!(paths(&none, &quiet, ""), [Path::new("/data/strata/kubeconfig")]);
    }

    #[test]
    fn flags_behind_the_command_win() {
        let behind = ConnectionArgs { namespace: Some("b".into()), ..Default::default() };
        let before =
            ConnectionArgs { namespace: Some("a".into()), context: Some("c".into()), ..Default::default() };
        let merged = behind.or(before);
        assert_eq!((merged.namespace.as_deref(), merged.context.as_deref()), (Some("b"), Some("c")));
    }

    #[test]
    fn addresses_may_leave_out_the_scheme() {
        assert_eq!(address("localhost:6443").unwrap().to_string(), "https://localhost:6443/");
        assert!(address("not an address").unwrap_err().to_string().contains("https://HOST:PORT"));
    }
}
