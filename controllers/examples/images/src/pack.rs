//! From a folder of sources to an image: the same sources give the same image, to the byte. Knows no objects of the API.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use oci_spec::image::{
    Arch, ImageConfigurationBuilder, ImageManifestBuilder, MediaType, Os, RootFsBuilder, SCHEMA_VERSION,
};

use crate::layout::{Layout, LayoutError, document, file, sha256};

/// Most bytes of the sources of one version.
const MAX_BYTES: u64 = 64 << 20;
/// Most files of one version.
const MAX_FILES: usize = 10_000;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// The sources, or where it is to be put.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// There is too much.
    #[error("{} holds more than {MAX_FILES} files or {MAX_BYTES} bytes", path.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
    },
}

/// The versions in an upstream folder, each with its folder and the digest of its sources.
pub fn versions(upstream: &Path) -> Result<BTreeMap<String, String>, PackError> {
    let mut versions = BTreeMap::new();
    for entry in fs::read_dir(upstream).map_err(file("list", upstream))? {
        let path = entry.map_err(file("list", upstream))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if path.is_dir() && !name.starts_with('.') {
            versions.insert(name, source_digest(&path)?);
        }
    }
    Ok(versions)
}

/// The digest of all files of a folder, by name and content.
pub fn source_digest(folder: &Path) -> Result<String, PackError> {
    let files = files(folder)?;
    let lines: Vec<String> =
        files.iter().map(|(name, bytes)| format!("{} {name}\n", sha256(&[bytes]))).collect();
    Ok(sha256(&lines.iter().map(String::as_bytes).collect::<Vec<_>>()))
}

/// Packs the sources of a version into an image of a layout. Answers its digest.
pub fn pack(folder: &Path, into: &Layout, version: &str) -> Result<String, PackError> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, bytes) in files(folder)? {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        // No time and no owner: what is the same is to be the same.
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, name, bytes.as_slice()).map_err(file("pack", folder))?;
    }
    let tar = archive.into_inner().map_err(file("pack", folder))?;
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::default());
    packed.write_all(&tar).map_err(file("pack", folder))?;
    let packed = packed.finish().map_err(file("pack", folder))?;

    let layer = into.put(MediaType::ImageLayerGzip, &packed)?;
    let rootfs = RootFsBuilder::default().typ("layers").diff_ids(vec![format!("sha256:{}", sha256(&[&tar]))]);
    let config = rootfs.build().and_then(|rootfs| {
        let config = ImageConfigurationBuilder::default().architecture(Arch::default()).os(Os::Linux);
        config.rootfs(rootfs).build()?.to_string()
    });
    let config = into.put(MediaType::ImageConfig, config.map_err(document(folder))?.as_bytes())?;
    let manifest = ImageManifestBuilder::default().schema_version(SCHEMA_VERSION);
    let manifest = manifest.media_type(MediaType::ImageManifest).config(config).layers(vec![layer]).build();
    let manifest = manifest.and_then(|manifest| manifest.to_string()).map_err(document(folder))?;
    let image = into.put(MediaType::ImageManifest, manifest.as_bytes())?;
    into.refer(version, &image)?;
    Ok(image.digest().to_string())
}

/// All files under a folder by their names from there; links are not followed.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<u8>>, PackError> {
    let (mut files, mut total) = (BTreeMap::new(), 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).map_err(file("list", &current))? {
            let entry = entry.map_err(file("list", &current))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(file("look at", &path))?;
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                total += entry.metadata().map_err(file("look at", &path))?.len();
                if total > MAX_BYTES || files.len() >= MAX_FILES {
                    return Err(PackError::TooLarge { path: folder.to_owned() });
                }
                let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
                files.insert(name, fs::read(&path).map_err(file("read", &path))?);
            }
        }
    }
    Ok(files)
}
