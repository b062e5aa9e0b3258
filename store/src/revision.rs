//! Revision: the position on the store's one line of history.
//! Knows nothing of keys, records or engines.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A position on the store's one line of history; each transaction that changes something adds one
/// (over etcd at least one).
///
/// `ZERO` is the empty store before its first transaction. Prints and parses as plain decimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// The empty store, before any transaction.
    pub const ZERO: Revision = Revision(0);

    /// The revision with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Revision(number)
    }

    /// The number of this revision.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The revision of the transaction that follows this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Revision(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Revision {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Revision)
    }
}

impl From<u64> for Revision {
    fn from(number: u64) -> Self {
        Revision(number)
    }
}
