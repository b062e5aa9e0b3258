//! What can be wrong with a protobuf body.

/// Why a protobuf body could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// It does not begin with the four bytes that mark the format.
    #[error("the body does not begin with the protobuf magic number")]
    NotMarked,
    /// The message is packed in a way that is not supported.
    #[error("protobuf content of type {content_type:?} and encoding {encoding:?} is not supported")]
    Packed {
        /// The content type that the envelope names.
        content_type: String,
        /// The encoding that the envelope names.
        encoding: String,
    },
    /// No message of this type is known.
    #[error("no kind {kind:?} is known in version {api_version:?}")]
    UnknownType {
        /// API group and version as the envelope names them.
        api_version: String,
        /// Kind as the envelope names it.
        kind: String,
    },
    /// The bytes are not what they should be.
    #[error("malformed protobuf at byte {offset}: {problem}")]
    Malformed {
        /// Where in the body.
        offset: usize,
        /// What is wrong there.
        problem: &'static str,
    },
}
