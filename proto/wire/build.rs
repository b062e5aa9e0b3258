//! Compiles the `.proto` files in Rust alone (protox), so that no `protoc` is needed.

use std::error::Error;
use std::path::PathBuf;

use prost::Message as _;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = ["proto/strata/v1/strata.proto", "proto/google/rpc/status.proto"];
    let set = protox::compile(files, ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), set.encode_to_vec())?;
    tonic_prost_build::configure().bytes(".strata.v1").compile_well_known_types(false).compile_fds(set)?;
    Ok(())
}
