//! Inspect: reads every frame of a log and every record of the checkpoint, and goes on behind damage. Changes nothing.
//! Knows nothing of how a store is opened.

use crate::engine::checkpoint::{self, Checkpoint, Mark, Marker};
use crate::engine::damage::Expected;
use crate::engine::disk::Disk;
use crate::engine::frame::{ALIGN, Kind};
use crate::engine::recovery::{RecentLimits, open_segments, recover};
use crate::engine::segment::{Segment, file_name, io_error, number_of};
use crate::error::EngineError;
use crate::revision::Revision;

/// Most damaged places that are told; a disk that is worse has no need for more.
pub const MAX_DAMAGES: usize = 100;

/// What was read, and what of it is not as it was written.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// Segments of the log.
    pub segments: u64,
    /// Valid frames in them.
    pub frames: u64,
    /// Bytes of those.
    pub frame_bytes: u64,
    /// Records in the checkpoint whose checksum is right.
    pub checkpoint_records: u64,
    /// The newest revision; known if nothing that it needs is damaged.
    pub current: Option<Revision>,
    /// The oldest revision that can be read.
    pub oldest: Option<Revision>,
    /// Records that are there at the newest revision.
    pub records: u64,
    /// Damage, at most [`MAX_DAMAGES`] places.
    pub damages: Vec<EngineError>,
}

impl Inspection {
    fn note(&mut self, damage: EngineError) {
        let is_known = self.damages.iter().any(|known| known.to_string() == damage.to_string());
        if self.damages.len() < MAX_DAMAGES && !is_known {
            self.damages.push(damage);
        }
    }
}

/// Reads everything.
///
/// # Errors
/// Files cannot be read. Damage is no error.
pub fn inspect(disk: &dyn Disk, checkpoint: &mut dyn Checkpoint) -> Result<Inspection, EngineError> {
    let mut found = Inspection::default();
    let files = disk.list().map_err(|error| io_error("list", &disk.name(), error))?;
    let mark = match Marker::open(disk, &files) {
        Ok((_, mark)) => mark,
        Err(damage) => {
            found.note(damage);
            Mark::default()
        }
    };
    let mut numbers: Vec<u64> = files.iter().filter_map(|name| number_of(name)).collect();
    numbers.sort_unstable();
    for number in &numbers {
        let name = file_name(*number);
        let file = disk.open(&name).map_err(|error| io_error("open", &name, error))?;
        found.segments += 1;
        match Segment::open(*number, file) {
            Ok(segment) => frames(&segment, &mut found)?,
            Err(damage) => found.note(damage),
        }
    }
    found.checkpoint_records = checkpoint::inspect(checkpoint, &mut |damage| found.note(damage));
    whole(disk, &files, mark, checkpoint, &mut found)?;
    Ok(found)
}

/// Reads all frames of a segment, and goes on behind those that are not valid as long as there are more.
fn frames(segment: &Segment, found: &mut Inspection) -> Result<(), EngineError> {
    let (mut offset, mut buffer) = (ALIGN, Vec::new());
    let mut next = Some(segment.title.first);
    let mut base = segment.title.base.unwrap_or(0);
    loop {
        let before = Revision::new(segment.title.first.get().saturating_sub(1));
        let (kind, first) = if base > 0 { (Kind::Base, Some(before)) } else { (Kind::Group, next) };
        let expected = Expected { kind, first };
        if let Some(header) = segment.frame_at(offset, &mut buffer)? {
            match header.kind {
                Kind::Base => base = base.saturating_sub(u64::from(header.count)),
                _ => next = Some(Revision::new(header.first + u64::from(header.count))),
            }
            found.frames += 1;
            found.frame_bytes += header.span();
            offset += header.span();
        } else if let Some(later) = segment.has_frame_after(offset)? {
            found.note(segment.damaged(offset, expected, "a frame is not valid"));
            // How many records or revisions were in it is not known.
            (base, next, offset) = (0, None, later);
        } else {
            if next.is_some()
                && let Some(flipped) = segment.flipped(offset, expected)?
            {
                found.note(segment.corrupt(offset, format!("the last frame is not valid: {flipped}")));
            }
            return Ok(());
        }
    }
}

/// Recovers the state as opening would, to see that nothing is missing.
fn whole(
    disk: &dyn Disk,
    files: &[String],
    mark: Mark,
    checkpoint: &mut dyn Checkpoint,
    found: &mut Inspection,
) -> Result<(), EngineError> {
    let limits = RecentLimits { transactions: 0, bytes: 0 };
    let segments = open_segments(disk, files);
    let recovered = segments.and_then(|segments| {
        recover(&segments, mark, limits, || checkpoint::load(checkpoint, mark.revision))
    });
    match recovered {
        Ok(recovered) => {
            found.current = Some(recovered.state.revision);
            found.oldest = Some(recovered.oldest.max(mark.floor));
            found.records = recovered.state.records.len() as u64;
            Ok(())
        }
        Err(damage @ EngineError::Corrupt { .. }) => {
            // What stops recovery is told already, where it is of a frame or a record.
            if found.damages.is_empty() {
                found.note(damage);
            }
            Ok(())
        }
        Err(_) if !found.damages.is_empty() => Ok(()),
        Err(error) => Err(error),
    }
}
