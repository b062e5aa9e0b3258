//! What rendering a source answers: objects with the place they come from, or why there are none. The border between
//! those who read repositories and those who compare: neither knows the other.

use std::sync::Arc;

use serde_json::Value;

/// What a source is rendered by. Ordered as Argo CD detects them: the word of `status.sourceType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceType {
    /// Plain manifests.
    #[default]
    Directory,
    /// A kustomization.
    Kustomize,
    /// A chart.
    Helm,
}

impl SourceType {
    /// The word of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "Directory",
            Self::Kustomize => "Kustomize",
            Self::Helm => "Helm",
        }
    }
}

/// One object as a source says it, before anything is added.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The object: has `apiVersion`, `kind` and `metadata.name` (or `generateName`, for hooks).
    pub object: Value,
    /// The file it is from, relative to the root of the repository; what rendered it, where that names no file.
    pub file: Arc<str>,
    /// The line at which its document begins, from 1; 0 where unknown.
    pub line: u32,
}

/// A source, rendered whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The commit, in hex; the version, for a chart of a Helm repository.
    pub revision: String,
    /// Key of everything that the render depends on: trees that were read, the source's own settings, the programs. Two
    /// renders with the same key have the same objects.
    pub key: String,
    /// By what it was rendered.
    pub source_type: SourceType,
    /// In the order of the files.
    pub manifests: Arc<Vec<Manifest>>,
}

/// What is at fault where a source cannot be rendered. Each is one family of causes that people treat alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The repository does not answer: name, connection, time.
    Unreachable,
    /// It refuses us, or is not who it should be: credentials, keys, certificates.
    Refused,
    /// It answers, but there is no such repository, branch, tag, commit or path.
    Missing,
    /// What it has is not acceptable: invalid YAML, links that lead out, too large, duplicates.
    Broken,
    /// A program that the source needs is not installed, or ran out of time or memory.
    Program,
    /// The source itself asks for what there is not: contradicting or unknown settings.
    Settings,
}

/// Why there is no render: a sentence for people, which names file and line where there are some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    /// What is at fault.
    pub fault: Fault,
    /// What, where and what to do about it.
    pub message: String,
}

impl RenderError {
    /// An error of a family.
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }

    /// Whether the same may well work a little later, with nothing changed.
    pub fn passes(&self) -> bool {
        matches!(self.fault, Fault::Unreachable | Fault::Refused | Fault::Program)
    }
}
