//! Output: the lines that children write to standard error, on the way to ours: bounded, and with the child's name.
//! Knows lines, never what they mean.

use std::io::{self, Write};

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

use super::super::telemetry::Format;

/// Most bytes of one line; what is longer is cut.
const LINE_BYTES: usize = 8 * 1024;

/// Reads the next line without its end, of at most [`LINE_BYTES`]; the rest of a longer one is dropped. `None` at the end.
///
/// # Errors
/// Reading failed.
pub async fn next_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut begun = false;
    loop {
        let piece = reader.fill_buf().await?;
        if piece.is_empty() {
            return Ok(begun.then(|| text(&line)));
        }
        begun = true;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(piece.len());
        let room = LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&piece[..taken.min(room)]);
        reader.consume(end.map_or(taken, |end| end + 1));
        if end.is_some() {
            return Ok(Some(text(&line)));
        }
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end_matches('\r').to_owned()
}

/// A child's line as it appears among ours. Pure.
pub fn labelled(format: Format, child: &str, line: &str) -> String {
    match format {
        Format::Text => format!("{child} | {line}"),
        Format::Json => {
            let name = serde_json::Value::from(child);
            match line.strip_prefix('{') {
                Some(rest) if rest.trim_start().starts_with('"') => format!("{{\"role\":{name},{rest}"),
                _ => serde_json::json!({ "role": child, "message": line }).to_string(),
            }
        }
    }
}

/// A line of our own, which is no log event, in the form of log lines. Pure.
pub fn own(format: Format, line: &str) -> String {
    match format {
        Format::Text => format!("strata: {line}"),
        Format::Json => serde_json::json!({ "role": "up", "message": line }).to_string(),
    }
}

/// Writes one line to our standard error, whole. There is nobody to tell if that fails.
pub fn print(line: &str) {
    let mut line = line.to_owned();
    line.push('\n');
    if let Err(error) = io::stderr().lock().write_all(line.as_bytes()) {
        tracing::trace!(%error, "standard error is closed");
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn lines_are_bounded() {
        let long = "x".repeat(3 * LINE_BYTES);
        let bytes = format!("one\r\n{long}\n\nlast");
        let mut reader = BufReader::with_capacity(100, bytes.as_bytes());
        assert_eq!(next_line(&mut reader).await.unwrap().as_deref(), Some("one"));
        assert_eq!(next_line(&mut reader).await.unwrap().map(|line| line.len()), Some(LINE_BYTES));
        assert_eq!(next_line(&mut reader).await.unwrap().as_deref(), Some(""));
        assert_eq!(next_line(&mut reader).await.unwrap().as_deref(), Some("last"));
        assert_eq!(next_line(&mut reader).await.unwrap(), None);
    }

    #[test]
    fn json_stays_json() {
        assert_eq!(labelled(Format::Text, "node", "a"), "node | a");
        for line in ["{\"level\":\"WARN\"}", "{ \"level\":1}", "{}", "plain \"text\"", "{broken"] {
            let value: serde_json::Value =
                serde_json::from_str(&labelled(Format::Json, "node", line)).unwrap();
            assert_eq!(value["role"], "node", "{line}");
        }
    }
}
