//! `strata store backup`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::{Buf, Bytes};
use clap::Args;
use strata_client::client::Backup;
use strata_client::error::ClientError;
use strata_store::backup::{BackupError, Summary};
use strata_store::config::Config;
use strata_store::restore::{check, save};
use tokio::runtime::Handle;

use super::super::files::FileError;
use super::job::{self, Stop, Stopping, Where, hinted, local};
use crate::commands::connection::ConnectionArgs;
use crate::commands::error::{CliError, CliResult, usage};
use crate::output::stdout;

pub const EXAMPLES: &str = "\
Examples:
  strata store backup -o monday.strata
  strata store backup | zstd > monday.strata.zst
  strata store backup --store ~/.local/share/strata -o monday.strata    while nothing runs
  strata store backup -s https://10.0.0.5:6443 --token \"$TOKEN\" -o monday.strata";

/// The flags of `strata store backup`.
#[derive(Clone, Debug, Args)]
pub struct BackupArgs {
    /// The file to write; it is there when it is whole, and not before. `-` is standard output
    #[arg(short = 'o', long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    place: Where,
}

/// Runs it.
pub fn run(before: ConnectionArgs, args: BackupArgs) -> ExitCode {
    job::run(&args.place.log(), move |at, stop| {
        let BackupArgs { output, place } = args;
        let summary = if output.as_os_str() == "-" {
            if io::stdout().is_terminal() {
                return Err(usage(
                    "a backup is nothing to read on a terminal: name a file with -o, or send it on",
                ));
            }
            write(before, place, at, stop, io::stdout().lock())?
        } else {
            let file = NewFile::create(&output).map_err(local)?;
            let summary = write(before, place, at, stop, &file.file)?;
            file.keep().map_err(local)?;
            summary
        };
        let Summary { revision, records, bytes, .. } = summary;
        stdout::say(&format!("backed up {records} records of {bytes} bytes at resource version {revision}"));
        Ok(())
    })
}

fn write(
    before: ConnectionArgs,
    place: Where,
    at: &Handle,
    stop: Stop,
    out: impl Write,
) -> CliResult<Summary> {
    let mut out = Stopping { stream: out, stop };
    if let Some(engine) = place.engine()? {
        return at.block_on(save(&Config::default(), engine, &mut out)).map_err(hinted);
    }
    let session = place.session(before, at)?;
    let backup = at.block_on(session.client.backup())?;
    let mut arriving = Arriving { backup, at, piece: Bytes::new(), out, failed: None };
    match check(&mut arriving) {
        Ok(summary) => arriving.out.flush().map(|()| summary).map_err(CliError::from),
        Err(error) => Err(match (arriving.failed, error) {
            (Some(failed), _) => failed.into(),
            (None, BackupError::Cut { .. }) => {
                usage("the server ended before its backup did; there is no backup")
            }
            (None, error) => local(error),
        }),
    }
}

/// The bytes of a backup as the server sends them: written on as they are read.
struct Arriving<'a, W> {
    backup: Backup,
    at: &'a Handle,
    piece: Bytes,
    out: W,
    failed: Option<ClientError>,
}

impl<W: Write> Read for Arriving<'_, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.at.block_on(self.backup.next()) {
                Ok(Some(piece)) => {
                    self.out.write_all(&piece)?;
                    self.piece = piece;
                }
                Ok(None) => return Ok(0),
                Err(error) => {
                    self.failed = Some(error);
                    return Err(io::Error::other("the server failed"));
                }
            }
        }
        let count = buffer.len().min(self.piece.len());
        self.piece.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// A file that gets its name when it is whole; else it goes.
struct NewFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

impl NewFile {
    fn create(path: &Path) -> Result<NewFile, FileError> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        if path.is_dir() {
            return Err(FileError::of("write", path)(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
        let file = file.map_err(FileError::of("create", &part))?;
        Ok(NewFile { file, part, path: path.to_owned(), is_kept: false })
    }

    fn keep(mut self) -> Result<(), FileError> {
        self.file.sync_all().map_err(FileError::of("write", &self.part))?;
        fs::rename(&self.part, &self.path).map_err(FileError::of("write", &self.path))?;
        self.is_kept = true;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or_else(|| Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(FileError::of("write", folder))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_file(&self.part)
        {
            tracing::warn!(%error, path = %self.part.display(), "a part of a backup is left behind");
        }
    }
}
