//! Place: where a store is or is to be, as a word of a command. Knows nothing of what is done there.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use strata_store::store::EngineChoice;

use super::super::datadir::Layout;
use super::super::etcd::EtcdAccess;
use super::super::files::FileError;

/// Where a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a directory of this machine.
    Sled(PathBuf),
    /// Below a prefix of an etcd cluster.
    Etcd {
        /// Its servers.
        servers: Vec<String>,
        /// The prefix, where it is named here.
        prefix: Option<String>,
    },
}

/// Words that are no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a place is a directory (sled:DIRECTORY, or a path with a slash in it) or etcd:URL[,URL...][/PREFIX], as in \
     etcd:http://127.0.0.1:2379"
)]
pub struct PlaceError;

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        match text.split_once(':') {
            Some(("sled", path)) if !path.is_empty() => Ok(Place::Sled(path.into())),
            Some(("etcd", urls)) => {
                let mut servers: Vec<String> = urls.split(',').map(str::to_owned).collect();
                let is_url = |url: &String| url.starts_with("http://") || url.starts_with("https://");
                if !servers.iter().all(is_url) {
                    return Err(PlaceError);
                }
                let Some(last) = servers.last_mut() else { return Err(PlaceError) };
                let host = last.find("//").map_or(0, |at| at + 2);
                let prefix = last[host..].find('/').map(|at| last.split_off(host + at));
                Ok(Place::Etcd { servers, prefix: prefix.filter(|prefix| prefix != "/") })
            }
            _ if text.contains('/') => Ok(Place::Sled(text.into())),
            _ => Err(PlaceError),
        }
    }
}

impl Place {
    /// What the store is told of a place where it is.
    ///
    /// # Errors
    /// A certificate cannot be read.
    pub fn existing(&self, access: &EtcdAccess) -> Result<EngineChoice, FileError> {
        match self {
            Place::Sled(directory) => Ok(EngineChoice::Sled { directory: within(directory) }),
            Place::Etcd { .. } => self.engine(access),
        }
    }

    /// What the store is told of this very place.
    ///
    /// # Errors
    /// A certificate cannot be read.
    pub fn engine(&self, access: &EtcdAccess) -> Result<EngineChoice, FileError> {
        match self {
            Place::Sled(directory) => Ok(EngineChoice::Sled { directory: directory.clone() }),
            Place::Etcd { servers, prefix } => {
                let mut config = access.config(servers.clone())?;
                config.prefix = prefix.clone().unwrap_or(config.prefix);
                Ok(EngineChoice::Etcd(config))
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Sled(directory) => write!(f, "{}", directory.display()),
            Place::Etcd { servers, .. } => write!(f, "etcd at {}", servers.join(", ")),
        }
    }
}

/// The store's directory, where the data directory of `strata up` was named.
pub fn within(directory: &Path) -> PathBuf {
    let layout = Layout::new(directory);
    if layout.is_there() { layout.store() } else { directory.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let etcd = |servers: &[&str], prefix: Option<&str>| {
            let servers = servers.iter().map(|server| (*server).to_owned()).collect();
            Ok(Place::Etcd { servers, prefix: prefix.map(str::to_owned) })
        };
        assert_eq!("sled:/a/b".parse(), Ok(Place::Sled("/a/b".into())));
        assert_eq!("etcd:http://a:1".parse(), etcd(&["http://a:1"], None));
        assert_eq!("etcd:http://a:1/".parse(), etcd(&["http://a:1"], None));
        assert_eq!(
            "etcd:https://a:1,https://b:2/x/y".parse(),
            etcd(&["https://a:1", "https://b:2"], Some("/x/y"))
        );
        assert_eq!("/a/b".parse(), Ok(Place::Sled("/a/b".into())));
        assert_eq!("./b".parse(), Ok(Place::Sled("./b".into())));
        for wrong in ["", "sled:", "a", "etcd:a:1", "etcd:", "memory:"] {
            assert_eq!(wrong.parse::<Place>(), Err(PlaceError), "{wrong}");
        }
    }
}
