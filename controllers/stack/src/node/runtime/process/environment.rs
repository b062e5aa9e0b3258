//! What image `host` brings to a container's environment: the few variables without which programs of this
//! machine do not find each other. It must never pass on the rest of the agent's own environment.

use std::ffi::OsString;
use std::path::Path;

use strata_plan::pod::observed::Launch;

use crate::node::attempt::MARK;

/// The agent's variables that are the image's variables.
const FROM_HOST: [&str; 7] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "TZ", "USER"];
/// The search path where the agent has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The whole environment of a container: the image's, what the spec sets, and the mark, which always wins. Programs
/// beside our own, and so our own, are found before all others: a container may use the version that runs it.
pub fn with_host(
    launch: &Launch,
    host: impl IntoIterator<Item = (OsString, OsString)>,
    own: Option<&Path>,
) -> Vec<(String, String)> {
    let mut env =
        vec![("PATH".to_owned(), DEFAULT_PATH.to_owned()), ("HOSTNAME".to_owned(), launch.pod_name.clone())];
    env.extend(host.into_iter().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        FROM_HOST.contains(&name.as_str()).then_some((name, value))
    }));
    if let Some(own) = own.and_then(Path::parent).and_then(Path::to_str) {
        let path = env.iter().rfind(|(name, _)| name == "PATH").map(|(_, path)| format!("{own}:{path}"));
        env.extend(path.map(|path| ("PATH".to_owned(), path)));
    }
    env.extend(launch.env.iter().cloned());
    env.push((MARK.to_owned(), launch.key.to_string()));
    env
}
