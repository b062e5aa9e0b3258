//! Which server, as whom, in which namespace: the flags every resource command takes. Knows no command.

use std::path::PathBuf;

use clap::Args;

/// Flags of the connection. They may stand before or behind the command; behind wins.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
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

    /// How long to wait for one answer of the server, such as 5s or 2m; 0 waits as long as it takes
    #[arg(long, value_name = "DURATION", hide_short_help = true)]
    pub request_timeout: Option<String>,

    /// Say on stderr what is asked of the server; again for more
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count, hide_short_help = true)]
    pub verbose: u8,
}
