//! Writes the protobuf wire format. Knows no messages.

/// A message being written, field by field.
#[derive(Debug, Default, Clone)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// An empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a whole number or boolean.
    #[must_use]
    pub fn varint(mut self, number: u32, value: u64) -> Self {
        self.key(number, 0);
        self.raw(value);
        self
    }

    /// Adds text, bytes or a message.
    #[must_use]
    pub fn block(mut self, number: u32, content: impl AsRef<[u8]>) -> Self {
        self.key(number, 2);
        self.raw(content.as_ref().len() as u64);
        self.0.extend_from_slice(content.as_ref());
        self
    }

    /// Adds text if there is some.
    #[must_use]
    pub fn text(self, number: u32, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.block(number, text),
            None => self,
        }
    }

    /// Adds one block for each item.
    #[must_use]
    pub fn blocks<T: AsRef<[u8]>>(self, number: u32, items: impl IntoIterator<Item = T>) -> Self {
        items.into_iter().fold(self, |message, item| message.block(number, item))
    }

    /// Adds a floating point number.
    #[must_use]
    pub fn double(mut self, number: u32, value: f64) -> Self {
        self.key(number, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, number: u32, wire: u64) {
        self.raw(u64::from(number) << 3 | wire);
    }

    fn raw(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }
}

impl AsRef<[u8]> for Writer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
