//! The first page of help: the commands in groups, and where to begin. Pure, over the tree of commands.

use clap::Command;

/// The groups, in the order of a newcomer's way. What is in none comes last.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Run a platform", &["up", "apiserver", "controller", "node", "store"]),
    ("Look", &["get", "describe", "why", "tree", "logs", "watch", "wait", "queue", "top", "explain"]),
    (
        "Change",
        &[
            "apply", "create", "delete", "edit", "patch", "scale", "set", "rollout", "app", "label",
            "annotate",
        ],
    ),
    ("About the server", &["api-resources", "api-versions", "cluster-info", "version"]),
    ("About this program", &["config", "completion"]),
];

const BEGIN: &str = "\
Begin here:
  strata up                                        a platform on this machine, until Ctrl-C
  strata create deployment web --image=host -- sleep 1000
  strata get pods -w                               watch it come up
  strata why deployment/web                        what it waits for, if it waits

`strata COMMAND --help` tells more about a command, with examples. Namespaces, servers and identities are chosen by
-n, --server, --context and --kubeconfig, before or behind the command.";

/// The tree with the grouped page in place of its first page of help.
pub fn grouped(tree: Command) -> Command {
    let page = page(&tree);
    tree.override_help(page)
}

fn page(tree: &Command) -> String {
    let about = tree.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}.\n\nUsage: strata COMMAND [FLAGS]\n");
    let shown: Vec<&Command> = tree.get_subcommands().filter(|c| !c.is_hide_set()).collect();
    let width = shown.iter().map(|c| c.get_name().len()).max().unwrap_or(0) + 3;
    let line = |command: &Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        format!("  {:width$}{about}\n", command.get_name())
    };
    let mut section = |title: &str, commands: Vec<&Command>| {
        if !commands.is_empty() {
            text.push_str(&format!("\n{title}:\n"));
            text.extend(commands.into_iter().map(line));
        }
    };
    for (title, names) in GROUPS {
        let found = names.iter().filter_map(|name| shown.iter().find(|c| c.get_name() == *name).copied());
        section(title, found.collect());
    }
    let grouped = |command: &&Command| GROUPS.iter().any(|(_, names)| names.contains(&command.get_name()));
    section("More", shown.iter().copied().filter(|c| !grouped(c)).collect());
    format!("{text}\n{BEGIN}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_on_the_page_and_hidden_ones_are_not() {
        let tree = Command::new("strata").about("It").subcommands([
            Command::new("get").about("Print"),
            Command::new("odd"),
            Command::new("shim").hide(true),
        ]);
        let text = page(&tree);
        assert!(text.contains("Look:\n  get   Print\n") && text.contains("More:\n  odd"), "{text}");
        assert!(!text.contains("shim"), "{text}");
    }
}
