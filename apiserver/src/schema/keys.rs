//! The merge facts of built-in fields: a table read once. Knows only names, never nodes or JSON.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

static TABLE: &str = include_str!("list-keys.tsv");
const ATOMIC_TYPES: &str = "# atomic struct/map types: ";
/// Prefixes of definition names that the table leaves out.
const PREFIXES: [&str; 3] =
    ["io.k8s.api.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apiextensions-apiserver.pkg.apis."];

/// What the table says about one field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keys {
    /// Patch strategies, separated by commas: `merge`, `replace`, `retainKeys`.
    pub patch_strategy: Option<&'static str>,
    /// The field that tells list elements apart in a strategic merge patch.
    pub patch_merge_key: Option<&'static str>,
    /// `atomic`, `set` or `map`.
    pub list_type: Option<&'static str>,
    /// Fields that tell elements of a `map` list apart, separated by commas.
    pub list_map_keys: Option<&'static str>,
    /// `atomic` or `granular`, where the field overrides its type.
    pub map_type: Option<&'static str>,
}

struct Table {
    fields: HashMap<&'static str, Keys>,
    atomic: HashSet<&'static str>,
}

/// The merge facts of `field` of the definition `definition` (OpenAPI name).
pub fn of_field(definition: &str, field: &str) -> Option<Keys> {
    let key = format!("{}.{field}", short(definition));
    table().fields.get(key.as_str()).copied()
}

/// Whether a struct type is replaced as a whole by server-side apply.
pub fn is_atomic(definition: &str) -> bool {
    table().atomic.contains(short(definition))
}

/// All lines of the table: `type.field` and its facts, in no order.
pub fn all() -> impl Iterator<Item = (&'static str, Keys)> {
    table().fields.iter().map(|(name, keys)| (*name, *keys))
}

/// `io.k8s.api.apps.v1.Deployment` → `apps.v1.Deployment`, as the table writes names.
pub fn short(definition: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| definition.strip_prefix(prefix)).unwrap_or(definition)
}

fn table() -> &'static Table {
    static CELL: OnceLock<Table> = OnceLock::new();
    CELL.get_or_init(|| {
        let mut table = Table { fields: HashMap::new(), atomic: HashSet::new() };
        for line in TABLE.lines() {
            if let Some(types) = line.strip_prefix(ATOMIC_TYPES) {
                table.atomic.extend(types.split(", ").filter_map(|entry| entry.strip_suffix("=atomic")));
            } else if !line.starts_with('#') {
                let mut cells =
                    line.split('\t').map(|cell| (cell != "-" && !cell.is_empty()).then_some(cell));
                let Some(Some(name)) = cells.next() else { continue };
                table.fields.insert(name, row(cells));
            }
        }
        table
    })
}

fn row(mut cells: impl Iterator<Item = Option<&'static str>>) -> Keys {
    let mut next = || cells.next().flatten();
    let mut keys = Keys {
        patch_strategy: next(),
        patch_merge_key: next(),
        list_type: next(),
        list_map_keys: next(),
        map_type: None,
    };
    keys.map_type = next().and_then(|other| {
        if !other.contains("x-kubernetes-map-type") {
            return None;
        }
        ["atomic", "granular"].into_iter().find(|kind| other.contains(&format!("\"{kind}\"")))
    });
    keys
}
