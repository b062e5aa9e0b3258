//! Connects the controller to a server: `cargo run -p thermostat -- KUBECONFIG`. Defines the type, then holds every
//! Thermostat until Ctrl-C.

use std::path::PathBuf;

use serde_json::json;
use strata_client::client::Client;
use strata_client::kubeconfig::Kubeconfig;
use strata_client::options::{Patch, WriteOptions};
use strata_model::object::ObjectKey;
use strata_model::resource::builtin;
use strata_runtime::run::{self, Options};
use thermostat::{api, plan};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let kubeconfig = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => default_kubeconfig().ok_or("usage: thermostat KUBECONFIG")?,
    };
    let client = Client::new(&Kubeconfig::load(&[kubeconfig])?.client_config(None)?)?;
    define(&client).await?;
    println!("holding thermostats; try: strata get thermostats -w");
    let options =
        Options { identity: Some(format!("thermostat-{}", std::process::id())), ..Options::default() };
    let stopped = async {
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("{error}");
        }
    };
    run::controller(plan::Thermostats, client, options, stopped).await?;
    Ok(())
}

/// Makes the type known to the server, or brings it up to date.
async fn define(client: &Client) -> Result<(), Failure> {
    let definition = api::definition();
    let name = definition.metadata.name.clone().ok_or("the definition has no name")?;
    let mut object = serde_json::to_value(&definition)?;
    object["metadata"] = json!({"name": name});
    let patch = Patch::Apply { object: object.to_string().into(), force: true };
    let options = WriteOptions { field_manager: "thermostat".to_owned(), ..WriteOptions::default() };
    let key = ObjectKey::new("", name);
    client.patch(&builtin::CUSTOM_RESOURCE_DEFINITION, &key, "", &patch, &options).await?;
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
