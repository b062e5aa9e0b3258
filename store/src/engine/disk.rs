//! Disk: the few file operations that the log needs, so that the same log runs on a real directory
//! and on one in memory that fails on demand. Knows nothing of what the files hold.

use std::io;
use std::sync::Arc;

/// A flat directory of files.
pub trait Disk: Send + Sync {
    /// Its name for messages.
    fn name(&self) -> String;

    /// Names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a file of `length` zero bytes whose space is reserved, replacing one of that name.
    /// Fails with `StorageFull` if there is no room, leaving nothing behind.
    fn create(&self, name: &str, length: u64) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, replacing one that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Bytes that all files take.
    fn used(&self) -> io::Result<u64>;

    /// Bytes that new files may still take, about.
    fn available(&self) -> io::Result<u64>;

    /// Makes creations, renames and removals durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file of fixed length.
pub trait DiskFile: Send + Sync {
    /// Length in bytes.
    fn length(&self) -> u64;

    /// Fills `buffer` from `offset`; fails if the file ends before.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, within the length.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes what was written durable.
    fn sync(&self) -> io::Result<()>;
}
