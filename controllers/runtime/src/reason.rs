//! Why a key is reconciled: which object at which revision, or a timer. Travels from the watch through the queue into
//! spans, into the transactions that result, and to whoever asks why.

use std::fmt;

use strata_model::object::ObjectKey;
use strata_model::resource::GroupResource;

/// Most reasons a key remembers.
pub const MAX_REASONS: usize = 8;

/// What led to a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// An object was created or changed.
    Changed(GroupResource, ObjectKey),
    /// An object was deleted.
    Deleted(GroupResource, ObjectKey),
    /// An object was there when the process started, or after a gap in the watch.
    Found(GroupResource, ObjectKey),
    /// The instant the last plan asked for has come.
    Timer,
    /// The last attempt failed.
    Retry,
    /// Everything is looked at anew.
    Resync,
    /// Something else, in a word: a person, an effect outside of the API.
    Other(&'static str),
}

/// Why, and since which revision; 0 where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reason {
    /// What.
    pub why: Why,
    /// At which revision.
    pub revision: u64,
}

impl Reason {
    /// A reason without revision.
    pub fn plain(why: Why) -> Self {
        Self { why, revision: 0 }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, resource, key) = match &self.why {
            Why::Changed(resource, key) => ("changed", resource, key),
            Why::Deleted(resource, key) => ("deleted", resource, key),
            Why::Found(resource, key) => ("found", resource, key),
            Why::Timer => return f.write_str("timer"),
            Why::Retry => return f.write_str("retry"),
            Why::Resync => return f.write_str("resync"),
            Why::Other(word) => return f.write_str(word),
        };
        write!(f, "{resource}/{key} {word}@{}", self.revision)
    }
}

/// A bounded set of reasons: one per object and kind of change, with its newest revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons {
    kept: Vec<Reason>,
    /// How many more there were.
    pub dropped: u64,
}

impl Reasons {
    /// Adds one. When full, the newest is only counted: the first reasons say most about why work began.
    pub fn add(&mut self, reason: Reason) {
        if let Some(same) = self.kept.iter_mut().find(|r| r.why == reason.why) {
            same.revision = same.revision.max(reason.revision);
        } else if self.kept.len() < MAX_REASONS {
            self.kept.push(reason);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds all of another set.
    pub fn merge(&mut self, other: Self) {
        other.kept.into_iter().for_each(|r| self.add(r));
        self.dropped += other.dropped;
    }

    /// Those that are kept, oldest first.
    pub fn kept(&self) -> &[Reason] {
        &self.kept
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, reason) in self.kept.iter().enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            write!(f, "{comma}{reason}")?;
        }
        match self.dropped {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
