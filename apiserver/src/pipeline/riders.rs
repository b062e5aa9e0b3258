//! What goes with a write in its transaction: conditions on other objects, and changes of them. Knows no type.

use strata_store::key::Key;
use strata_store::txn::{Condition, Txn, Value};

/// Conditions and changes beside those of the object that is written.
#[derive(Clone, Debug, Default)]
pub struct Riders {
    conditions: Vec<(Key, Condition)>,
    puts: Vec<(Key, Value)>,
}

impl Riders {
    /// Nothing beside the object.
    pub fn none() -> Self {
        Self::default()
    }

    /// Asks that something holds of another object.
    pub fn when(&mut self, key: Key, condition: Condition) {
        self.conditions.push((key, condition));
    }

    /// Changes or makes another object, if it is as it was read.
    pub fn put(&mut self, key: Key, condition: Condition, value: Value) {
        self.conditions.push((key.clone(), condition));
        self.puts.push((key, value));
    }

    /// Takes along what others want.
    pub fn join(&mut self, others: Self) {
        self.conditions.extend(others.conditions);
        self.puts.extend(others.puts);
    }

    /// The transaction with all of them.
    #[must_use]
    pub fn board(self, txn: Txn) -> Txn {
        let txn = self.conditions.into_iter().fold(txn, |txn, (key, condition)| txn.when(key, condition));
        self.puts.into_iter().fold(txn, |txn, (key, value)| txn.put(key, value))
    }
}
