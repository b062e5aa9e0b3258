//! An OCI image layout on disk: images by digest, versions as references to them. Knows no objects of the API.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use oci_spec::OciSpecError;
use oci_spec::image::{
    ANNOTATION_REF_NAME, Descriptor, ImageIndex, ImageIndexBuilder, ImageManifest, MediaType,
    OciLayoutBuilder, SCHEMA_VERSION, Sha256Digest,
};
use ring::digest::{Context, SHA256};

/// What is wrong with a layout.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A file.
    #[error("cannot {doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A document of the format.
    #[error("{} is no such document", path.display())]
    Document {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: OciSpecError,
    },
    /// An image that is not there.
    #[error("{} has no whole image {digest}", path.display())]
    Missing {
        /// The layout.
        path: PathBuf,
        /// The image.
        digest: String,
    },
}

/// Turns an error of a file into ours.
pub fn file<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> LayoutError + 'a {
    move |source| LayoutError::File { doing, path: path.to_owned(), source }
}

/// Turns an error of a document into ours.
pub fn document(path: &Path) -> impl FnOnce(OciSpecError) -> LayoutError + '_ {
    move |source| LayoutError::Document { path: path.to_owned(), source }
}

/// The SHA-256 of bytes, as 64 hexadecimal digits.
pub fn sha256(parts: &[&[u8]]) -> String {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file that says that a folder is a layout.
const MARKER: &str = "oci-layout";

/// A layout. Changes of one folder must not overlap; whoever holds several sees to that.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The layout of a folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The digest of the image of a version, if the image is there with all its parts.
    pub fn find(&self, version: &str) -> Result<Option<String>, LayoutError> {
        let marker = self.root.join(MARKER);
        if !fs::exists(&marker).map_err(file("look for", &marker))? {
            return Ok(None);
        }
        let index = self.index()?;
        let Some(found) = index.manifests().iter().find(|d| version_of(d) == Some(version)) else {
            return Ok(None);
        };
        Ok(self.parts(found)?.map(|_| found.digest().to_string()))
    }

    /// Puts bytes under their digest; answers what refers to them.
    pub fn put(&self, media_type: MediaType, bytes: &[u8]) -> Result<Descriptor, LayoutError> {
        let hex = sha256(&[bytes]);
        self.write(&self.blob(&hex), bytes)?;
        let path = self.blob(&hex);
        let digest = Sha256Digest::from_str(&hex).map_err(document(&path))?;
        Ok(Descriptor::new(media_type, bytes.len() as u64, digest))
    }

    /// Has a version refer to an image whose parts are there.
    pub fn refer(&self, version: &str, image: &Descriptor) -> Result<(), LayoutError> {
        let mut image = image.clone();
        image.set_annotations(Some(HashMap::from([(ANNOTATION_REF_NAME.to_owned(), version.to_owned())])));
        let mut manifests = self.index()?.manifests().clone();
        manifests.retain(|d| version_of(d) != Some(version));
        manifests.push(image);
        self.save(manifests)
    }

    /// Copies an image of another layout to a version of this one.
    pub fn copy(&self, from: &Self, digest: &str, version: &str) -> Result<(), LayoutError> {
        let missing = || LayoutError::Missing { path: from.root.clone(), digest: digest.to_owned() };
        let index = from.index()?;
        let image =
            index.manifests().iter().find(|d| d.digest().to_string() == digest).ok_or_else(missing)?;
        for part in from.parts(image)?.ok_or_else(missing)? {
            let path = from.blob(&part);
            let bytes = fs::read(&path).map_err(file("read", &path))?;
            if sha256(&[&bytes]) != part {
                return Err(missing());
            }
            self.write(&self.blob(&part), &bytes)?;
        }
        self.refer(version, image)
    }

    /// Takes a version away, and what no other one needs.
    pub fn remove(&self, version: &str) -> Result<(), LayoutError> {
        let mut manifests = self.index()?.manifests().clone();
        let before = manifests.len();
        manifests.retain(|d| version_of(d) != Some(version));
        if manifests.len() == before {
            return Ok(());
        }
        let mut needed = BTreeSet::new();
        for image in &manifests {
            needed.extend(self.parts(image)?.into_iter().flatten());
        }
        self.save(manifests)?;
        let folder = self.root.join("blobs/sha256");
        for entry in fs::read_dir(&folder).map_err(file("list", &folder))? {
            let path = entry.map_err(file("list", &folder))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if !needed.contains(name) {
                fs::remove_file(&path).map_err(file("remove", &path))?;
            }
        }
        Ok(())
    }

    fn blob(&self, hex: &str) -> PathBuf {
        self.root.join("blobs/sha256").join(hex)
    }

    /// The digests of all parts of an image; `None` where one is not there in its length.
    fn parts(&self, image: &Descriptor) -> Result<Option<Vec<String>>, LayoutError> {
        let there = |part: &Descriptor| {
            let path = self.blob(part.digest().digest());
            fs::metadata(path).is_ok_and(|found| found.len() == part.size())
        };
        if !there(image) {
            return Ok(None);
        }
        let path = self.blob(image.digest().digest());
        let manifest = ImageManifest::from_file(&path).map_err(document(&path))?;
        let rest: Vec<&Descriptor> = std::iter::once(manifest.config()).chain(manifest.layers()).collect();
        let whole = rest.iter().all(|part| there(part));
        let all = std::iter::once(image).chain(rest).map(|part| part.digest().digest().to_owned());
        Ok(whole.then(|| all.collect()))
    }

    fn index(&self) -> Result<ImageIndex, LayoutError> {
        let path = self.root.join("index.json");
        match fs::exists(&path).map_err(file("look for", &path))? {
            true => ImageIndex::from_file(&path).map_err(document(&path)),
            false => new_index(Vec::new()).map_err(document(&path)),
        }
    }

    fn save(&self, manifests: Vec<Descriptor>) -> Result<(), LayoutError> {
        let path = self.root.join("index.json");
        let text = new_index(manifests).and_then(|index| index.to_string()).map_err(document(&path))?;
        let marker = self.root.join(MARKER);
        let layout = OciLayoutBuilder::default().image_layout_version("1.0.0").build();
        let layout = layout.and_then(|layout| layout.to_string()).map_err(document(&marker))?;
        self.write(&marker, layout.as_bytes())?;
        self.write(&path, text.as_bytes())
    }

    /// Writes a file whole or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), LayoutError> {
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(file("create", folder))?;
        let temporary = tempfile::NamedTempFile::new_in(&self.root).map_err(file("write in", &self.root))?;
        fs::write(temporary.path(), bytes).map_err(file("write", path))?;
        temporary.persist(path).map_err(|error| file("write", path)(error.error))?;
        Ok(())
    }
}

fn new_index(manifests: Vec<Descriptor>) -> Result<ImageIndex, OciSpecError> {
    let index = ImageIndexBuilder::default().schema_version(SCHEMA_VERSION);
    index.media_type(MediaType::ImageIndex).manifests(manifests).build()
}

fn version_of(image: &Descriptor) -> Option<&str> {
    Some(image.annotations().as_ref()?.get(ANNOTATION_REF_NAME)?.as_str())
}
