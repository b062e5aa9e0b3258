//! Import: fills an empty prefix with the state of another store, so that the line of revisions goes on
//! where that one's ends. Knows nothing of where the records come from.

use std::sync::Arc;

use tokio::time::Instant;

use crate::engine::etcd::EtcdConfig;
use crate::engine::etcd::layout::{self, Layout, put_value};
use crate::engine::etcd::load::OPEN_LIMIT;
use crate::engine::etcd::members::Members;
use crate::engine::etcd::wire::{
    self, Compare, DeleteRangeRequest, Op, RequestOp, TXN, TxnRequest, TxnResponse,
};
use crate::error::{EngineError, OpenError};
use crate::record::Record;
use crate::revision::Revision;
use crate::txn::Value;

/// Most records, and most bytes before the last of them, of one transaction of etcd.
const MAX_PUTS: usize = 100;
const MAX_BYTES: usize = 512 << 10;

/// A prefix that is being filled.
pub struct Import {
    members: Members,
    layout: Layout,
}

impl Import {
    /// Begins with a prefix that has no keys, or those of an import that did not finish, which go.
    ///
    /// # Errors
    /// `Refused` if the prefix has other keys, `Unavailable`.
    pub async fn begin(config: &EtcdConfig) -> Result<Import, OpenError> {
        let (members, layout) = (Members::new(config)?, Layout::new(&config.prefix));
        let import = Import { members, layout };
        let (start, range_end) = import.layout.all();
        let nothing = Compare { range_end: range_end.clone(), ..wire::absent(start.clone()) };
        let mark = wire::put(import.layout.importing(), "");
        let request = TxnRequest { compare: vec![nothing], success: vec![mark.clone()], failure: Vec::new() };
        if import.call(request).await?.succeeded {
            return Ok(import);
        }
        let (format, marker) = (import.layout.format(), import.layout.importing());
        let clear = DeleteRangeRequest { key: start, range_end, prev_kv: false };
        let request = TxnRequest {
            compare: vec![wire::absent(format), wire::present(marker)],
            success: vec![RequestOp { op: Some(Op::Delete(clear)) }],
            failure: Vec::new(),
        };
        if !import.call(request).await?.succeeded {
            let at = format!("etcd prefix {}", import.layout.name());
            let what = "an import needs a prefix without keys".to_owned();
            return Err(EngineError::Refused { at, what }.into());
        }
        import.call(TxnRequest { success: vec![mark], ..TxnRequest::default() }).await?;
        Ok(import)
    }

    /// Takes records.
    ///
    /// # Errors
    /// They could not be written.
    pub async fn write(&mut self, records: &[Arc<Record>]) -> Result<(), EngineError> {
        let (mut success, mut bytes) = (Vec::new(), 0);
        for record in records {
            let value = Value::plain(record.value.clone());
            let value = put_value(&value, Some(record.created), Some(record.modified));
            bytes += value.len();
            success.push(wire::put(self.layout.data(&record.key), value));
            if success.len() == MAX_PUTS || bytes >= MAX_BYTES {
                self.put(std::mem::take(&mut success)).await?;
                bytes = 0;
            }
        }
        self.put(success).await
    }

    async fn put(&self, success: Vec<RequestOp>) -> Result<(), EngineError> {
        if success.is_empty() {
            return Ok(());
        }
        let compare = vec![wire::present(self.layout.importing())];
        match self.call(TxnRequest { compare, success, failure: Vec::new() }).await?.succeeded {
            true => Ok(()),
            false => Err(self.disturbed()),
        }
    }

    /// Ends: the store stands at `revision`, without any history before.
    ///
    /// # Errors
    /// It could not be written, or somebody else ended or cleared the import.
    pub async fn finish(self, revision: Revision) -> Result<(), EngineError> {
        let request = TxnRequest {
            compare: vec![wire::present(self.layout.importing()), wire::absent(self.layout.format())],
            success: vec![
                wire::put(self.layout.format(), layout::put_format(Some(revision))),
                wire::delete(self.layout.importing()),
            ],
            failure: vec![wire::get(self.layout.format())],
        };
        let answer = self.call(request).await?;
        // A try that was answered late counts: nobody else says this.
        let is_done = answer.read(0).is_some_and(|kv| kv.value == layout::put_format(Some(revision)));
        if answer.succeeded || is_done { Ok(()) } else { Err(self.disturbed()) }
    }

    /// Ends: there is nothing.
    ///
    /// # Errors
    /// It could not be removed, or somebody else ended the import.
    pub async fn abandon(self) -> Result<(), EngineError> {
        let (key, range_end) = self.layout.all();
        let clear = DeleteRangeRequest { key, range_end, prev_kv: false };
        let request = TxnRequest {
            compare: vec![wire::present(self.layout.importing()), wire::absent(self.layout.format())],
            success: vec![RequestOp { op: Some(Op::Delete(clear)) }],
            failure: Vec::new(),
        };
        if self.call(request).await?.succeeded { Ok(()) } else { Err(self.disturbed()) }
    }

    fn disturbed(&self) -> EngineError {
        let at = format!("etcd prefix {}", self.layout.name());
        EngineError::Refused { at, what: "somebody else writes there".to_owned() }
    }

    async fn call(&self, request: TxnRequest) -> Result<TxnResponse, EngineError> {
        let deadline = Instant::now() + OPEN_LIMIT;
        self.members.call_until(TXN, request, deadline).await.map_err(|error| error.of_read())
    }
}
