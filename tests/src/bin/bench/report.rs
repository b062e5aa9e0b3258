//! Results: what was measured, beside its target. Prints a table for people and lines for machines.

use std::time::Duration;

/// What a value should be.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

/// The targets, by name.
const TARGETS: &[(&str, Target)] = &[
    ("put64_vs_etcd", Target::AtLeast(6.5)),
    ("put256_vs_etcd", Target::AtLeast(6.5)),
    ("http_put64_vs_etcd", Target::AtLeast(3.0)),
    ("put1_latency_vs_etcd", Target::AtMost(0.5)),
    ("put64_vs_floor", Target::AtLeast(0.35)),
    ("grpc_create64_vs_etcd", Target::AtLeast(1.5)),
    ("range10k_vs_etcd", Target::AtMost(0.05)),
    ("watch1000_vs_etcd", Target::AtLeast(4.0)),
    ("watch_p99_vs_etcd", Target::AtMost(0.5)),
    ("open1m_vs_etcd", Target::AtMost(0.3)),
    ("memory1m_vs_etcd", Target::AtMost(0.45)),
    ("space_amplification", Target::AtMost(3.0)),
    ("compaction_stall_p99", Target::AtMost(1.5)),
    ("list10k_vs_static", Target::AtMost(1.3)),
    ("list_selector_vs_full", Target::AtMost(0.1)),
    ("create64_rest_vs_etcd", Target::AtLeast(1.5)),
    ("patch64_rest_vs_etcd", Target::AtLeast(1.2)),
    ("get64_rest_vs_etcd", Target::AtLeast(3.0)),
    ("watch1000_rest_vs_etcd", Target::AtLeast(3.0)),
    ("memory_per_object", Target::AtMost(2.0)),
    ("crd_memory_kib", Target::AtMost(100.0)),
    ("crd_ready_ms", Target::AtMost(20.0)),
    ("start_ms", Target::AtMost(100.0)),
    ("start100k_ms", Target::AtMost(1000.0)),
    ("running_s", Target::AtMost(20.0)),
    ("noop_us_per_key", Target::AtMost(10.0)),
    ("noop_writes", Target::AtMost(0.0)),
    ("controllers_mb", Target::AtMost(300.0)),
    ("rollout_s", Target::AtMost(10.0)),
    ("drift_p99_ms", Target::AtMost(300.0)),
    ("first_sync_s", Target::AtMost(15.0)),
    ("noop_pass_s", Target::AtMost(1.0)),
    ("noop_pass_writes", Target::AtMost(0.0)),
    ("one_commit_ms", Target::AtMost(500.0)),
    ("heal_p99_ms", Target::AtMost(300.0)),
];

struct Row {
    name: &'static str,
    value: f64,
    /// Of a figure; a ratio has none.
    unit: Option<&'static str>,
    /// What it is made of.
    detail: String,
}

/// Everything measured so far.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a ratio, with what it is made of.
    pub fn ratio(&mut self, name: &'static str, value: f64, detail: impl Into<String>) {
        self.add(Row { name, value, unit: None, detail: detail.into() });
    }

    /// Adds a figure.
    pub fn figure(&mut self, name: &'static str, value: f64, unit: &'static str, detail: impl Into<String>) {
        self.add(Row { name, value, unit: Some(unit), detail: detail.into() });
    }

    fn add(&mut self, row: Row) {
        eprintln!("  {} {} {}", row.name, number(row.value), row.detail);
        self.rows.push(row);
    }

    /// Prints the table and the machine lines.
    pub fn print(&self) {
        let table: Vec<[String; 4]> = self.rows.iter().map(Row::cells).collect();
        let head = ["name", "value", "target", "of"].map(str::to_owned);
        let mut widths = [0; 3];
        for line in std::iter::once(&head).chain(&table) {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for [name, value, target, detail] in std::iter::once(&head).chain(&table) {
            let [a, b, c] = widths;
            println!("{name:<a$}  {value:>b$}  {target:<c$}  {detail}");
        }
        println!();
        for Row { name, value, unit, .. } in &self.rows {
            match unit {
                Some(unit) => println!("figure {name} {} {unit}", number(*value)),
                None => println!("ratio {name} {}", number(*value)),
            }
        }
    }
}

impl Row {
    fn cells(&self) -> [String; 4] {
        let target = TARGETS.iter().find(|(name, _)| *name == self.name);
        let target = target.map_or_else(String::new, |(_, target)| {
            let (sign, limit, met) = match *target {
                Target::AtLeast(limit) => ("≥", limit, self.value >= limit),
                Target::AtMost(limit) => ("≤", limit, self.value <= limit),
            };
            format!("{sign} {}{}", number(limit), if met { "" } else { " missed" })
        });
        let unit = self.unit.map_or_else(String::new, |unit| format!(" {unit}"));
        [self.name.to_owned(), format!("{}{unit}", number(self.value)), target, self.detail.clone()]
    }
}

/// A number with three digits that count.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 || value == value.trunc() {
        format!("{value:.0}")
    } else if size >= 10.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// Milliseconds of a duration.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The middle value; of an even number of them the lower middle. Zero of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}
