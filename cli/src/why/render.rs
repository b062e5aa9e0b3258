//! The tree as text, for terminals and for pipes. Pure.

use super::Line;
use crate::output::style::{Painter, Tone};

/// Most converged siblings that are shown one by one; the rest is counted.
const MAX_CONVERGED: usize = 5;
/// Most siblings that are not converged that are shown one by one.
const MAX_GAPS: usize = 30;
/// Spaces between columns.
const GAP: usize = 3;

/// A line of the tree before it is laid out.
struct Drawn {
    branch: String,
    name: String,
    desired: String,
    actual: String,
    reason: String,
    tone: Tone,
    mark: &'static str,
}

/// The tree, one line an object, with a newline at the end of each.
pub fn tree(lines: &[Line], painter: Painter) -> String {
    let mut drawn = Vec::new();
    for line in lines {
        draw(line, "", "", &mut drawn);
    }
    let header = Drawn {
        branch: "  ".to_owned(),
        name: "OBJECT".to_owned(),
        desired: "WANTED".to_owned(),
        actual: "ACTUAL".to_owned(),
        reason: if drawn.iter().any(|d| !d.reason.is_empty()) { "WHY".to_owned() } else { String::new() },
        tone: Tone::Faint,
        mark: "",
    };
    drawn.insert(0, header);
    let width = |of: fn(&Drawn) -> usize| drawn.iter().map(of).max().unwrap_or(0) + GAP;
    let names = width(|d| d.branch.chars().count() + d.mark.chars().count() + d.name.chars().count());
    let desired = width(|d| d.desired.chars().count());
    let actual = width(|d| d.actual.chars().count());
    drawn.iter().map(|d| laid_out(d, [names, desired, actual], painter)).collect()
}

fn laid_out(d: &Drawn, [names, desired, actual]: [usize; 3], painter: Painter) -> String {
    let used = d.branch.chars().count() + d.mark.chars().count() + d.name.chars().count();
    let pad = |used: usize, width: usize| " ".repeat(width.saturating_sub(used));
    let tone = |text: &str| painter.paint(d.tone, text);
    let mut text = format!(
        "{}{}{}{}{}{}",
        painter.paint(Tone::Faint, &d.branch),
        tone(d.mark),
        if d.mark.is_empty() { tone(&d.name) } else { painter.paint(Tone::Strong, &d.name) },
        pad(used, names),
        painter.paint(Tone::Faint, &d.desired),
        pad(d.desired.chars().count(), desired),
    );
    text.push_str(&tone(&d.actual));
    if !d.reason.is_empty() {
        text.push_str(&pad(d.actual.chars().count(), actual));
        text.push_str(&tone(&d.reason));
    }
    format!("{}\n", text.trim_end())
}

fn draw(line: &Line, branch: &str, below: &str, out: &mut Vec<Drawn>) {
    let settled = line.settled();
    let (tone, mark) = match (line.converged, settled) {
        (true, true) => (Tone::Good, "✓ "),
        (true, false) => (Tone::Waiting, "… "),
        (false, _) => (Tone::Bad, "✗ "),
    };
    out.push(Drawn {
        branch: branch.to_owned(),
        name: match line.kind.ends_with("container") {
            true => format!("{} {}", line.kind, line.name),
            false => format!("{}/{}", line.kind, line.name),
        },
        desired: line.desired.clone(),
        actual: line.actual.clone(),
        reason: line.reason.as_ref().map(|r| r.to_string().replace('\n', " ")).unwrap_or_default(),
        tone,
        mark,
    });
    let (shown, hidden) = pick(&line.children);
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
