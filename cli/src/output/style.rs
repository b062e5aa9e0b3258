//! Colours, where they are wanted. Knows the codes of terminals and nothing of what is printed.

/// What a colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// On its way.
    Waiting,
    /// At fault.
    Bad,
    /// Beside the point.
    Faint,
    /// Of note.
    Strong,
}

/// Paints, or not.
#[derive(Clone, Copy, Debug)]
pub struct Painter {
    /// Whether colours are used at all.
    pub colour: bool,
}

impl Painter {
    /// Leaves text as it is.
    #[cfg(test)]
    pub const PLAIN: Self = Self { colour: false };

    /// The text in a tone.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Waiting => "33",
            Tone::Bad => "31",
            Tone::Faint => "2",
            Tone::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_painted_only_on_request() {
        assert_eq!(Painter::PLAIN.paint(Tone::Bad, "x"), "x");
        assert_eq!(Painter { colour: true }.paint(Tone::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
