//! The API server alone, over a store in memory, with certificates made on the spot: for trying clients on it.
//! Prints the path of a kubeconfig and serves until Ctrl-C.

use std::error::Error;
use std::path::PathBuf;

use strata_apiserver::server::config::Identity;
use strata_apiserver::server::{Config, Pem, Server};
use strata_store::engine::memory::Memory;
use strata_store::store::{EngineChoice, Store};

#[path = "../tests/common/authority.rs"]
mod authority;

use authority::{Authority, Pair};

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_env_filter(tracing_subscriber::EnvFilter::from_default_env()).init();
    let directory = PathBuf::from(std::env::args().nth(1).ok_or("usage: serve DIRECTORY [ADDRESS]")?);
    std::fs::create_dir_all(&directory)?;
    let listen = std::env::args().nth(2).unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let authority = Authority::new()?;
    let Pair { certificate, key } = authority.identity("server", "example", &["127.0.0.1", "localhost"])?;
    let config = Config {
        listen,
        identity: Identity { certificate: Pem::Text(certificate), key: Pem::Text(key) },
        client_authority: Some(Pem::Text(authority.pem())),
        token_file: None,
        nodes: None,
        service_accounts: Default::default(),
    };
    let engine = EngineChoice::Memory(Memory::default());
    let store = Store::open(strata_store::config::Config::default(), engine)?;
    let server = Server::start(config, store.clone()).await?;
    let Pair { certificate, key } = authority.identity("admin", "system:masters", &[])?;
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).map(|()| path)
    };
    let (ca, certificate, key) =
        (write("ca.pem", &authority.pem())?, write("admin.pem", &certificate)?, write("admin.key", &key)?);
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: example\nclusters:\n- name: example\n  cluster:\n    server: \
         https://{}\n    certificate-authority: {}\nusers:\n- name: admin\n  user:\n    client-certificate: {}\n    \
         client-key: {}\ncontexts:\n- name: example\n  context: {{cluster: example, user: admin}}\n",
        server.address(),
        ca.display(),
        certificate.display(),
        key.display()
    );
    println!("{}", write("kubeconfig", &kubeconfig)?.display());
    server
        .run(async {
            if let Err(error) = tokio::signal::ctrl_c().await {
                eprintln!("{error}");
            }
        })
        .await?;
    store.close().await;
    Ok(())
}
