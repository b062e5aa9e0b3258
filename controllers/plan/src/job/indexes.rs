//! Sets of completion indexes, as statuses write them: `0-2,5`.

use std::collections::BTreeSet;

/// Reads a set. What makes no sense is left out: the text is our own.
pub fn parse(text: &str) -> BTreeSet<i32> {
    let mut all = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(from), Ok(to)) = (from.trim().parse::<i32>(), to.trim().parse::<i32>()) {
            all.extend(from..=to);
        }
    }
    all
}

/// Writes a set: runs of two and more as `from-to`.
pub fn text(indexes: &BTreeSet<i32>) -> String {
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for index in indexes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => runs.push((*index, *index)),
        }
    }
    let run = |(from, to): (i32, i32)| match from == to {
        true => from.to_string(),
        false if from + 1 == to => format!("{from},{to}"),
        false => format!("{from}-{to}"),
    };
    runs.into_iter().map(run).collect::<Vec<_>>().join(",")
}
