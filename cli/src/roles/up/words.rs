//! Words: what `strata up` says to the person who started it. Pure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::Config;
use crate::roles::supervise::child::News;

/// The one line when everything serves.
pub fn ready(took: Duration, url: &str, kubeconfig: &Path, next: &str) -> String {
    format!(
        "strata is ready in {:.2} s at {url} (kubeconfig {}); next: {next}",
        took.as_secs_f64(),
        kubeconfig.display()
    )
}

/// The command to try next: of this very program, and such that it finds this platform.
pub fn next(
    config: &Config,
    kubeconfig: &Path,
    program: &Path,
    current: Option<&Path>,
    elsewhere: bool,
) -> String {
    let shown: PathBuf = match current.and_then(|current| program.strip_prefix(current).ok()) {
        Some(below) if below.components().count() == 1 => Path::new(".").join(below),
        Some(below) => below.to_owned(),
        None => program.to_owned(),
    };
    let command = format!("{} get pods -A", shown.display());
    // KUBECONFIG goes before the data directory, and a directory of one's own is not looked into.
    if config.is_default_dir && !elsewhere {
        command
    } else {
        format!("{command} --kubeconfig {}", kubeconfig.display())
    }
}

/// The line when everything that was applied is true.
pub fn converged(took: Duration) -> String {
    format!("all is as declared, {:.2} s after it was applied; Ctrl-C stops the platform", took.as_secs_f64())
}

/// What happened to a child, if that is worth a line.
pub fn news(name: &str, news: &News, all_were_ready: bool) -> Option<String> {
    match news {
        News::Started { .. } | News::Stopped => None,
        News::Ready => all_were_ready.then(|| format!("{name} is ready again")),
        News::Ended { reason, delay } if delay.is_zero() => {
            Some(format!("{name} {reason}; starting it again"))
        }
        News::Ended { reason, delay } => {
            Some(format!("{name} {reason}; starting it again in {:.1} s", delay.as_secs_f64()))
        }
        News::GivenUp { reason } => Some(format!("{name} cannot start: it {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::roles::up::args::{self, UpArgs};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        up: UpArgs,
    }

    fn config(words: &[&str]) -> Config {
        let words = std::iter::once("strata").chain(words.iter().copied());
        let env = |name: &str| (name == "HOME").then(|| "/home/me".to_owned());
        args::config(Line::try_parse_from(words).unwrap().up, env).unwrap()
    }

    fn next_of(config: &Config, elsewhere: bool) -> String {
        let kubeconfig = config.data_dir.join("kubeconfig");
        let program = Path::new("/src/strata/target/release/strata");
        next(config, &kubeconfig, program, Some(Path::new("/src/strata")), elsewhere)
    }

    #[test]
    fn the_next_command_finds_this_platform() {
        let default = config(&[]);
        assert_eq!(default.data_dir, Path::new("/home/me/.local/share/strata"));
        assert_eq!(next_of(&default, false), "target/release/strata get pods -A");
        let with_file = " --kubeconfig /home/me/.local/share/strata/kubeconfig";
        assert!(next_of(&default, true).ends_with(with_file));
        let own = config(&["--data-dir", "/d"]);
        assert!(next_of(&own, false).ends_with(" --kubeconfig /d/kubeconfig"));
        assert!(!config(&["--data-dir", "/d"]).is_default_dir);
    }

    #[test]
    fn one_line_says_all_at_the_start() {
        let line =
            ready(Duration::from_millis(312), "https://127.0.0.1:6443", Path::new("/d/kubeconfig"), "x get");
        assert_eq!(
            line,
            "strata is ready in 0.31 s at https://127.0.0.1:6443 (kubeconfig /d/kubeconfig); next: x get"
        );
    }

    #[test]
    fn deaths_are_told_with_their_reason() {
        let ended =
            News::Ended { reason: "was ended by signal 9 (SIGKILL)".to_owned(), delay: Duration::ZERO };
        let told = news("scheduler", &ended, true).unwrap();
        assert_eq!(told, "scheduler was ended by signal 9 (SIGKILL); starting it again");
        assert_eq!(news("scheduler", &News::Ready, false), None);
        assert!(news("scheduler", &News::Ready, true).is_some());
    }
}
