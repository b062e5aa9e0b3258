//! Where data and talk go. A reader that has left (a closed pipe) ends the program without a word; talk goes to stderr.

use std::io::{self, ErrorKind, IsTerminal as _, Write};
use std::process;

/// Exit code of a process whose reader left: what a shell shows for SIGPIPE.
const BROKEN_PIPE_EXIT: i32 = 141;

/// Writes data to stdout at once.
pub fn data(text: &str) -> io::Result<()> {
    bytes(text.as_bytes())
}

/// Writes raw data to stdout at once.
pub fn bytes(data: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(data).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(BROKEN_PIPE_EXIT),
        other => other,
    }
}

/// Says a line on stderr. A stderr that cannot be written to leaves nobody to tell.
pub fn say(line: &str) {
    let mut err = io::stderr().lock();
    if writeln!(err, "{line}").is_err() {
        tracing::debug!("stderr is closed");
    }
}

/// How many characters a line of stdout has, where that is a terminal that says so.
pub fn width() -> Option<usize> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(out).ok()?.ws_col;
    (columns > 0).then(|| usize::from(columns))
}

/// Clears a terminal, what scrolled out of it included.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// A page that is shown again whenever it is another one: in place on a terminal, one below the other elsewhere.
#[derive(Debug, Default)]
pub struct Live(String);

impl Live {
    /// Shows the page as it is now.
    pub fn show(&mut self, now: String) -> io::Result<()> {
        if now == self.0 {
            return Ok(());
        }
        let before = match (width(), self.0.is_empty()) {
            (Some(_), _) => CLEAR,
            (None, true) => "",
            (None, false) => "\n",
        };
        data(&format!("{before}{now}"))?;
        self.0 = now;
        Ok(())
    }
}

/// Whether colours may be used on stdout: it is a terminal that knows them, and `NO_COLOR` is unset or empty.
pub fn wants_colour() -> bool {
    let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    io::stdout().is_terminal() && unset("NO_COLOR") && !dumb
}
