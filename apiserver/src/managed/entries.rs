//! The entries of `metadata.managedFields`: who wrote, how, through which subresource and when, and what is theirs.
//! Reads and writes their JSON; knows no schema and no objects.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::fields::FieldSet;

/// The most entries of plain writers (updates, patches) that an object keeps.
pub const MAX_UPDATERS: usize = 10;
/// Whose entry takes the fields of the oldest plain writers when there are more.
pub const ANCIENT: &str = "ancient-changes";
/// The most entries that are taken from a client.
const MAX_ENTRIES: usize = 1000;

/// How a manager wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// By server-side apply.
    Apply,
    /// In any other way.
    Update,
}

impl Operation {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Apply, Self::Update].into_iter().find(|operation| operation.as_str() == text)
    }
}

/// One manager's share of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name; empty where a client left it out.
    pub manager: String,
    /// How it wrote.
    pub operation: Operation,
    /// The version of the type in which its fields are written, such as `apps/v1`.
    pub api_version: String,
    /// The subresource that it wrote through; empty for the object itself.
    pub subresource: String,
    /// When it last took fields, in RFC 3339 with whole seconds; empty where nobody knows.
    pub time: String,
    /// What it owns.
    pub fields: FieldSet,
}

impl Entry {
    /// Whether this is the entry of the same manager writing in the same way. Appliers stay the same over versions of a
    /// type.
    pub fn is_of(&self, writer: &Writer<'_>, operation: Operation) -> bool {
        self.operation == operation
            && self.manager == writer.manager
            && self.subresource == writer.subresource
            && (operation == Operation::Apply || self.api_version == writer.api_version)
    }

    fn new(writer: &Writer<'_>, operation: Operation, fields: FieldSet) -> Self {
        Self {
            manager: writer.manager.to_owned(),
            operation,
            api_version: writer.api_version.to_owned(),
            subresource: writer.subresource.to_owned(),
            time: writer.time(),
            fields,
        }
    }

    fn into_value(self) -> Value {
        let mut entry = Map::new();
        let mut put = |name: &str, text: String| {
            if !text.is_empty() {
                entry.insert(name.to_owned(), Value::String(text));
            }
        };
        put("manager", self.manager);
        put("apiVersion", self.api_version);
        put("subresource", self.subresource);
        put("time", self.time);
        put("operation", self.operation.as_str().to_owned());
        put("fieldsType", FIELDS_TYPE.to_owned());
        entry.insert("fieldsV1".to_owned(), self.fields.into_value());
        Value::Object(entry)
    }

    fn parse(value: Value, stored: bool) -> Option<Self> {
        let Value::Object(mut entry) = value else { return None };
        let fields = entry.remove("fieldsV1").unwrap_or_else(|| json!({}));
        let mut text = |name: &str| match entry.remove(name) {
            Some(Value::String(text)) => Some(text),
            None | Some(Value::Null) => Some(String::new()),
            Some(_) => None,
        };
        let fields_type = text("fieldsType")?;
        if !stored && fields_type != FIELDS_TYPE {
            return None;
        }
        Some(Self {
            manager: text("manager")?,
            operation: Operation::parse(&text("operation")?)?,
            api_version: text("apiVersion")?,
            subresource: text("subresource")?,
            time: text("time")?,
            fields: if stored { FieldSet::stored(fields) } else { FieldSet::parse(&fields).ok()? },
        })
    }
}

const FIELDS_TYPE: &str = "FieldsV1";

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The manager's name.
    pub manager: &'a str,
    /// The version of the type in which it writes, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource that it writes through; empty for the object itself.
    pub subresource: &'a str,
    /// Now.
    pub now: Timestamp,
}

impl Writer<'_> {
    fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

/// The managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Managed {
    entries: Vec<Entry>,
}

/// What a client wants of the managers of an object that it writes.
#[derive(Debug, PartialEq)]
pub enum Wish {
    /// To leave them as they are.
    Keep,
    /// To have these.
    Rewrite(Managed),
}

impl Managed {
    /// The managers in an object that is stored, taken out of it.
    pub fn take(object: &mut Value) -> Self {
        let Some(Value::Array(items)) = take(object) else { return Self::default() };
        Self { entries: items.into_iter().filter_map(|item| Entry::parse(item, true)).collect() }
    }

    /// What the object that a client sends says of the managers, taken out of it. Saying nothing, or something that
    /// cannot be read, leaves them as they are; an empty list, or a list of one empty entry, clears them.
    pub fn wish(object: &mut Value) -> Wish {
        let Some(Value::Array(items)) = take(object) else { return Wish::Keep };
        let clears = match items.as_slice() {
            [] => true,
            [Value::Object(entry)] => entry.is_empty(),
            _ => false,
        };
        if clears {
            return Wish::Rewrite(Self::default());
        }
        if items.len() > MAX_ENTRIES {
            return Wish::Keep;
        }
        let entries: Option<Vec<Entry>> = items.into_iter().map(|item| Entry::parse(item, false)).collect();
        match entries {
            Some(entries) => {
                let mut managed = Self::default();
                entries
                    .into_iter()
                    .filter(|entry| !entry.fields.is_empty())
                    .for_each(|entry| managed.join(entry));
                if managed.is_empty() { Wish::Keep } else { Wish::Rewrite(managed) }
            }
            None => Wish::Keep,
        }
    }

    /// Puts the managers into an object, in their order; none where there is none.
    pub fn put(mut self, object: &mut Value) {
        self.entries.sort_by(|a, b| order(a).cmp(&order(b)));
        let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
        if self.entries.is_empty() {
            metadata.remove("managedFields");
        } else {
            let entries = self.entries.into_iter().map(Entry::into_value).collect();
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }

    /// Whether nobody manages anything: the object is not tracked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries, in no order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of a manager.
    pub fn find(&self, writer: &Writer<'_>, operation: Operation) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.is_of(writer, operation))
    }

    /// Whether others own the same, whatever the times of their writes.
    pub fn owns_same(&self, other: &Self) -> bool {
        let same = |a: &Entry, b: &Entry| {
            a.operation == b.operation
                && a.manager == b.manager
                && a.subresource == b.subresource
                && a.api_version == b.api_version
                && a.fields == b.fields
        };
        self.entries.len() == other.entries.len()
            && self.entries.iter().all(|entry| other.entries.iter().any(|theirs| same(entry, theirs)))
    }

    /// Takes fields away from all entries but those of `except`; entries with nothing left go.
    pub fn release(&mut self, fields: &FieldSet, except: impl Fn(&Entry) -> bool) {
        if !fields.is_empty() {
            self.entries
                .iter_mut()
                .filter(|entry| !except(entry))
                .for_each(|entry| entry.fields.subtract(fields));
            self.entries.retain(|entry| !entry.fields.is_empty());
        }
    }

    /// Adds fields to a manager's entry, at the writer's time.
    pub fn give(&mut self, writer: &Writer<'_>, operation: Operation, fields: FieldSet) {
        if !fields.is_empty() {
            self.join(Entry::new(writer, operation, fields));
        }
    }

    /// Makes a manager own exactly these fields. Its time moves only if `moved`, or if they are others than before.
    pub fn set(&mut self, writer: &Writer<'_>, operation: Operation, fields: FieldSet, moved: bool) {
        let mut entry = Entry::new(writer, operation, fields);
        if let Some(at) = self.entries.iter().position(|entry| entry.is_of(writer, operation)) {
            let known = self.entries.swap_remove(at);
            if !moved && known.fields == entry.fields {
                entry.time = known.time;
            }
        }
        if !entry.fields.is_empty() {
            self.entries.push(entry);
        }
    }

    /// Adds an entry; to the one of the same manager, if there is one.
    fn join(&mut self, entry: Entry) {
        let writer = Writer {
            manager: &entry.manager,
            api_version: &entry.api_version,
            subresource: &entry.subresource,
            now: Timestamp::UNIX_EPOCH,
        };
        match self.entries.iter_mut().find(|known| known.is_of(&writer, entry.operation)) {
            Some(known) => {
                known.fields.absorb(entry.fields);
                known.time = entry.time;
            }
            None => self.entries.push(entry),
        }
    }

    /// Holds the number of plain writers to [`MAX_UPDATERS`]: the oldest of one version of the type are made one.
    pub fn cap(&mut self) {
        let is_updater = |entry: &Entry| entry.operation == Operation::Update;
        let is_bucket = |entry: &Entry, version: &str| {
            is_updater(entry)
                && entry.manager == ANCIENT
                && entry.subresource.is_empty()
                && entry.api_version == version
        };
        let mut count = self.entries.iter().filter(|entry| is_updater(entry)).count();
        if count <= MAX_UPDATERS {
            return;
        }
        self.entries.sort_by(|a, b| order(a).cmp(&order(b)));
        while count > MAX_UPDATERS {
            // The oldest, and the next one of its version: two become one.
            let of_version = |version: &str, after: usize| {
                let mut rest = self.entries.iter().enumerate().skip(after);
                rest.find(|(_, entry)| is_updater(entry) && entry.api_version == version).map(|(at, _)| at)
            };
            let pair = self
                .entries
                .iter()
                .enumerate()
                .filter(|(_, entry)| is_updater(entry))
                .find_map(|(first, entry)| Some((first, of_version(&entry.api_version, first + 1)?)));
            let Some((first, second)) = pair else { return };
            let newer = self.entries.remove(second);
            let mut bucket = self.entries.remove(first);
            bucket.fields.add(&newer.fields);
            bucket.time = newer.time;
            ANCIENT.clone_into(&mut bucket.manager);
            bucket.subresource.clear();
            count -= 1;
            let version = bucket.api_version.clone();
            match self.entries.iter_mut().find(|entry| is_bucket(entry, &version)) {
                Some(known) => {
                    known.fields.add(&bucket.fields);
                    count -= 1;
                }
                None => self.entries.insert(first, bucket),
            }
        }
    }
}

fn order(entry: &Entry) -> (Operation, &str, &str, &str, &str) {
    (entry.operation, &entry.time, &entry.manager, &entry.api_version, &entry.subresource)
}

fn take(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}
