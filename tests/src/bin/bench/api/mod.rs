//! The suite `api`: the API server as it is shipped, over TLS and HTTP/2.

mod pods;
mod requests;
mod lists;
mod watches;
mod starts;

use crate::context::Case;

/// All measurements of the suite.
pub fn cases() -> Vec<Case> {
    vec![
        Case {
            names: &["list10k_vs_static", "list_selector_vs_full"],
            run: |context| Box::pin(lists::lists(context)),
        },
        Case { names: &["create64_rest_vs_etcd"], run: |context| Box::pin(requests::creates(context)) },
        Case { names: &["patch64_rest_vs_etcd"], run: |context| Box::pin(requests::patches(context)) },
        Case { names: &["get64_rest_vs_etcd"], run: |context| Box::pin(requests::gets(context)) },
        Case { names: &["watch1000_rest_vs_etcd"], run: |context| Box::pin(watches::throughput(context)) },
        Case { names: &["start_ms"], run: |context| Box::pin(starts::empty(context)) },
        Case {
            names: &["memory_per_object", "start100k_ms"],
            run: |context| Box::pin(starts::full(context)),
        },
    ]
}
