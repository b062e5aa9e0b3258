//! Choice: which controllers run, in the words of kube-controller-manager's `--controllers`. Pure.

use strata_stack::process::Name;

/// A name that is no controller's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no controller `{name}`; there are {}", Name::ALL.map(Name::as_str).join(", "))]
pub struct ChoiceError {
    name: String,
}

/// The controllers that `words` mean: `NAME` is on, `-NAME` is off, `*` turns on all that are not named.
///
/// # Errors
/// A word names no controller.
pub fn controllers(words: &[String]) -> Result<Vec<Name>, ChoiceError> {
    for word in words {
        let name = word.strip_prefix('-').unwrap_or(word);
        if word != "*" && !Name::ALL.iter().any(|known| known.as_str() == name) {
            return Err(ChoiceError { name: name.to_owned() });
        }
    }
    // The first word that speaks of a controller decides, else the star.
    let is_on = |name: &str| {
        let named = words.iter().find(|word| word.strip_prefix('-').unwrap_or(word) == name);
        named.map_or_else(|| words.iter().any(|word| word == "*"), |word| word == name)
    };
    Ok(Name::ALL.into_iter().filter(|name| is_on(name.as_str())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(words: &str) -> String {
        let words: Vec<String> =
            words.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        match controllers(&words) {
            Ok(names) => names.into_iter().map(Name::as_str).collect::<Vec<_>>().join(","),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn stars_names_and_minuses() {
        let all = Name::ALL.map(Name::as_str).join(",");
        let others = all.replace("deployment,", "");
        assert!(all.starts_with("deployment,replicaset,") && !others.contains("deployment"), "{all}");
        assert_eq!(chosen("*"), all);
        assert_eq!(chosen("*,-deployment"), others);
        assert_eq!(chosen("-deployment,*"), others);
        assert_eq!(chosen("scheduler,deployment"), "deployment,scheduler");
        assert_eq!(chosen("deployment,-deployment"), "deployment");
        assert_eq!(chosen("-deployment"), "");
        assert_eq!(chosen(""), "");
        assert!(chosen("*,-deploymnt").contains("`deploymnt`; there are deployment, "));
    }
}
