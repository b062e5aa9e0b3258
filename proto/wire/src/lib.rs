//! The gRPC form of Strata: generated messages and services, and the only place where they meet the model.
//! Knows nothing of channels, servers or storage.

pub mod convert;

/// Generated from `proto/strata/v1`; documented there, field by field.
#[allow(missing_docs, clippy::all, clippy::too_many_lines, clippy::unwrap_used, rust_2018_idioms)]
pub mod v1 {
    tonic::include_proto!("strata.v1");
}

/// Generated from `proto/google/rpc`: the standard envelope of error details.
#[allow(missing_docs, clippy::all)]
pub mod rpc {
    tonic::include_proto!("google.rpc");
}

/// All descriptors, for the reflection service.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The header, of HTTP and of gRPC alike, by which a writer names the term of the lease it acts under:
/// `NAMESPACE/NAME ACQUIRE-TIME HOLDER-IDENTITY`, as the Lease has them. A write is refused once that term is over.
pub const FENCE_HEADER: &str = "strata-fence";

#[cfg(test)]
mod tests {
    const STRATA: &str = include_str!("../proto/strata/v1/strata.proto");

    /// Whether a line declares something that wants a comment above it.
    fn declares(line: &str) -> bool {
        let words = ["service ", "rpc ", "message ", "enum ", "oneof "];
        words.iter().any(|word| line.starts_with(word)) || (line.contains(" = ") && line.ends_with(';'))
    }

    #[test]
    fn every_field_is_documented() {
        let lines: Vec<&str> = STRATA.lines().map(str::trim).collect();
        let declared =
            lines.iter().skip_while(|line| !line.starts_with("package")).filter(|line| declares(line));
        assert!(declared.count() > 200, "the file is read");
        let bare = lines.windows(2).filter(|pair| declares(pair[1]) && !pair[0].starts_with("//"));
        let bare: Vec<&str> = bare.map(|pair| pair[1]).filter(|line| !line.starts_with("syntax")).collect();
        assert!(bare.is_empty(), "without a comment: {bare:?}");
    }
}
