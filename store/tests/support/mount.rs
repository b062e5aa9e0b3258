//! Small file systems of their own for tests, which need the right to mount. Where everything must be tested that right
//! has to be there.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system, gone when dropped.
pub struct Mounted {
    directory: tempfile::TempDir,
}

impl Mounted {
    /// A file system in memory of so many MiB; `None` where nothing can be mounted.
    pub fn tmpfs(mebibytes: u64) -> Option<Mounted> {
        Mounted::mount(&["-t", "tmpfs", "-o", &format!("size={mebibytes}m"), "strata-test"])
    }

    /// The file system in an image; `None` where nothing can be mounted.
    pub fn image(image: &Path) -> Option<Mounted> {
        Mounted::mount(&["-o", "loop", image.to_str().unwrap()])
    }

    fn mount(what: &[&str]) -> Option<Mounted> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(what).arg(directory.path()).output();
        if mounted.as_ref().is_ok_and(|done| done.status.success()) {
            return Some(Mounted { directory });
        }
        let is_asked = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!is_asked, "nothing can be mounted (run as root): {mounted:?}");
        println!("nothing can be mounted (run as root): nothing was looked at");
        None
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.directory.path().to_owned()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that failed may have left files open there.
        let done = Command::new("umount").arg("--lazy").arg(self.directory.path()).status();
        if !done.is_ok_and(|done| done.success()) {
            println!("{} stays mounted", self.directory.path().display());
        }
    }
}
