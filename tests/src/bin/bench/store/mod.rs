//! The suite `store`: what the store promises, beside a real etcd and the floor of the disk.

pub mod puts;
pub mod creates;
pub mod reads;
mod watches;
mod million;
mod space;

use crate::context::Case;

/// All measurements of the suite.
pub fn cases() -> Vec<Case> {
    vec![
        Case {
            names: &["put64_vs_etcd", "put64_vs_floor"],
            run: |context| Box::pin(puts::sixty_four(context)),
        },
        Case { names: &["put256_vs_etcd"], run: |context| Box::pin(puts::many(context)) },
        Case { names: &["put1_latency_vs_etcd"], run: |context| Box::pin(puts::one(context)) },
        Case { names: &["http_put64_vs_etcd"], run: |context| Box::pin(creates::over_http(context)) },
        Case { names: &["grpc_create64_vs_etcd"], run: |context| Box::pin(creates::over_grpc(context)) },
        Case { names: &["range10k_vs_etcd"], run: |context| Box::pin(reads::range(context)) },
        Case { names: &["watch1000_vs_etcd"], run: |context| Box::pin(watches::throughput(context)) },
        Case { names: &["watch_p99_vs_etcd"], run: |context| Box::pin(watches::delay(context)) },
        Case {
            names: &["open1m_vs_etcd", "memory1m_vs_etcd"],
            run: |context| Box::pin(million::open(context)),
        },
        Case { names: &["space_amplification"], run: |context| Box::pin(space::amplification(context)) },
        Case { names: &["compaction_stall_p99"], run: |context| Box::pin(space::stalls(context)) },
    ]
}
