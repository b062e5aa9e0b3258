//! How `top` looks: one frame from what is known. Knows no terminal beyond the buffer that it draws into.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table};
use strata_model::age;

use super::model::{Model, Queue};

/// The head, and the line of keys.
const LINE: u16 = 1;
/// Rows that a list has beside its content: a border above, and its heads.
const FRAME: u16 = 2;
/// Columns between two lists.
const GAP: u16 = 1;
/// Least rows of the lower half.
const LOWER: u16 = 8;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &Model, server: &str, now: Timestamp) {
    let (layers, gaps) = (model.layers(), model.gaps(now));
    let wanted = layers.len().max(model.queues.len()) as u16 + FRAME;
    let room = frame.area().height.saturating_sub(2 * LINE + LOWER);
    let parts = Layout::vertical([
        Constraint::Length(LINE),
        Constraint::Length(wanted.min(room.max(FRAME + 1))),
        Constraint::Min(0),
        Constraint::Length(LINE),
    ])
    .split(frame.area());
    head(frame, parts[0], model, gaps.len(), server, now);
    let upper = Layout::horizontal([Constraint::Percentage(38), Constraint::Percentage(62)])
        .spacing(GAP)
        .split(parts[1]);
    let rows = layers.iter().map(|layer| {
        let style = if layer.ready == layer.total { Style::new() } else { Style::new().fg(Color::Yellow) };
        let name = format!("{}{}", "  ".repeat(layer.depth), layer.resource);
        Row::new([name, format!("{}/{}", layer.ready, layer.total)]).style(style)
    });
    list(frame, upper[0], "layers", ["TYPE", "READY"], [Constraint::Fill(1), Constraint::Length(13)], rows);
    queues(frame, upper[1], &model.queues);
    let lower = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)])
        .spacing(GAP)
        .split(parts[2]);
    let rows = gaps.iter().map(|gap| {
        Row::new([gap.object.clone(), age::human(gap.seconds), gap.why.clone()])
            .style(Style::new().fg(Color::Yellow))
    });
    let widths = [Constraint::Fill(3), Constraint::Length(5), Constraint::Fill(2)];
    list(frame, lower[0], "not as wished", ["OBJECT", "FOR", "WHY"], widths, rows);
    let rows = model.writes().map(|write| {
        let ago = age::human((now.as_second() - write.at.as_second()).max(0));
        let what = format!("{} {}", write.what, write.object);
        Row::new([ago, write.revision.to_string(), what, write.by.clone()])
    });
    let widths = [Constraint::Length(5), Constraint::Length(8), Constraint::Fill(3), Constraint::Fill(1)];
    list(frame, lower[1], "writes", ["AGO", "REVISION", "WHAT", "BY"], widths, rows);
    let keys = Line::styled(" q quit", Style::new().add_modifier(Modifier::DIM));
    frame.render_widget(Paragraph::new(keys), parts[3]);
}

fn head(frame: &mut Frame<'_>, place: Rect, model: &Model, gaps: usize, server: &str, now: Timestamp) {
    let state = match (model.trouble.as_str(), gaps) {
        ("", 0) => Span::styled("all as wished", Style::new().fg(Color::Green)),
        ("", gaps) => Span::styled(format!("{gaps} not as wished"), Style::new().fg(Color::Yellow)),
        (trouble, _) => Span::styled(trouble.to_owned(), Style::new().fg(Color::Red)),
    };
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let facts = format!("  {server}  revision {}  {:.1} writes/s  ", model.revision, model.rate(now));
    let line = Line::from(vec![Span::styled("strata top", bold), Span::raw(facts), state]);
    frame.render_widget(Paragraph::new(line), place);
}

fn queues(frame: &mut Frame<'_>, place: Rect, queues: &[Queue]) {
    let heads = ["CONTROLLER", "READY", "RUN", "DELAY", "FAIL", "OLDEST", "CONVERGES", "WROTE", "NO-OPS"];
    let rows = queues.iter().map(|queue| {
        let [ready, running, delayed, parked] = queue.keys;
        let style = match (queue.leads, queue.failed) {
            (_, 1..) => Style::new().fg(Color::Red),
            (false, _) => Style::new().add_modifier(Modifier::DIM),
            _ => Style::new(),
        };
        let name = if queue.leads { queue.name.clone() } else { format!("{} (stands by)", queue.name) };
        let mean = queue.mean().map_or_else(|| "-".to_owned(), seconds);
        let oldest = if ready > 0 { seconds(queue.oldest) } else { "-".to_owned() };
        let cells = [
            name,
            (ready + parked).to_string(),
            running.to_string(),
            delayed.to_string(),
            queue.failed.to_string(),
            oldest,
            mean,
            queue.wrote.to_string(),
            queue.noops.to_string(),
        ];
        Row::new(cells.map(Cell::from)).style(style)
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(5),
        Constraint::Length(3),
        Constraint::Length(5),
        Constraint::Length(4),
        Constraint::Length(6),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(7),
    ];
    list(frame, place, "queues", heads, widths, rows);
}

fn list<'a, const N: usize>(
    frame: &mut Frame<'_>,
    place: Rect,
    title: &'a str,
    heads: [&'a str; N],
    widths: [Constraint; N],
    rows: impl Iterator<Item = Row<'a>>,
) {
    // More rows than there is room for are not made.
    let rows = rows.take(usize::from(place.height));
    let heads = Row::new(heads).style(Style::new().add_modifier(Modifier::BOLD));
    let block = Block::new().borders(Borders::TOP).title(format!(" {title} "));
    frame.render_widget(Table::new(rows, widths).header(heads).block(block), place);
}

/// Seconds, shortly.
fn seconds(value: f64) -> String {
    match value {
        v if v < 0.9995 => format!("{:.0}ms", v * 1000.0),
        v if v < 10.0 => format!("{v:.1}s"),
        v => age::human(v as i64),
    }
}
