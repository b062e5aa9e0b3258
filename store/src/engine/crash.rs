//! Crash: what of a disk in memory is there after it: a file as readers see it and as it lies on the disk, and the coin that
//! decides of what lies between. Knows nothing of names, faults or stores.

/// What of the unsynced data is there after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// Nothing: a power cut with an unlucky cache.
    Synced,
    /// Everything that was written: the process died, the machine did not.
    Written,
    /// Of each file the unsynced writes but the last, and half of that.
    Torn,
    /// Of everything unsynced this or that, as the number decides: a disk writes in the order it likes.
    Scattered(u64),
}

/// A file: what a reader sees, what a crash leaves, and the writes between.
#[derive(Clone, Default)]
pub(crate) struct Content {
    /// Bytes that are reserved for it.
    pub length: u64,
    /// What a reader sees.
    pub seen: Vec<u8>,
    /// What a crash surely leaves.
    pub durable: Vec<u8>,
    /// Writes between, in order, each with its offset.
    pub unsynced: Vec<(u64, Vec<u8>)>,
}

/// Decides of what is unsynced what a crash leaves.
pub(crate) struct Coin {
    survives: Survives,
    state: u64,
}

impl Coin {
    /// A coin for one crash.
    pub fn new(survives: Survives) -> Self {
        let seed = if let Survives::Scattered(seed) = survives { seed } else { 0 };
        Coin { survives, state: seed.wrapping_mul(2).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    }

    fn heads(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 63 == 1
    }

    /// Whether all of something that is not in parts is left.
    pub fn keeps_all(&mut self) -> bool {
        match self.survives {
            Survives::Synced => false,
            Survives::Written | Survives::Torn => true,
            Survives::Scattered(_) => self.heads(),
        }
    }

    /// Leaves a file as the crash does.
    pub fn toss(&mut self, content: &mut Content) {
        let unsynced = std::mem::take(&mut content.unsynced);
        let count = unsynced.len();
        for (at, (offset, bytes)) in unsynced.into_iter().enumerate() {
            let is_torn = self.survives == Survives::Torn && at + 1 == count;
            let kept = if is_torn { bytes.len() / 2 } else { usize::from(self.keeps_all()) * bytes.len() };
            overwrite(&mut content.durable, &bytes[..kept], offset);
        }
        content.seen = content.durable.clone();
    }
}

/// Writes over a part of `target`, which grows if it must.
pub(crate) fn overwrite(target: &mut Vec<u8>, bytes: &[u8], offset: u64) {
    let (start, end) = (offset as usize, offset as usize + bytes.len());
    if bytes.is_empty() {
        return;
    }
    if target.len() < end {
        target.resize(end, 0);
    }
    target[start..end].copy_from_slice(bytes);
}
