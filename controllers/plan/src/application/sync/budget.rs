//! How much one sync may prune: a budget, so that a broken commit cannot empty a platform; and nothing at all where the
//! source has no object left.

use super::super::compare::Item;
use super::super::types::MAX_PRUNE;

/// The least that may always be pruned.
const LEAST: usize = 3;
/// The share that may be pruned unless said: one in so many.
const SHARE: usize = 3;
/// Most objects that are named.
const MOST_NAMED: usize = 20;

/// How many of `all` objects may be pruned by one sync. `said` is a number or a percentage.
pub fn budget(said: Option<&str>, all: usize) -> Result<usize, String> {
    let Some(said) = said.map(str::trim) else { return Ok((all / SHARE).max(LEAST)) };
    let wrong = || format!("{MAX_PRUNE} is {said:?}, and must be a number, or a percentage such as 50%");
    match said.strip_suffix('%') {
        Some(percent) => {
            let percent: usize = percent.trim().parse().ok().filter(|p| *p <= 100).ok_or_else(wrong)?;
            Ok((all * percent).div_ceil(100))
        }
        None => said.parse().map_err(|_| wrong()),
    }
}

/// Why these objects may not be pruned; `None`: they may.
pub fn forbids(prunes: &[&Item], items: &[Item], said: Option<&str>, allow_empty: bool) -> Option<String> {
    if prunes.is_empty() {
        return None;
    }
    if !allow_empty && items.iter().all(|i| i.desired.is_none() || i.is_scaffold()) {
        return Some(format!(
            "the source has no object any more, and {} would be pruned; set syncPolicy.automated.allowEmpty, or \
             sync with the option AllowEmpty=true, if that is wished",
            prunes.len()
        ));
    }
    let all = items.iter().filter(|i| i.live.is_some() && !i.is_scaffold()).count();
    let budget = match budget(said, all) {
        Ok(budget) => budget,
        Err(wrong) => return Some(wrong),
    };
    if prunes.len() <= budget {
        return None;
    }
    let mut names: Vec<String> = prunes.iter().take(MOST_NAMED).map(|i| i.id.to_string()).collect();
    if prunes.len() > MOST_NAMED {
        names.push(format!("and {} more", prunes.len() - MOST_NAMED));
    }
    Some(format!(
        "{} of {all} objects would be pruned, and at most {budget} may be at once; nothing was done. Annotate the \
         Application with {MAX_PRUNE} if that is wished. They are: {}",
        prunes.len(),
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_may_go_and_at_least_three() {
        for (said, all, expected) in
            [(None, 3, 3), (None, 30, 10), (Some("5"), 30, 5), (Some("50%"), 5, 3), (Some("100%"), 7, 7)]
        {
            assert_eq!(budget(said, all), Ok(expected), "{said:?} of {all}");
        }
        assert!(budget(Some("many"), 1).is_err());
        assert!(budget(Some("101%"), 1).is_err());
    }
}
