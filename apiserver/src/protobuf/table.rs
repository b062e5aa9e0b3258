//! The table of messages and fields, read once when first needed. Knows no bytes.

use std::collections::HashMap;
use std::sync::OnceLock;

static TEXT: &str = include_str!("fields.tsv");

/// All messages.
pub struct Table {
    messages: Vec<Message>,
    by_name: HashMap<&'static str, usize>,
}

/// One message: its fields by number.
pub struct Message {
    /// Name such as `apps.v1.Deployment`.
    pub name: &'static str,
    fields: Vec<Field>,
}

/// One field of a message.
pub struct Field {
    /// Its number on the wire.
    pub number: u32,
    /// Its name in JSON; `-` for an inline field.
    pub json: &'static str,
    /// How it stands in its message.
    pub place: Place,
    /// What it, or each element of it, is.
    pub form: Form,
}

/// How a field stands in its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A plain value: zero means absent.
    Plain,
    /// A pointer: what is there was set, zero too.
    Pointer,
    /// A list.
    List,
    /// A map with text keys.
    Map,
    /// A message whose members are the parent's in JSON.
    Inline,
}

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `true` or `false`.
    Bool,
    /// A 32-bit or 64-bit whole number.
    Integer,
    /// A 64-bit floating point number.
    Double,
    /// Text.
    Text,
    /// Bytes: base64 in JSON.
    Bytes,
    /// A time of whole seconds.
    Time,
    /// A time of microseconds.
    MicroTime,
    /// A message around JSON text.
    Json,
    /// A quantity.
    Quantity,
    /// A number or text.
    IntOrString,
    /// A message around a list of texts.
    Texts,
    /// A JSON schema or a list of them.
    SchemaOrArray,
    /// A JSON schema or a boolean.
    SchemaOrBool,
    /// A JSON schema or a list of texts.
    SchemaOrTexts,
    /// The message at this place of the table.
    Message(usize),
}

impl Table {
    /// The message `name`.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The message at a place that [`Table::find`] or a [`Form::Message`] gave.
    pub fn message(&self, at: usize) -> &Message {
        &self.messages[at]
    }

    /// The message of an API type. Forms that every API group shares (delete options, status …) are found under any
    /// group and version.
    pub fn find_type(&self, api_version: &str, kind: &str) -> Option<usize> {
        let (group, version) = api_version.split_once('/').unwrap_or(("core", api_version));
        let group = group.split('.').next().unwrap_or(group);
        self.find(&format!("{group}.{version}.{kind}")).or_else(|| self.find(&format!("meta.v1.{kind}")))
    }
}

impl Message {
    /// The field with this number.
    pub fn field(&self, number: u32) -> Option<&Field> {
        let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        Some(&self.fields[at])
    }

    /// All fields, by number.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }
}

/// The table, read on the first call.
pub fn table() -> &'static Table {
    static CELL: OnceLock<Table> = OnceLock::new();
    CELL.get_or_init(|| {
        let lines = || TEXT.lines().filter(|line| !line.starts_with('#'));
        let names = lines().filter(|line| !line.starts_with('\t'));
        let by_name: HashMap<_, _> = names.enumerate().map(|(at, name)| (name, at)).collect();
        let mut messages: Vec<Message> = Vec::with_capacity(by_name.len());
        for line in lines() {
            match line.strip_prefix('\t') {
                None => messages.push(Message { name: line, fields: Vec::new() }),
                Some(row) => {
                    if let (Some(message), Some(field)) = (messages.last_mut(), field(row, &by_name)) {
                        message.fields.push(field);
                    }
                }
            }
        }
        Table { messages, by_name }
    })
}

fn field(row: &'static str, names: &HashMap<&'static str, usize>) -> Option<Field> {
    let mut cells = row.split('\t');
    let (number, json, kind) = (cells.next()?.parse().ok()?, cells.next()?, cells.next()?);
    let marks = [("*", Place::Pointer), ("[]", Place::List), ("{}", Place::Map), ("+", Place::Inline)];
    let marked = marks.into_iter().find_map(|(mark, place)| Some((kind.strip_prefix(mark)?, place)));
    let (kind, place) = marked.unwrap_or((kind, Place::Plain));
    Some(Field { number, json, place, form: form(kind, names)? })
}

fn form(kind: &str, names: &HashMap<&'static str, usize>) -> Option<Form> {
    Some(match kind {
        "bool" => Form::Bool,
        "int32" | "int64" => Form::Integer,
        "double" => Form::Double,
        "string" => Form::Text,
        "bytes" => Form::Bytes,
        "time" => Form::Time,
        "microtime" => Form::MicroTime,
        "json" => Form::Json,
        "quantity" => Form::Quantity,
        "int-or-string" => Form::IntOrString,
        "strings" => Form::Texts,
        "schema-or-array" => Form::SchemaOrArray,
        "schema-or-bool" => Form::SchemaOrBool,
        "schema-or-strings" => Form::SchemaOrTexts,
        message => Form::Message(*names.get(message)?),
    })
}
