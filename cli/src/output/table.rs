//! Tables as kubectl prints them, from the server's Table answers. Pure: values in, text out.

use serde_json::Value;

/// Least width of a column, the gap included.
const MIN_WIDTH: usize = 6;
/// Spaces between columns.
const GAP: usize = 3;

/// A column of a Table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, as the server spells it.
    pub name: String,
    /// 0 is always shown, more only with `-o wide`.
    pub priority: i64,
}

/// A row of a Table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// One cell a column.
    pub cells: Vec<Value>,
    /// The object the row is about: its metadata, or all of it.
    pub object: Value,
}

impl Row {
    /// A text in the object's metadata, empty where there is none.
    pub fn meta(&self, field: &str) -> &str {
        self.object["metadata"][field].as_str().unwrap_or_default()
    }
}

/// A Table answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Columns; empty in later events of a watch.
    pub columns: Vec<Column>,
    /// Rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// The table in a `Table` object (meta.k8s.io/v1). What is missing is empty.
    pub fn from_value(mut value: Value) -> Self {
        let list = |value: &mut Value| match value.take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let columns = list(&mut value["columnDefinitions"]);
        let columns = columns.iter().map(|c| Column {
            name: c["name"].as_str().unwrap_or_default().to_owned(),
            priority: c["priority"].as_i64().unwrap_or(0),
        });
        let columns = columns.collect();
        let rows = list(&mut value["rows"])
            .into_iter()
            .map(|mut row| Row { cells: list(&mut row["cells"]), object: row["object"].take() });
        Self { columns, rows: rows.collect() }
    }

    /// Adds the rows of a further page or event.
    pub fn extend(&mut self, other: Self) {
        if self.columns.is_empty() {
            self.columns = other.columns;
        }
        self.rows.extend(other.rows);
    }
}

/// What is shown of a table, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableOptions {
    /// All columns.
    pub wide: bool,
    /// No line of headers.
    pub no_headers: bool,
    /// A first column with the namespace.
    pub with_namespace: bool,
    /// A last column with all labels.
    pub show_labels: bool,
    /// Columns with the values of these labels.
    pub label_columns: Vec<String>,
    /// Written before each name, as in `pod/`.
    pub prefix: String,
}

/// Prints tables one after the other, as a watch does: headers once, columns never narrower than before.
#[derive(Clone, Debug, Default)]
pub struct TablePrinter {
    options: TableOptions,
    columns: Vec<Column>,
    widths: Vec<usize>,
    headed: bool,
}

impl TablePrinter {
    /// A printer that has printed nothing yet.
    pub fn new(options: TableOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The lines of a table. Its columns may be left out where an earlier table had them.
    pub fn print(&mut self, table: &Table) -> String {
        if !table.columns.is_empty() {
            self.columns = table.columns.clone();
        }
        let mut lines = Vec::new();
        if !self.headed && !self.options.no_headers {
            lines.push(self.headers());
        }
        self.headed = true;
        lines.extend(table.rows.iter().map(|row| self.line(row)));
        layout(&lines, &mut self.widths)
    }

    fn shown(&self) -> impl Iterator<Item = (usize, &Column)> {
        let wide = self.options.wide;
        self.columns.iter().enumerate().filter(move |(_, c)| wide || c.priority == 0)
    }

    fn headers(&self) -> Vec<String> {
        let options = &self.options;
        let mut headers: Vec<String> =
            options.with_namespace.then(|| "NAMESPACE".to_owned()).into_iter().collect();
        headers.extend(self.shown().map(|(_, column)| column.name.to_uppercase()));
        let last = |key: &String| key.rsplit('/').next().unwrap_or(key).to_uppercase();
        headers.extend(options.label_columns.iter().map(last));
        headers.extend(options.show_labels.then(|| "LABELS".to_owned()));
        headers
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let options = &self.options;
        let mut cells: Vec<String> =
            options.with_namespace.then(|| row.meta("namespace").to_owned()).into_iter().collect();
        for (at, column) in self.shown() {
            let text = cell(row.cells.get(at).unwrap_or(&Value::Null));
            cells.push(if column.name == "Name" { format!("{}{text}", options.prefix) } else { text });
        }
        let labels = &row.object["metadata"]["labels"];
        cells.extend(options.label_columns.iter().map(|key| labels[key].as_str().unwrap_or("").to_owned()));
        cells.extend(options.show_labels.then(|| labels_text(labels)));
        cells
    }
}

/// `a=b,c=d`, or `<none>`.
pub fn labels_text(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    if pairs.is_empty() { "<none>".to_owned() } else { pairs.join(",") }
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return "<none>".to_owned(),
        Value::String(text) => text,
        other => return other.to_string(),
    };
    match text.find(['\n', '\r', '\u{c}']) {
        Some(end) => format!("{}...", &text[..end]),
        None => text.clone(),
    }
}

/// Lays cells out in columns. `widths` is the least width of each column and grows with the lines.
pub fn layout(lines: &[Vec<String>], widths: &mut Vec<usize>) -> String {
    for line in lines {
        for (at, cell) in line.iter().enumerate() {
            let width = (cell.chars().count() + GAP).max(MIN_WIDTH);
            match widths.get_mut(at) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for line in lines {
        for (at, cell) in line.iter().enumerate() {
            text.push_str(cell);
            if at + 1 < line.len() {
                let gap = widths[at].saturating_sub(cell.chars().count());
                text.extend(std::iter::repeat_n(' ', gap));
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table() -> Table {
        Table::from_value(json!({
            "columnDefinitions": [{"name": "Name", "priority": 0}, {"name": "Ready"}, {"name": "IP", "priority": 1}],
            "rows": [
                {"cells": ["web-1", "1/1", "10.0.0.1"], "object": {"metadata":
                    {"name": "web-1", "namespace": "shop", "labels": {"app": "web", "tier/x": "front"}}}},
                {"cells": ["b", 3, null], "object": {"metadata": {"name": "b", "namespace": "d"}}}]}))
    }

    #[test]
    fn columns_are_padded_as_in_kubectl() {
        let text = TablePrinter::new(TableOptions::default()).print(&table());
        assert_eq!(text, "NAME    READY\nweb-1   1/1\nb       3\n");
    }

    #[test]
    fn options_add_columns() {
        let options = TableOptions {
            wide: true,
            with_namespace: true,
            show_labels: true,
            label_columns: vec!["tier/x".into()],
            prefix: "pod/".into(),
            ..TableOptions::default()
        };
        assert_eq!(
            TablePrinter::new(options).print(&table()),
            "NAMESPACE   NAME        READY   IP         X       LABELS\n\
             shop        pod/web-1   1/1     10.0.0.1   front   app=web,tier/x=front\n\
             d           pod/b       3       <none>             <none>\n"
        );
    }

    #[test]
    fn later_tables_keep_the_widths_and_need_no_columns() {
        let mut printer = TablePrinter::new(TableOptions { no_headers: true, ..TableOptions::default() });
        printer.print(&table());
        let mut later = table();
        later.columns.clear();
        later.rows.remove(0);
        assert_eq!(printer.print(&later), "b       3\n");
    }
}
