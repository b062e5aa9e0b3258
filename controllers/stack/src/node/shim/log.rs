//! A container's log on disk: lines in CRI form (`time stream F|P text`), bounded and rotated. It must never
//! know processes; it is given bytes and the time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::node::attempt::FILE_MODE;

/// A line longer than this is cut into partial records (`P`) of this size, in bytes.
pub const MAX_RECORD: usize = 16 * 1024;

/// How much log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A file that reached this size, in bytes, is rotated.
    pub file_bytes: u64,
    /// How many files are kept, the one being written included; at least 1.
    pub files: usize,
}

impl Default for Limits {
    /// Five files of 10 MiB.
    fn default() -> Self {
        Self { file_bytes: 10 * 1024 * 1024, files: 5 }
    }
}

/// Which of the two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// The stream's name in a record.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Writes both streams of a container into one rotated file.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    limits: Limits,
    file: File,
    size: u64,
    /// The unfinished line of each stream.
    open: [Vec<u8>; 2],
}

impl LogWriter {
    /// Opens the log at `path`, appending to what is there.
    pub fn open(path: &Path, limits: Limits) -> io::Result<Self> {
        let file = open_append(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), limits, file, size, open: [Vec::new(), Vec::new()] })
    }

    /// Adds what a stream gave at `now`. A line is written once its end is there or it fills a record.
    pub fn write(&mut self, stream: Stream, now: Timestamp, bytes: &[u8]) -> io::Result<()> {
        let mut records = Vec::with_capacity(bytes.len() + 64);
        let open = &mut self.open[stream as usize];
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let mut rest = text;
            while open.len() + rest.len() > MAX_RECORD {
                let (head, tail) = rest.split_at(MAX_RECORD - open.len());
                open.extend_from_slice(head);
                put_record(&mut records, stream, now, 'P', open);
                open.clear();
                rest = tail;
            }
            open.extend_from_slice(rest);
            if ends {
                put_record(&mut records, stream, now, 'F', open);
                open.clear();
            }
        }
        self.put(&records)
    }

    /// Writes the unfinished line of a stream that ended.
    pub fn finish(&mut self, stream: Stream, now: Timestamp) -> io::Result<()> {
        let open = std::mem::take(&mut self.open[stream as usize]);
        if open.is_empty() {
            return Ok(());
        }
        let mut record = Vec::new();
        put_record(&mut record, stream, now, 'F', &open);
        self.put(&record)
    }

    fn put(&mut self, records: &[u8]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        if self.size >= self.limits.file_bytes {
            self.rotate()?;
        }
        self.file.write_all(records)?;
        self.size += records.len() as u64;
        Ok(())
    }

    /// Moves each file one number up, drops the oldest and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        for number in (1..self.limits.files).rev() {
            let newer = if number == 1 { self.path.clone() } else { numbered(&self.path, number - 1) };
            match fs::rename(newer, numbered(&self.path, number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        if self.limits.files <= 1 {
            fs::remove_file(&self.path)?;
        }
        self.file = open_append(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

/// The path of the rotated file with a number; 1 is the newest.
pub fn numbered(path: &Path, number: usize) -> PathBuf {
    path.with_extension(number.to_string())
}

fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(path)
}

fn put_record(into: &mut Vec<u8>, stream: Stream, now: Timestamp, tag: char, text: &[u8]) {
    into.extend_from_slice(format!("{now:.9} {} {tag} ", stream.as_str()).as_bytes());
    into.extend_from_slice(text);
    into.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::{Limits, LogWriter, MAX_RECORD, Stream, numbered};
    use jiff::Timestamp;
    use std::fs;

    fn at() -> Timestamp {
        "2026-11-30T20:00:00Z".parse().unwrap()
    }

    #[test]
    fn lines_are_written_whole_with_time_stream_and_tag() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LogWriter::open(&path, Limits::default()).unwrap();
        log.write(Stream::Stdout, at(), b"one\ntw").unwrap();
        log.write(Stream::Stderr, at(), b"bad\n").unwrap();
        log.write(Stream::Stdout, at(), b"o\n\nend").unwrap();
        log.finish(Stream::Stdout, at()).unwrap();
        log.finish(Stream::Stderr, at()).unwrap();
        let t = "2026-11-30T20:00:00.000000000Z";
        let want = format!(
            "{t} stdout F one\n{t} stderr F bad\n{t} stdout F two\n{t} stdout F \n{t} stdout F end\n"
        );
        assert_eq!(fs::read_to_string(path).unwrap(), want);
    }

    #[test]
    fn a_long_line_is_cut_into_partial_records() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LogWriter::open(&path, Limits::default()).unwrap();
        log.write(Stream::Stdout, at(), &vec![b'x'; 2 * MAX_RECORD + 5]).unwrap();
        log.write(Stream::Stdout, at(), b"\n").unwrap();
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<_> =
            text.lines().map(|line| (line.split(' ').nth(2).unwrap(), line.len() - 40)).collect();
        assert_eq!(lines, [("P", MAX_RECORD), ("P", MAX_RECORD), ("F", 5)]);
    }

    #[test]
    fn rotation_keeps_the_newest_files_and_never_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LogWriter::open(&path, Limits { file_bytes: 150, files: 3 }).unwrap();
        for number in 0..20 {
            log.write(Stream::Stdout, at(), format!("{number:060}\n").as_bytes()).unwrap();
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        let texts: Vec<_> = [numbered(&path, 2), numbered(&path, 1), path]
            .map(|path| fs::read_to_string(path).unwrap())
            .into_iter()
            .collect();
        let all = texts.concat();
        let numbers: Vec<u32> =
            all.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
        assert_eq!(numbers, (14..20).collect::<Vec<_>>());
    }
}
