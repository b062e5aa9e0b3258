//! Runs the pipeline: `cargo run -p images -- FOLDER [KUBECONFIG]`. Defines the types, then holds tracks and entitlements
//! until Ctrl-C; images are in the folder.

use std::path::PathBuf;
use std::sync::Arc;

use images::place::Site;
use images::{pack, run};
use strata_client::client::Client;
use strata_client::kubeconfig::Kubeconfig;
use tokio::sync::watch;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let usage = "usage: images FOLDER [KUBECONFIG]";
    let root = arguments.next().ok_or(usage)?;
    let kubeconfig = arguments.next().or_else(default_kubeconfig).ok_or(usage)?;
    let client = Client::new(&Kubeconfig::load(&[kubeconfig])?.client_config(None)?)?;
    run::define(&client).await?;
    println!("images are in {}; try: strata get releasetracks,entitlements -w", root.display());
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("{error}");
        }
        stop.send_replace(true);
    });
    let identity = Some(format!("images-{}", std::process::id()));
    run::layers(client, Site::new(root), Arc::new(pack::pack), identity, stopped).await?;
    Ok(())
}

/// That of `strata up` on this machine.
fn default_kubeconfig() -> Option<PathBuf> {
    let data = match std::env::var_os("XDG_DATA_HOME") {
        Some(data) => PathBuf::from(data),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".local/share"),
    };
    Some(data.join("strata/kubeconfig"))
}
