//! Screen: a tree that is drawn again in place on a terminal, and told change by change elsewhere. What is to be written
//! is decided by pure functions.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};

use rustix::termios::tcgetwinsize;

use crate::output::stdout;
use crate::output::style::Painter;
use crate::why::{Line, render};

/// Rows of a terminal that does not say.
const ROWS: usize = 24;

/// Where a tree is shown.
pub struct Screen {
    terminal: bool,
    /// Rows of the last frame that the next one replaces.
    drawn: usize,
    /// What was told of each object, where there is no terminal.
    told: BTreeMap<String, String>,
}

impl Screen {
    /// The process's standard output.
    pub fn new() -> Screen {
        Screen { terminal: io::stdout().is_terminal(), drawn: 0, told: BTreeMap::new() }
    }

    /// Something else was printed: the next frame stands below it.
    pub fn release(&mut self) {
        self.drawn = 0;
    }

    /// Shows how things are.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn show(&mut self, lines: &[Line]) -> io::Result<()> {
        let text = if self.terminal {
            let tree = render::tree(lines, Painter { colour: stdout::wants_colour() }, stdout::width());
            let rows = tcgetwinsize(io::stdout()).map_or(ROWS, |size| usize::from(size.ws_row)).max(2);
            let (text, drawn) = frame(self.drawn, &tree, rows - 1);
            self.drawn = drawn;
            text
        } else {
            changes(lines, &mut self.told)
        };
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// The bytes that replace the last frame's rows by `tree`, of at most `most` rows, and how many rows those are. Lines
/// wider than the terminal are cut by it.
fn frame(drawn: usize, tree: &str, most: usize) -> (String, usize) {
    let mut rows: Vec<String> = tree.lines().map(str::to_owned).collect();
    if rows.len() > most {
        let hidden = rows.len() - most + 1;
        rows.truncate(most.saturating_sub(1));
        rows.push(format!("… and {hidden} more lines"));
    }
    let up = if drawn == 0 { String::new() } else { format!("\x1b[{drawn}A") };
    (format!("{up}\x1b[J\x1b[?7l{}\n\x1b[?7h", rows.join("\n")), rows.len())
}

/// One line for each object whose state is not the one that was told, and for each that is gone.
fn changes(lines: &[Line], told: &mut BTreeMap<String, String>) -> String {
    let mut now = BTreeMap::new();
    let mut text = String::new();
    for line in lines {
        collect(line, "", &mut now, told, &mut text);
    }
    for gone in told.keys().filter(|name| !now.contains_key(*name)) {
        text.push_str(&format!("{gone}: gone\n"));
    }
    *told = now;
    text
}

fn collect(
    line: &Line,
    above: &str,
    now: &mut BTreeMap<String, String>,
    told: &BTreeMap<String, String>,
    text: &mut String,
) {
    let own = format!("{}/{}", line.kind, line.name);
    // A container's name means something in its pod only.
    let name = if line.kind.ends_with("container") { format!("{above} {own}") } else { own };
    let state = state(line);
    if told.get(&name) != Some(&state) {
        text.push_str(&format!("{name}: {state}\n"));
    }
    for child in &line.children {
        collect(child, &name, now, told, text);
    }
    now.insert(name, state);
}

fn state(line: &Line) -> String {
    // How long is no change.
    let mut state = line.actual.split(" for ").next().unwrap_or_default().to_owned();
    if !line.converged {
        state.push_str(&format!(" (wanted: {})", line.desired));
        if let Some(reason) = &line.reason {
            state.push_str(&format!(": {}", reason.to_string().replace('\n', " ")));
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, name: &str, actual: &str, converged: bool, children: Vec<Line>) -> Line {
        Line {
            kind: kind.to_owned(),
            name: name.to_owned(),
            desired: "2 ready".to_owned(),
            actual: actual.to_owned(),
            converged,
            children,
            ..Line::default()
        }
    }

    #[test]
    fn a_frame_replaces_the_one_before() {
        let (first, rows) = frame(0, "a\nb\n", 10);
        assert_eq!((first.as_str(), rows), ("\x1b[J\x1b[?7la\nb\n\x1b[?7h", 2));
        let (second, rows) = frame(2, "1\n2\n3\n4\n", 3);
        assert_eq!((second.as_str(), rows), ("\x1b[2A\x1b[J\x1b[?7l1\n2\n… and 2 more lines\n\x1b[?7h", 3));
    }

    #[test]
    fn elsewhere_only_what_changed_is_told() {
        let mut told = BTreeMap::new();
        let pod = |state, done| line("Pod", "a", state, done, vec![]);
        let later = |seconds| [line("Pod", "b", &format!("running for {seconds}s"), true, vec![])];
        assert_eq!(changes(&later(1), &mut BTreeMap::new()), "Pod/b: running\n");
        let first = [line("Deployment", "x", "0 ready", false, vec![pod("Pending", false)])];
        assert_eq!(
            changes(&first, &mut told),
            "Deployment/x: 0 ready (wanted: 2 ready)\nPod/a: Pending (wanted: 2 ready)\n"
        );
        assert_eq!(changes(&first, &mut told), "");
        let second = [line("Deployment", "x", "0 ready", false, vec![pod("Running", true)])];
        assert_eq!(changes(&second, &mut told), "Pod/a: Running\n");
        let third = [line("Deployment", "x", "2 ready", true, vec![])];
        assert_eq!(changes(&third, &mut told), "Deployment/x: 2 ready\nPod/a: gone\n");
    }
}
