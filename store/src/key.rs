//! Keys and key ranges: ordered bytes, and the half-open spans of them that reads and watches name.
//! Knows nothing of what a key means.

use std::borrow::Borrow;
use std::fmt;

use bytes::Bytes;

/// Longest key that a transaction may carry, in bytes.
pub const MAX_KEY_BYTES: usize = 4096;

/// A key: any bytes, ordered as bytes. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Bytes);

impl Key {
    /// The key made of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Key(bytes.into())
    }

    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes of the key as a shared buffer.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The smallest key greater than this one.
    #[must_use]
    pub fn successor(&self) -> Key {
        let mut bytes = Vec::with_capacity(self.0.len() + 1);
        bytes.extend_from_slice(&self.0);
        bytes.push(0);
        Key(bytes.into())
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<Bytes> for Key {
    fn from(bytes: Bytes) -> Self {
        Key(bytes)
    }
}

impl From<Vec<u8>> for Key {
    fn from(bytes: Vec<u8>) -> Self {
        Key(bytes.into())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Key(text.into_bytes().into())
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Key(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Key(Bytes::copy_from_slice(bytes))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// A span of keys: from `start`, inclusive, to `end`, exclusive; no `end` means without bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// First key of the range.
    pub start: Key,
    /// First key after the range; `None` for no bound.
    pub end: Option<Key>,
}

impl KeyRange {
    /// The keys from `start`, inclusive, to `end`, exclusive.
    #[must_use]
    pub fn new(start: impl Into<Key>, end: Option<Key>) -> Self {
        KeyRange { start: start.into(), end }
    }

    /// Every key.
    #[must_use]
    pub fn all() -> Self {
        KeyRange { start: Key(Bytes::new()), end: None }
    }

    /// Every key that begins with `prefix`; an empty prefix means every key.
    #[must_use]
    pub fn prefix(prefix: impl Into<Key>) -> Self {
        let start = prefix.into();
        let kept = start.0.iter().rposition(|byte| *byte != u8::MAX);
        let end = kept.map(|last| {
            let mut bytes = start.0[..=last].to_vec();
            bytes[last] += 1;
            Key(bytes.into())
        });
        KeyRange { start, end }
    }

    /// Exactly this key.
    #[must_use]
    pub fn single(key: impl Into<Key>) -> Self {
        let start = key.into();
        let end = Some(start.successor());
        KeyRange { start, end }
    }

    /// Whether `key` lies in the range.
    #[must_use]
    pub fn contains(&self, key: &Key) -> bool {
        *key >= self.start && self.end.as_ref().is_none_or(|end| key < end)
    }

    /// Whether the range can hold no key at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_covers_exactly_the_keys_that_begin_with_it() {
        let range = KeyRange::prefix("pods/");
        assert!(range.contains(&"pods/".into()) && range.contains(&"pods/a".into()));
        assert!(!range.contains(&"pods".into()) && !range.contains(&"pods0".into()));
        let high = KeyRange::prefix(vec![7, 255, 255]);
        assert!(high.contains(&vec![7, 255, 255, 9].into()) && !high.contains(&vec![8].into()));
        assert_eq!(KeyRange::prefix(vec![255, 255]).end, None);
        assert_eq!(KeyRange::prefix("").end, None);
    }

    #[test]
    fn single_covers_one_key() {
        let range = KeyRange::single("a");
        assert!(range.contains(&"a".into()) && !range.contains(&vec![b'a', 0].into()));
        assert!(!range.is_empty() && KeyRange::new("b", Some("b".into())).is_empty());
    }
}
