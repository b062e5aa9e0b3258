//! Reads the protobuf wire format from a slice, with offsets into the whole body for errors. Knows no messages.

use super::error::ProtobufError;

/// A window of a body.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    end: usize,
}

/// How a field is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// A whole number of variable length.
    Varint,
    /// Eight bytes.
    Fixed64,
    /// A length and that many bytes.
    Delimited,
    /// Four bytes.
    Fixed32,
}

impl<'a> Reader<'a> {
    /// A window over all of `body`, from byte `start`.
    pub fn new(body: &'a [u8], start: usize) -> Self {
        Self { body, at: start.min(body.len()), end: body.len() }
    }

    /// An error at the place read last.
    pub fn error(&self, problem: &'static str) -> ProtobufError {
        ProtobufError::Malformed { offset: self.at, problem }
    }

    /// Passes over bytes, at most all that are left.
    pub fn pass(&mut self, bytes: usize) {
        self.at = self.end.min(self.at + bytes);
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    /// Offset of the next byte in the body.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// What is left.
    pub fn rest(&self) -> &'a [u8] {
        &self.body[self.at..self.end]
    }

    /// The number and wire form of the next field, or `None` at the end.
    pub fn field(&mut self) -> Result<Option<(u32, Wire)>, ProtobufError> {
        if self.is_empty() {
            return Ok(None);
        }
        let start = *self;
        let key = self.varint()?;
        let wire = match key & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Delimited,
            5 => Wire::Fixed32,
            _ => return Err(start.error("unknown wire type")),
        };
        match u32::try_from(key >> 3) {
            Ok(number) if number > 0 => Ok(Some((number, wire))),
            _ => Err(start.error("field number out of range")),
        }
    }

    /// A whole number.
    pub fn varint(&mut self) -> Result<u64, ProtobufError> {
        let start = *self;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let Some(byte) = self.rest().first().copied() else {
                return Err(start.error("number cut short"));
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(start.error("number too long"))
    }

    /// Eight bytes, least significant first.
    pub fn fixed64(&mut self) -> Result<u64, ProtobufError> {
        let bytes = self.take(8)?.rest();
        Ok(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// A length and a window over that many bytes.
    pub fn delimited(&mut self) -> Result<Reader<'a>, ProtobufError> {
        let start = *self;
        let length = self.varint()?;
        usize::try_from(length)
            .map_err(|_| start.error("length out of range"))
            .and_then(|length| self.take(length))
    }

    /// Passes over a field.
    pub fn skip(&mut self, wire: Wire) -> Result<(), ProtobufError> {
        match wire {
            Wire::Varint => self.varint().map(drop),
            Wire::Fixed64 => self.take(8).map(drop),
            Wire::Delimited => self.delimited().map(drop),
            Wire::Fixed32 => self.take(4).map(drop),
        }
    }

    /// All that is left, as text.
    pub fn text(&self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.rest()).map_err(|error| ProtobufError::Malformed {
            offset: self.at + error.valid_up_to(),
            problem: "text is not UTF-8",
        })
    }

    fn take(&mut self, length: usize) -> Result<Reader<'a>, ProtobufError> {
        match self.at.checked_add(length) {
            Some(end) if end <= self.end => {
                let window = Reader { body: self.body, at: self.at, end };
                self.at = end;
                Ok(window)
            }
            _ => Err(self.error("length beyond the end")),
        }
    }
}
