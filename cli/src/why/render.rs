//! The tree as text, for terminals and for pipes. A cause is told in full once, where it stands; the lines above it
//! say only which way it lies. On a terminal it is folded into its column. Pure.

use super::{Line, Reason};
use crate::output::style::{Painter, Tone};

/// Most converged siblings that are shown one by one; the rest is counted.
const MAX_CONVERGED: usize = 5;
/// Most siblings that are not converged that are shown one by one.
const MAX_GAPS: usize = 30;
/// Spaces between columns.
const GAP: usize = 3;
/// Narrowest column that reasons are folded into; where there is less room they stand below their line.
const MIN_REASON: usize = 36;

/// A line of the tree before it is laid out.
struct Drawn {
    branch: String,
    /// What the branches of its children begin with.
    below: String,
    has_children: bool,
    name: String,
    desired: String,
    actual: String,
    reason: String,
    tone: Tone,
    mark: &'static str,
}

/// The tree, one line an object, with a newline at the end of each. With a `width`, in characters, reasons are folded
/// so that no line is longer on their account.
pub fn tree(lines: &[Line], painter: Painter, width: Option<usize>) -> String {
    let mut drawn = Vec::new();
    for line in lines {
        draw(line, "", "", &mut drawn);
    }
    let has_reasons = drawn.iter().any(|d| !d.reason.is_empty());
    let header = Drawn {
        branch: "  ".to_owned(),
        below: String::new(),
        has_children: false,
        name: "OBJECT".to_owned(),
        desired: "WANTED".to_owned(),
        actual: "ACTUAL".to_owned(),
        reason: if has_reasons { "WHY".to_owned() } else { String::new() },
        tone: Tone::Faint,
        mark: "",
    };
    drawn.insert(0, header);
    let column = |of: fn(&Drawn) -> usize| drawn.iter().map(of).max().unwrap_or(0) + GAP;
    let columns =
        [column(named), column(|d| d.desired.chars().count()), column(|d| d.actual.chars().count())];
    if width.is_some_and(|width| width < columns.iter().sum::<usize>() + MIN_REASON) {
        // Reasons stand below their lines, and have no column to head.
        drawn[0].reason.clear();
    }
    drawn.iter().map(|d| laid_out(d, columns, painter, width)).collect()
}

/// Characters before the second column.
fn named(d: &Drawn) -> usize {
    d.branch.chars().count() + d.mark.chars().count() + d.name.chars().count()
}

fn laid_out(d: &Drawn, columns: [usize; 3], painter: Painter, width: Option<usize>) -> String {
    let [names, desired, actual] = columns;
    let pad = |used: usize, width: usize| " ".repeat(width.saturating_sub(used));
    let tone = |text: &str| painter.paint(d.tone, text);
    let mut text = format!(
        "{}{}{}{}{}{}{}",
        painter.paint(Tone::Faint, &d.branch),
        tone(d.mark),
        if d.mark.is_empty() { tone(&d.name) } else { painter.paint(Tone::Strong, &d.name) },
        pad(named(d), names),
        painter.paint(Tone::Faint, &d.desired),
        pad(d.desired.chars().count(), desired),
        tone(&d.actual),
    );
    // The tree's bars go on beside folded reasons.
    let bars = format!("{}{}", d.below, if d.has_children { "│ " } else { "  " });
    let before: usize = columns.iter().sum();
    let used = bars.chars().count();
    let (first, indent, room) = match width {
        None => (true, 0, usize::MAX),
        Some(width) if width >= before + MIN_REASON => (true, before - used, width - before),
        Some(width) => (false, 2, width.saturating_sub(used + 2)),
    };
    for (at, part) in fold(&d.reason, room.max(MIN_REASON)).into_iter().enumerate() {
        if at == 0 && first {
            text.push_str(&format!("{}{}", pad(d.actual.chars().count(), actual), tone(&part)));
        } else {
            let bars = painter.paint(Tone::Faint, &bars);
            text = format!("{}\n{bars}{}{}", text.trim_end(), " ".repeat(indent), tone(&part));
        }
    }
    format!("{}\n", text.trim_end())
}

/// A text in parts of at most `room` characters, between words where that goes.
fn fold(text: &str, room: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        match parts.last_mut() {
            Some(part) if part.chars().count() + 1 + length <= room => {
                part.push(' ');
                part.push_str(word);
            }
            _ => {
                let letters: Vec<char> = word.chars().collect();
                parts.extend(letters.chunks(room.max(1)).map(|piece| piece.iter().collect::<String>()));
            }
        }
    }
    parts
}

/// The reason of a line, without what a line right below it says in full.
fn reason(line: &Line, shown: &[&Line]) -> String {
    let Some(own) = &line.reason else { return String::new() };
    let repeated = shown.iter().filter_map(|child| child.reason.as_ref()).find_map(|child| {
        let told = child.word == own.word && !child.message.is_empty();
        own.message.strip_suffix(child.message.as_str()).filter(|_| told)
    });
    let short = repeated.map(|before| Reason::new(own.word.clone(), before.trim_end_matches([' ', ':'])));
    short.as_ref().unwrap_or(own).to_string().replace('\n', " ")
}

fn draw(line: &Line, branch: &str, below: &str, out: &mut Vec<Drawn>) {
    let settled = line.settled();
    let (shown, hidden) = pick(&line.children);
    let (tone, mark) = match (line.converged, settled) {
        (true, true) => (Tone::Good, "✓ "),
        (true, false) => (Tone::Waiting, "… "),
        (false, _) => (Tone::Bad, "✗ "),
    };
    out.push(Drawn {
        branch: branch.to_owned(),
        below: below.to_owned(),
        has_children: !line.children.is_empty(),
        name: match line.kind.ends_with("container") {
            true => format!("{} {}", line.kind, line.name),
            false => format!("{}/{}", line.kind, line.name),
        },
        desired: line.desired.clone(),
        actual: line.actual.clone(),
        reason: reason(line, &shown),
        tone,
        mark,
    });
    for (at, child) in shown.iter().enumerate() {
        let last = at + 1 == shown.len() && hidden.is_empty();
        let (corner, bar) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        draw(child, &format!("{below}{corner}"), &format!("{below}{bar}"), out);
    }
    if !hidden.is_empty() {
        let settled = hidden.iter().filter(|l| l.settled()).count();
        let gaps = hidden.len() - settled;
        let name = match (settled, gaps) {
            (n, 0) => format!("and {n} more, all as wanted"),
            (n, gaps) => format!("and {} more, {gaps} of them not as wanted", n + gaps),
        };
        let (desired, actual, reason) = (String::new(), String::new(), String::new());
        out.push(Drawn {
            branch: format!("{below}└─ "),
            below: format!("{below}   "),
            has_children: false,
            name,
            desired,
            actual,
            reason,
            tone: Tone::Faint,
            mark: "",
        });
    }
}

/// The children to show, and those that are only counted: what is not as wanted comes before what is.
fn pick(children: &[Line]) -> (Vec<&Line>, Vec<&Line>) {
    let (mut good, mut bad) = (0, 0);
    children.iter().partition(|child| {
        let (count, most) = if child.settled() { (&mut good, MAX_CONVERGED) } else { (&mut bad, MAX_GAPS) };
        *count += 1;
        *count <= most
    })
}
