//! Pods of 2 KiB as they are stored, and a server filled with them.

use bytes::Bytes;
use strata_wire::v1;

use crate::context::Outcome;
use crate::grpc;
use crate::load::{each, text};

/// Bytes of a stored pod.
pub const POD_BYTES: usize = 2048;
/// One pod in so many has the label that is asked for.
pub const ONE_IN: usize = 100;
/// Callers that fill.
const FILLERS: usize = 64;

fn resource() -> v1::ResourceRef {
    v1::ResourceRef { group: String::new(), version: "v1".to_owned(), resource: "pods".to_owned() }
}

/// A pod whose annotation has so many bytes.
fn pod(number: usize, padding: usize) -> Bytes {
    let tier = if number.is_multiple_of(ONE_IN) { "rare" } else { "common" };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{number:08}","labels":{{"app":"bench","tier":"{tier}"}},"annotations":{{"bench/padding":"{}"}}}},"spec":{{"containers":[{{"name":"main","image":"registry.example/bench:1"}}]}}}}"#,
        text(number as u64, padding)
    )
    .into()
}

/// Creates so many pods, each of 2 KiB once it is stored.
pub async fn fill(client: &grpc::Client, count: usize) -> Outcome<()> {
    let bare = client.create(resource(), pod(0, 0)).await?;
    let padding = POD_BYTES.saturating_sub(bare.len());
    let client = client.clone();
    each(FILLERS, count.saturating_sub(1), move |index| {
        let client = client.clone();
        async move { client.create(resource(), pod(index + 1, padding)).await.map(drop) }
    })
    .await
    .map(drop)
}
