//! Finding and reading the files.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use strata_client::manifest::{Document, parse};

use super::{MAX_FILE, ManifestError};

/// The endings of files that are read in a directory.
const ENDINGS: [&str; 3] = ["json", "yaml", "yml"];

/// The objects of files, directories (not those in them, unless `recursive`) and stdin (`-`), in the order named; files
/// of a directory in the order of their names. None at all is an error.
pub fn load(names: &[String], recursive: bool) -> Result<Vec<Document>, ManifestError> {
    let mut documents = Vec::new();
    for name in names {
        if name == "-" {
            let text = read(io::stdin().lock()).map_err(|e| failed(Path::new("stdin"), e))?;
            documents.extend(parse("stdin", &text)?);
        } else if name.starts_with("http://") || name.starts_with("https://") {
            return Err(ManifestError::Unsupported(format!(
                "{name}: manifests are not fetched from the network; fetch it first: curl -fsSL {name} | strata … -f -"
            )));
        } else {
            for path in files(Path::new(name), recursive)? {
                let file = fs::File::open(&path).map_err(|e| failed(&path, e))?;
                let text = read(file).map_err(|e| failed(&path, e))?;
                documents.extend(parse(&path.display().to_string(), &text)?);
            }
        }
    }
    match documents.is_empty() {
        true => Err(ManifestError::Nothing(names.join(", "))),
        false => Ok(documents),
    }
}

/// What to do about a file that cannot be read.
pub(super) fn advice(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            "no such file or directory; check the name, or write - to read from stdin".to_owned()
        }
        ErrorKind::PermissionDenied => {
            "permission denied; make it readable for this user (chmod u+r)".to_owned()
        }
        _ => error.to_string(),
    }
}

fn failed(path: &Path, error: io::Error) -> ManifestError {
    ManifestError::Read { path: path.to_owned(), error }
}

fn read(from: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("larger than {MAX_FILE} bytes")));
    }
    String::from_utf8(bytes)
        .map_err(|e| io::Error::new(ErrorKind::InvalidData, format!("it is not text (UTF-8): {e}")))
}

fn files(path: &Path, recursive: bool) -> Result<Vec<PathBuf>, ManifestError> {
    let meta = fs::metadata(path).map_err(|e| failed(path, e))?;
    if !meta.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut pending = vec![path.to_owned()];
    while let Some(folder) = pending.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| failed(&folder, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| failed(&folder, e))?;
            let kind = entry.file_type().map_err(|e| failed(&entry.path(), e))?;
            let known = entry.path().extension().is_some_and(|e| ENDINGS.iter().any(|known| e == *known));
            if kind.is_dir() && recursive {
                pending.push(entry.path());
            } else if !kind.is_dir() && known {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
