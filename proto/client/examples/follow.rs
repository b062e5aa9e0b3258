//! Gets, applies, watches and resumes over gRPC: `cargo run -p strata-client --example follow -- KUBECONFIG`.
//!
//! It applies a config map, reads it, watches it while it changes, hangs up, misses a change, and hears of it when it
//! goes on after the revision at which it stopped. Each step is one line of output.

use std::error::Error;
use std::path::PathBuf;

use serde_json::json;
use strata_client::client::Client;
use strata_client::cursor::Start;
use strata_client::event::{Event, WatchOptions};
use strata_client::kubeconfig::Kubeconfig;
use strata_client::options::{DeleteOptions, GetOptions, Patch, WriteOptions, Written};
use strata_client::watch::{Watch, Watches};
use strata_model::object::{Object, ObjectKey};
use strata_model::resource::ResourceType;

/// The config map that the example is about.
const NAME: &str = "example-rust";

/// Says which version the config map is to have, and that this program manages it.
async fn apply(client: &Client, maps: &ResourceType, colour: &str) -> Result<Written, Box<dyn Error>> {
    let wish = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"colour": colour}});
    let patch = Patch::Apply { object: wish.to_string().into(), force: false };
    let options = WriteOptions { field_manager: NAME.to_owned(), ..WriteOptions::default() };
    Ok(client.patch(maps, &ObjectKey::new(client.namespace(), NAME), "", &patch, &options).await?)
}

fn colour(object: &Object) -> Result<String, Box<dyn Error>> {
    Ok(object.to_value()?["data"]["colour"].as_str().unwrap_or_default().to_owned())
}

/// Tells the state from which the watch goes on.
async fn begin(watch: &mut Watch) -> Result<(), Box<dyn Error>> {
    while let Some(event) = watch.next().await {
        match event {
            Event::Initial(object) => println!("there is {}", colour(&object)?),
            Event::InitialEnd(_) => return Ok(()),
            Event::Failed(error) => return Err(error.to_string().into()),
            _ => {}
        }
    }
    Err("the watch ended".into())
}

/// Tells events until the config map has a colour; gives the revision of that event.
async fn follow(watch: &mut Watch, until: &str) -> Result<u64, Box<dyn Error>> {
    while let Some(event) = watch.next().await {
        match event {
            Event::Applied(object, revision) => {
                let colour = colour(&object)?;
                println!("it became {colour}");
                if colour == until {
                    return Ok(revision);
                }
            }
            Event::Deleted(..) => println!("it is gone"),
            // The connection broke; the watch goes on where it was, by itself.
            Event::Lost(error) => eprintln!("{error}"),
            Event::Failed(error) => return Err(error.to_string().into()),
            // After `Restarted` the whole state follows anew, so that a cache can be replaced.
            Event::Restarted | Event::Initial(_) | Event::InitialEnd(_) | Event::Progress(_) => {}
        }
    }
    Err("the watch ended".into())
}

fn wanted(client: &Client, start: Start) -> WatchOptions {
    WatchOptions {
        namespace: client.namespace().to_owned(),
        field_selector: format!("metadata.name={NAME}"),
        start,
        ..WatchOptions::default()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which kubeconfig? `strata up` prints its path")?;
    let config = Kubeconfig::load(&[PathBuf::from(path)])?.client_config(None)?;
    let client = Client::new(&config)?;
    let types = client.types().await?;
    let maps = types.iter().find(|t| &*t.kind == "ConfigMap").ok_or("the server has no config maps")?;
    let key = ObjectKey::new(client.namespace(), NAME);

    let written = apply(&client, maps, "red").await?;
    println!("applied, changed: {}", written.changed);
    println!("applied again, changed: {}", apply(&client, maps, "red").await?.changed);
    println!("got {}", colour(&client.get(maps, &key, &GetOptions::default()).await?)?);

    let watches = Watches::new(client.clone());
    let mut watch = watches.open(maps, wanted(&client, Start::State));
    begin(&mut watch).await?;
    apply(&client, maps, "green").await?;
    let seen = follow(&mut watch, "green").await?;
    drop(watch);

    println!("hung up");
    apply(&client, maps, "blue").await?;
    let mut watch = watches.open(maps, wanted(&client, Start::After(seen)));
    follow(&mut watch, "blue").await?;

    let deleted = client.delete(maps, &key, &DeleteOptions::default()).await?;
    println!("deleted, gone: {}", deleted.removed);
    Ok(())
}
