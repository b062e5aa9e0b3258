//! Slots: two numbers in a file, written in turn to one of two places, so that a torn write leaves the ones before.
//! Knows nothing of what the numbers mean.

use std::sync::Arc;

use crate::engine::codec::{self, Decoder};
use crate::engine::disk::{Disk, DiskFile};
use crate::engine::frame::{self, ALIGN, HEADER_BYTES, Header, Kind};
use crate::engine::segment::io_error;
use crate::error::EngineError;

/// What a slot holds.
type Numbers = (u64, u64);

/// A file of two slots. It is made when it is first written.
pub struct Slots {
    name: &'static str,
    file: Option<Arc<dyn DiskFile>>,
    generation: u64,
}

impl Slots {
    /// The file of this name, and what was last written to it; `None` if there is no such file.
    ///
    /// # Errors
    /// `Corrupt` if there is a file but neither slot is valid.
    pub fn open(
        disk: &dyn Disk,
        files: &[String],
        name: &'static str,
    ) -> Result<(Slots, Option<Numbers>), EngineError> {
        if !files.iter().any(|file| file == name) {
            return Ok((Slots { name, file: None, generation: 0 }, None));
        }
        let file = disk.open(name).map_err(|error| io_error("open", name, error))?;
        let mut newest: Option<(u64, Numbers)> = None;
        if file.length() >= 2 * ALIGN {
            for slot in 0..2 {
                let found = read(file.as_ref(), name, slot)?;
                newest = newest.into_iter().chain(found).max_by_key(|(generation, _)| *generation);
            }
        }
        let Some((generation, numbers)) = newest else {
            let what = "neither slot is valid".to_owned();
            return Err(EngineError::Corrupt { file: name.to_owned(), offset: 0, what });
        };
        Ok((Slots { name, file: Some(file), generation }, Some(numbers)))
    }

    /// Makes two numbers durable.
    ///
    /// # Errors
    /// They may or may not be.
    pub fn write(&mut self, disk: &dyn Disk, numbers: Numbers) -> Result<(), EngineError> {
        let generation = self.generation + 1;
        let offset = generation % 2 * ALIGN;
        let mut bytes = Vec::new();
        let start = frame::begin(&mut bytes);
        codec::put_number(&mut bytes, generation);
        codec::put_number(&mut bytes, numbers.1);
        frame::finish(&mut bytes, start, Kind::Checkpoint, (0, offset), numbers.0, 1);
        let put = |file: &dyn DiskFile| {
            file.write_at(&bytes, offset).map_err(|error| io_error("write", self.name, error))?;
            file.sync().map_err(|error| io_error("sync", self.name, error))
        };
        match &self.file {
            Some(file) => put(file.as_ref())?,
            None => {
                let new = format!("{}.new", self.name);
                let file = disk.create(&new, 2 * ALIGN).map_err(|error| io_error("create", &new, error))?;
                put(file.as_ref())?;
                disk.rename(&new, self.name).map_err(|error| io_error("rename", self.name, error))?;
                disk.sync().map_err(|error| io_error("sync", self.name, error))?;
                self.file = Some(file);
            }
        }
        self.generation = generation;
        Ok(())
    }
}

fn read(file: &dyn DiskFile, name: &str, slot: u64) -> Result<Option<(u64, Numbers)>, EngineError> {
    let offset = slot * ALIGN;
    let mut bytes = vec![0; ALIGN as usize];
    file.read_at(&mut bytes, offset).map_err(|error| io_error("read", name, error))?;
    let header = Header::read(&bytes).filter(|header| header.kind == Kind::Checkpoint);
    let Some(header) = header.filter(|header| frame::is_intact(header, &bytes, (0, offset))) else {
        return Ok(None);
    };
    let mut decoder = Decoder::new(&bytes[HEADER_BYTES..]);
    let (Ok(generation), Ok(second)) = (decoder.number(), decoder.number()) else { return Ok(None) };
    Ok(Some((generation, (header.first, second))))
}
