//! Every bound of reading repositories, so that no repository, host or program can take more than its share. Decides
//! nothing else.

use std::time::Duration;

/// Longest wait for a connection, TLS and the keys of ssh included.
pub const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Longest that asking a repository for its branches and tags may take, in all.
pub const LIST_LIMIT: Duration = Duration::from_secs(30);
/// Longest that fetching one commit may take, in all.
pub const FETCH_LIMIT: Duration = Duration::from_secs(120);
/// Longest that a program may render.
pub const PROGRAM_LIMIT: Duration = Duration::from_secs(60);
/// Most memory that a program which renders may map, in bytes. Programs in Go map a good deal more than they use.
pub const PROGRAM_MEMORY: u64 = 4 << 30;
/// Most bytes that a program may print.
pub const PROGRAM_OUTPUT: usize = 64 << 20;
/// Most bytes of what a program complains that are told.
pub const PROGRAM_COMPLAINT: usize = 2048;

/// Most bytes that one fetch may transfer.
pub const MAX_FETCH_BYTES: u64 = 1 << 30;
/// Most branches and tags of a repository.
pub const MAX_REFS: usize = 100_000;
/// Most repositories that are kept on disk; the least recently used go.
pub const MAX_REPOSITORIES: usize = 64;
/// Most bytes of all repositories on disk; the least recently used go.
pub const MAX_CACHE_BYTES: u64 = 8 << 30;
/// Most packs of one repository, after which it is fetched anew: each fetch leaves one.
pub const MAX_PACKS: usize = 50;
/// Most renders that are kept in memory.
pub const MAX_RENDERS: usize = 4096;
/// Most manifests of all renders that are kept in memory.
pub const MAX_RENDERED_MANIFESTS: usize = 200_000;

/// Largest manifest, in bytes.
pub const MAX_FILE: u64 = 10 << 20;
/// Most bytes of all files that a source reads or hands to a program.
pub const MAX_SOURCE_BYTES: u64 = 256 << 20;
/// Most files that a source has.
pub const MAX_FILES: usize = 50_000;
/// How deep folders may be.
pub const MAX_DEPTH: usize = 64;
/// Most objects of a source.
pub const MAX_OBJECTS: usize = 20_000;
/// Most links that are followed to find one file: more are a circle.
pub const MAX_LINKS: usize = 20;

/// How long a failure of a host is taken for granted, so that the Applications of one host do not each wait for it.
pub const FAILURE_HOLDS: Duration = Duration::from_secs(10);
/// How many repositories may be asked or fetched at once.
pub const MAX_FETCHES: usize = 64;
/// How many sources may be rendered at once.
pub const MAX_RENDERINGS: usize = 4;
/// How many programs may render at once.
pub const MAX_PROGRAMS: usize = 4;
