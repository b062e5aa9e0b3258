//! JSON patches (RFC 6902), with what API clients rely on beyond the standard: `replace` of a missing member adds it,
//! and `test` for `null` holds where the member is missing. Knows no schema.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{AddOperation, PatchOperation, patch_unsafe};
use serde_json::Value;

use crate::decode::MAX_DEPTH;

/// The most operations that one patch may have.
pub const MAX_OPERATIONS: usize = 10_000;
/// The most values (members and elements, at any depth) that all operations of one patch together may add or copy.
pub const MAX_VALUES: usize = 4_000_000;
/// The most bytes of text that all operations of one patch together may copy.
pub const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// Why a JSON patch was not applied.
#[derive(Debug, thiserror::Error)]
pub enum JsonPatchError {
    /// The body is not a list of operations.
    #[error("a JSON patch is a list of operations")]
    NotAList,
    /// There are more operations than allowed.
    #[error("the patch has {count} operations, at most {MAX_OPERATIONS} are allowed")]
    TooManyOperations {
        /// How many there are.
        count: usize,
    },
    /// An operation is not one of the standard's.
    #[error("operation {index} of the patch is not valid")]
    BadOperation {
        /// Its place in the patch, from 0.
        index: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// An operation could not be applied to the object: its path is missing, or its test failed.
    #[error("operation {index} of the patch does not apply at {path:?}")]
    Rejected {
        /// Its place in the patch, from 0.
        index: usize,
        /// The JSON pointer it works on.
        path: String,
        /// Why it was rejected.
        #[source]
        source: json_patch::PatchError,
    },
    /// The operations would make the object larger or deeper than objects may be.
    #[error("operation {index} of the patch makes the object too large or too deep")]
    TooLarge {
        /// Its place in the patch, from 0.
        index: usize,
    },
}

/// A parsed JSON patch.
#[derive(Debug, Clone)]
pub struct JsonPatch {
    operations: Vec<PatchOperation>,
}

impl JsonPatch {
    /// Reads a patch from its body as a value.
    pub fn parse(body: Value) -> Result<Self, JsonPatchError> {
        let Value::Array(list) = body else { return Err(JsonPatchError::NotAList) };
        if list.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations { count: list.len() });
        }
        let parse = |(index, operation)| {
            serde_json::from_value(operation).map_err(|source| JsonPatchError::BadOperation { index, source })
        };
        let operations = list.into_iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        Ok(Self { operations })
    }

    /// The object after all operations, in order; all of them apply or none does.
    pub fn apply(&self, mut object: Value) -> Result<Value, JsonPatchError> {
        let mut budget = Budget { values: MAX_VALUES, bytes: MAX_COPIED_BYTES };
        for (index, operation) in self.operations.iter().enumerate() {
            if !budget.allows(&object, operation) {
                return Err(JsonPatchError::TooLarge { index });
            }
            let Some(operation) = adapt(&object, operation) else { continue };
            let applied = patch_unsafe(&mut object, std::slice::from_ref(&operation));
            applied.map_err(|source| JsonPatchError::Rejected {
                index,
                path: operation.path().to_string(),
                source,
            })?;
        }
        Ok(object)
    }
}

/// The operation in the standard's terms; `None` if it holds without doing anything.
fn adapt(object: &Value, operation: &PatchOperation) -> Option<PatchOperation> {
    match operation {
        PatchOperation::Replace(replace) if is_missing_member(object, &replace.path) => {
            let (path, value) = (replace.path.clone(), replace.value.clone());
            Some(PatchOperation::Add(AddOperation { path, value }))
        }
        PatchOperation::Test(test) if test.value.is_null() && is_missing_member(object, &test.path) => None,
        other => Some(other.clone()),
    }
}

fn is_missing_member(object: &Value, path: &PointerBuf) -> bool {
    let Some((parent, name)) = path.split_back() else { return false };
    let holder = parent.resolve(object).ok().and_then(Value::as_object);
    holder.is_some_and(|members| !members.contains_key(&*name.decoded()))
}

/// What the rest of the patch may still move about. It bounds work, growth (`copy` can double an object each time) and
/// depth.
struct Budget {
    values: usize,
    bytes: usize,
}

impl Budget {
    fn allows(&mut self, object: &Value, operation: &PatchOperation) -> bool {
        let (value, path, copies) = match operation {
            PatchOperation::Add(add) => (Some(&add.value), &add.path, false),
            PatchOperation::Replace(replace) => (Some(&replace.value), &replace.path, false),
            PatchOperation::Move(moved) => (find(object, &moved.from), &moved.path, false),
            PatchOperation::Copy(copy) => (find(object, &copy.from), &copy.path, true),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => return true,
        };
        let above = path.count();
        above <= MAX_DEPTH && value.is_none_or(|value| self.spend(value, above, copies))
    }

    fn spend(&mut self, value: &Value, depth: usize, copies: bool) -> bool {
        if depth > MAX_DEPTH || self.values == 0 {
            return false;
        }
        self.values -= 1;
        match value {
            Value::Array(items) => items.iter().all(|item| self.spend(item, depth + 1, copies)),
            Value::Object(members) => members
                .iter()
                .all(|(name, member)| self.copy(name.len(), copies) && self.spend(member, depth + 1, copies)),
            Value::String(text) => self.copy(text.len(), copies),
            _ => true,
        }
    }

    fn copy(&mut self, bytes: usize, copies: bool) -> bool {
        if copies {
            let Some(left) = self.bytes.checked_sub(bytes) else { return false };
            self.bytes = left;
        }
        true
    }
}

fn find<'a>(object: &'a Value, path: &Pointer) -> Option<&'a Value> {
    path.resolve(object).ok()
}
