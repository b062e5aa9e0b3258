//! Mistakes: commands that are no command of ours, and manifests without their flag, told with what to write instead.
//! Pure, over the parser's errors.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::commands::target::is_file;

/// Commands that one may know from elsewhere, and what does the same here.
const ELSEWHERE: [(&[&str], &str); 9] = [
    (&["run"], "`strata create deployment NAME --image=host -- COMMAND` keeps a command running"),
    (
        &["events", "event"],
        "`strata get events` lists what happened, `strata describe` what happened to one object",
    ),
    (&["ps", "ls", "status"], "`strata get pods -A` lists what runs, `strata why TYPE/NAME` says how it is"),
    (&["start", "server", "serve", "daemon"], "`strata up` brings up a whole platform"),
    (
        &["down", "stop", "shutdown"],
        "Ctrl-C where `strata up` runs stops everything in order, as does SIGTERM",
    ),
    (&["restart"], "`strata rollout restart TYPE/NAME` replaces all pods, step by step"),
    (&["undo", "rollback"], "`strata rollout undo TYPE/NAME` goes back to the template before"),
    (
        &["auth", "replace", "cordon", "uncordon", "drain", "taint"],
        "kubectl has it and works against the same server, with the kubeconfig that `strata up` printed",
    ),
    (
        &["exec", "attach", "cp", "port-forward", "proxy", "debug", "expose", "autoscale"],
        "the server has nothing of the kind; pods are processes of this machine, and `strata get pod NAME -o yaml` \
         and `strata logs` tell what they do",
    ),
];

/// What to say instead of the parser's own words, where there is something better.
pub fn explained(error: &clap::Error) -> Option<String> {
    let word = match error.kind() {
        ErrorKind::InvalidSubcommand => text(error, ContextKind::InvalidSubcommand)?,
        ErrorKind::UnknownArgument => text(error, ContextKind::InvalidArg)?,
        _ => return None,
    };
    if is_file(word) || word.ends_with(".yaml") {
        return Some(format!("error: {word} stands alone; a manifest goes behind -f: -f {word}"));
    }
    // Only a command that is none: a group's own subcommands have their own page.
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if error.kind() != ErrorKind::InvalidSubcommand || !usage.contains("strata [OPTIONS] <COMMAND>") {
        return None;
    }
    let known =
        ELSEWHERE.iter().find(|(words, _)| words.contains(&word)).map(|(_, instead)| (*instead).to_owned());
    let instead = known.or_else(|| near(error)).map(|instead| format!("; {instead}")).unwrap_or_default();
    Some(format!("error: there is no command \"{word}\"{instead}\n`strata --help` lists all commands"))
}

fn near(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::SuggestedSubcommand)? {
        ContextValue::String(one) => Some(format!("did you mean {one}?")),
        ContextValue::Strings(some) if !some.is_empty() => {
            Some(format!("did you mean {}?", some.join(" or ")))
        }
        _ => None,
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn said(line: &[&str]) -> Option<String> {
        let line = std::iter::once("strata").chain(line.iter().copied());
        explained(&crate::Cli::command().try_get_matches_from(line).unwrap_err())
    }

    #[test]
    fn commands_from_elsewhere_are_told_what_does_the_same_here() {
        for (word, part) in [
            ("exec", "strata logs"),
            ("auth", "kubectl has it"),
            ("stop", "Ctrl-C"),
            ("descibe", "did you mean describe?"),
            ("frobnicate", "`strata --help` lists"),
        ] {
            let text = said(&[word]).unwrap();
            assert!(text.starts_with(&format!("error: there is no command \"{word}\"")), "{text}");
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn no_command_is_said_to_be_missing_that_is_there() {
        let tree = crate::Cli::command();
        for word in ELSEWHERE.iter().flat_map(|(words, _)| *words) {
            assert!(tree.find_subcommand(word).is_none(), "{word} is a command");
        }
    }

    #[test]
    fn a_manifest_without_its_flag_is_told_the_flag() {
        for line in [&["apply", "web.yaml"][..], &["create", "a/b/web.yaml"], &["up", "./web.yaml"]] {
            let text = said(line).unwrap();
            assert!(text.ends_with(&format!("-f {}", line[1])), "{text}");
        }
        assert_eq!(said(&["apply", "--bogus"]), None);
        assert_eq!(said(&["rollout", "frobnicate"]), None);
    }
}
