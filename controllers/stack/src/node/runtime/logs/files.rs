//! The rotated files of one log, read from a place to the end, record by record. It must never wait.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;

use super::LogOptions;
use crate::node::shim::log::numbered;

/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;
/// How many rotated files are looked for.
const MAX_FILES: usize = 32;
/// How often opening is tried again when the files are rotated meanwhile.
const OPEN_TRIES: usize = 5;

/// A log's files and the place that was reached.
pub struct FileLog {
    path: PathBuf,
    since: Option<Timestamp>,
    timestamps: bool,
    /// Files still to be read, the oldest last; the one being read is the last.
    files: Vec<(File, u64)>,
    /// The inode of the newest file that was ever in `files`.
    newest: Option<u64>,
    /// The bytes of a record whose end was not there yet.
    open: Vec<u8>,
    /// Whether the next record continues a line.
    inside_line: bool,
}

impl FileLog {
    /// Opens the files at `path` and goes to where `options` begin.
    pub fn open(path: PathBuf, options: &LogOptions) -> io::Result<Self> {
        let mut files = open_all(&path)?;
        if let Some(lines) = options.tail_lines {
            keep_tail(&mut files, lines)?;
        }
        let newest = files.first().map(|(_, inode)| *inode);
        let (since, timestamps) = (options.since, options.timestamps);
        Ok(Self { path, since, timestamps, files, newest, open: Vec::new(), inside_line: false })
    }

    /// The next lines as they are shown; empty when there is nothing more now.
    pub fn read(&mut self) -> io::Result<Bytes> {
        let mut shown = Vec::new();
        let mut chunk = vec![0; CHUNK];
        while shown.is_empty() {
            let Some((file, _)) = self.files.last_mut() else {
                if !self.find_newer()? {
                    break;
                }
                continue;
            };
            let count = file.read(&mut chunk)?;
            if count > 0 {
                self.take(&chunk[..count], &mut shown);
            } else if self.files.len() > 1 {
                self.files.pop();
            } else if !self.find_newer()? {
                break;
            }
        }
        Ok(Bytes::from(shown))
    }

    /// Adds files that came after the newest that is known. Returns whether there are any.
    ///
    /// The file that is left behind stays first in line, so that what was written into it before the change
    /// is still read.
    fn find_newer(&mut self) -> io::Result<bool> {
        let current = fs::metadata(&self.path).map(|data| data.ino()).ok();
        if current.is_none() || current == self.newest {
            return Ok(false);
        }
        let mut files = open_all(&self.path)?;
        if let Some(at) = files.iter().position(|(_, inode)| Some(*inode) == self.newest) {
            files.truncate(at);
        }
        let Some((_, newest)) = files.first() else { return Ok(false) };
        self.newest = Some(*newest);
        files.append(&mut self.files);
        self.files = files;
        Ok(true)
    }

    /// Takes a chunk apart into records.
    fn take(&mut self, chunk: &[u8], shown: &mut Vec<u8>) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.open.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let record = std::mem::take(&mut self.open);
                self.show(&record[..record.len() - 1], shown);
            }
        }
    }

    /// Shows one record if it is wanted. What is no record is shown as it is.
    fn show(&mut self, record: &[u8], shown: &mut Vec<u8>) {
        let Some(parts) = split_record(record) else {
            shown.extend_from_slice(record);
            shown.push(b'\n');
            return;
        };
        if let Some(since) = self.since {
            if parts.time.parse::<Timestamp>().is_ok_and(|time| time < since) {
                return;
            }
            self.since = None;
        }
        if self.timestamps && !self.inside_line {
            shown.extend_from_slice(parts.time.as_bytes());
            shown.push(b' ');
        }
        shown.extend_from_slice(parts.text);
        self.inside_line = parts.partial;
        if !parts.partial {
            shown.push(b'\n');
        }
    }
}

/// A record's parts.
struct Record<'a> {
    time: &'a str,
    partial: bool,
    text: &'a [u8],
}

fn split_record(record: &[u8]) -> Option<Record<'_>> {
    let mut parts = record.splitn(4, |byte| *byte == b' ');
    let time = std::str::from_utf8(parts.next()?).ok()?;
    let _stream = parts.next()?;
    let partial = match parts.next()? {
        b"P" => true,
        b"F" => false,
        _ => return None,
    };
    Some(Record { time, partial, text: parts.next()? })
}

/// All files with their inodes, the newest first; opened again when a rotation came between.
fn open_all(path: &Path) -> io::Result<Vec<(File, u64)>> {
    for _ in 0..OPEN_TRIES {
        let mut files = Vec::new();
        for number in 0..MAX_FILES {
            let name = if number == 0 { path.to_owned() } else { numbered(path, number) };
            match File::open(name) {
                Ok(file) => {
                    let inode = file.metadata()?.ino();
                    files.push((file, inode));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Right after a rotation the newest does not exist yet.
                    if number > 0 {
                        break;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let first = files.first().map(|(_, inode)| *inode);
        files.dedup_by_key(|(_, inode)| *inode);
        let now = fs::metadata(path).ok().map(|data| data.ino());
        if now.is_none() || now == first {
            return Ok(files);
        }
    }
    Err(io::Error::other("the log is rotated faster than it can be opened"))
}

/// Drops files and positions the oldest that is left, so that `lines` records follow.
fn keep_tail(files: &mut Vec<(File, u64)>, lines: u64) -> io::Result<()> {
    let mut wanted = lines;
    for index in 0..files.len() {
        let file = &mut files[index].0;
        let (offset, found) = tail_of(file, wanted)?;
        file.seek(SeekFrom::Start(offset))?;
        wanted -= found;
        if wanted == 0 {
            files.truncate(index + 1);
            return Ok(());
        }
    }
    Ok(())
}

/// Where the last `lines` records of a file begin, and how many there are up to that number.
fn tail_of(file: &mut File, lines: u64) -> io::Result<(u64, u64)> {
    let length = file.metadata()?.len();
    if lines == 0 {
        return Ok((length, 0));
    }
    let mut end = length;
    // Line ends seen from the back; the one that ends the last record does not begin another.
    let mut ends = 0;
    while end > 0 {
        let begin = end.saturating_sub(CHUNK as u64);
        let mut chunk = vec![0; usize::try_from(end - begin).unwrap_or(CHUNK)];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut chunk)?;
        for (at, _) in chunk.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
            if ends == lines {
                return Ok((begin + at as u64 + 1, lines));
            }
            ends += 1;
        }
        end = begin;
    }
    Ok((0, ends))
}

#[cfg(test)]
mod tests {
    use super::{FileLog, LogOptions};
    use crate::node::shim::log::{Limits, LogWriter, Stream};
    use jiff::Timestamp;
    use std::path::Path;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_796_000_000 + second).unwrap()
    }

    fn all(log: &mut FileLog) -> String {
        let mut text = Vec::new();
        loop {
            let piece = log.read().unwrap();
            if piece.is_empty() {
                return String::from_utf8(text).unwrap();
            }
            text.extend_from_slice(&piece);
        }
    }

    fn written(dir: &Path, count: i64, limits: Limits) -> LogWriter {
        let mut log = LogWriter::open(&dir.join("log"), limits).unwrap();
        for number in 0..count {
            log.write(Stream::Stdout, at(number), format!("line {number}\n").as_bytes()).unwrap();
        }
        log
    }

    #[test]
    fn tail_and_since_reach_over_rotated_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        written(dir.path(), 10, Limits { file_bytes: 120, files: 5 });
        assert!(dir.path().join("log.2").exists());
        let read = |options: LogOptions| all(&mut FileLog::open(path.clone(), &options).unwrap());
        let lines = |from: i64| (from..10).map(|number| format!("line {number}\n")).collect::<String>();
        assert_eq!(read(LogOptions::default()), lines(0));
        for count in 0..=12 {
            let options = LogOptions { tail_lines: Some(count), ..Default::default() };
            assert_eq!(read(options), lines(10 - i64::try_from(count.min(10)).unwrap()), "tail {count}");
        }
        assert_eq!(read(LogOptions { since: Some(at(7)), ..Default::default() }), lines(7));
        let stamped = read(LogOptions { tail_lines: Some(1), timestamps: true, ..Default::default() });
        assert_eq!(stamped, format!("{:.9} line 9\n", at(9)));
    }

    #[test]
    fn a_reader_at_the_end_goes_on_through_rotations() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = written(dir.path(), 3, Limits { file_bytes: 80, files: 5 });
        let mut reader = FileLog::open(dir.path().join("log"), &LogOptions::default()).unwrap();
        let mut seen = all(&mut reader);
        for number in 3..30 {
            writer.write(Stream::Stderr, at(number), format!("line {number}\n").as_bytes()).unwrap();
            if number % 4 == 0 {
                seen.push_str(&all(&mut reader));
            }
        }
        seen.push_str(&all(&mut reader));
        assert_eq!(seen, (0..30).map(|number| format!("line {number}\n")).collect::<String>());
    }

    #[test]
    fn parts_of_a_long_line_are_joined_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = written(dir.path(), 0, Limits::default());
        let long = "y".repeat(40_000) + "\n";
        writer.write(Stream::Stdout, at(0), long.as_bytes()).unwrap();
        let mut reader = FileLog::open(dir.path().join("log"), &LogOptions::default()).unwrap();
        assert_eq!(all(&mut reader), long);
    }
}
