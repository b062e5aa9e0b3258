//! What the server must know of a type beyond its descriptor. Data and plain functions; knows no type itself.

use jiff::Timestamp;
use serde_json::{Value, json};
use strata_model::field::FieldError;
use strata_model::names::{self, NameRule};
use strata_model::resource::{GroupResource, ResourceType};

use crate::authn::User;
use crate::rbac::policy::Policy;

/// The faults found in an object.
pub type Faults = Vec<FieldError>;

/// A column of a type's Table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Heading; clients print it in capitals.
    pub name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub kind: &'static str,
    /// Whether it is shown with `-o wide` only.
    pub wide: bool,
    /// What it shows.
    pub description: &'static str,
}

impl Column {
    /// How a Table describes the column.
    pub fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": if self.name == "Name" { "name" } else { "" },
            "description": self.description,
            "priority": i32::from(self.wide),
        })
    }
}

/// A column of text.
pub const fn column(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", wide: false, description }
}

/// A column of whole numbers.
pub const fn number(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "integer", wide: false, description }
}

/// A column of true or false.
pub const fn truth(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "boolean", wide: false, description }
}

/// A column of text for `-o wide`.
pub const fn wide(name: &'static str, description: &'static str) -> Column {
    Column { name, kind: "string", wide: true, description }
}

/// The first column of most types.
pub const NAME: Column = column("Name", "The name of the object, unique in its namespace.");
/// The age column of most types.
pub const AGE: Column = column("Age", "How long ago the object was created.");

/// A field that field selectors of a type may name.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name in selectors.
    pub name: &'static str,
    /// Where it is: JSON pointers of which the first with a value counts.
    pub pointers: &'static [&'static str],
    /// Its value where it is absent.
    pub absent: &'static str,
}

/// A field found at one place.
pub const fn field(name: &'static str, pointers: &'static [&'static str]) -> Field {
    Field { name, pointers, absent: "" }
}

/// A field of `true` or `false`.
pub const fn switch(name: &'static str, pointers: &'static [&'static str]) -> Field {
    Field { name, pointers, absent: "false" }
}

/// What the rules of a type may look at beside the object itself.
pub trait Around {
    /// The object of a type with this name.
    fn get(&self, id: &GroupResource, namespace: &str, name: &str) -> Option<Value>;
    /// All objects of a type that lives beside namespaces.
    fn all(&self, id: &GroupResource) -> Vec<Value>;
    /// Whether some object holds a reservation of this name.
    fn taken(&self, reservation: &str) -> bool;
    /// A random number below another, which is not 0.
    fn below(&self, limit: u32) -> u32;
    /// Who writes.
    fn user(&self) -> &User;
    /// What users may do.
    fn policy(&self) -> &Policy;
}

/// Why an object cannot be what its writer wants, seen beside others.
#[derive(Debug)]
pub enum Unsettled {
    /// Its fields are at fault.
    Faults(Faults),
    /// It is not allowed.
    Forbidden(String),
    /// What it names is not there.
    Missing(&'static ResourceType, String),
}

/// An object that another one needs beside itself in its namespace.
pub struct Need {
    /// Its type.
    pub id: &'static GroupResource,
    /// Its name.
    pub name: String,
    /// Whether it is one that every namespace has: it is made where it is missing.
    pub made: bool,
}

/// Settles an object, given (on an update) what it was.
pub type Settle = fn(&mut Value, Option<&Value>, &dyn Around) -> Result<(), Unsettled>;

/// Checks a change, through the subresource named first, to (second) from (third).
pub type Guard = fn(&str, &Value, &Value, &dyn Around) -> Result<(), Unsettled>;

/// The rules of one type. `PLAIN` has none; types name where they differ.
#[derive(Clone, Copy)]
pub struct Rules {
    /// What names look like.
    pub name: NameRule,
    /// Fills what a client left out; on every write, and a second time changes nothing.
    pub defaults: fn(&mut Value),
    /// What a create sets itself or does not take from the client.
    pub create: fn(&mut Value),
    /// What an update takes from the old object (second argument) instead of the client.
    pub update: fn(&mut Value, &Value),
    /// Faults of an object by itself.
    pub validate: fn(&Value, &mut Faults),
    /// Faults of a change to (first) from (second).
    pub validate_update: fn(&Value, &Value, &mut Faults),
    /// Faults of what was added through a subresource that only adds.
    pub validate_added: fn(&Value, &Value, &mut Faults),
    /// Faults of a status that is written by itself.
    pub validate_status: fn(&Value, &mut Faults),
    /// What an object gets or needs by what else there is: free addresses, classes by name.
    pub settle: Option<Settle>,
    /// Whether a change through a subresource (first) is the writer's to make.
    pub guard: Option<Guard>,
    /// Names that only one object may hold at a time, and that this one holds.
    pub reserves: Option<fn(&Value) -> Vec<String>>,
    /// What a new object needs in its namespace.
    pub needs: Option<fn(&Value) -> Vec<Need>>,
    /// Sentences that the writer should see though the object is fine.
    pub warnings: fn(&Value) -> Vec<String>,
    /// Columns of the Table.
    pub columns: &'static [Column],
    /// The cells of an object's row, one a column.
    pub row: fn(&Value, Timestamp) -> Vec<Value>,
    /// Fields that selectors may name, beside name and namespace.
    pub fields: &'static [Field],
    /// Whether an update must name the revision it replaces.
    pub revision_required: bool,
    /// Whether an update of a missing object creates it.
    pub create_on_update: bool,
    /// Whether a create keeps the status that the client sent.
    pub keeps_status: bool,
    /// Whether a status write may also change labels.
    pub status_labels: bool,
    /// Whether a status write changes nothing but the status.
    pub status_alone: bool,
    /// Whether objects are asked to end before they are removed (pods).
    pub graceful: bool,
    /// Whether a deletion that says nothing of what the object owns leaves that where it is.
    pub orphans: bool,
    /// Whether something must still be done before an object that is being deleted may go.
    pub holds: fn(&Value) -> bool,
    /// What the mark of a deletion changes beside metadata.
    pub mark: fn(&mut Value),
    /// Whether objects of other types lie in those of this one: it goes only once none is left, whatever its finalizers say.
    pub encloses: bool,
    /// Names that may not be deleted.
    pub protected: &'static [&'static str],
    /// Seconds after its last change at which an object goes by itself.
    pub expires_after_seconds: Option<i64>,
}

/// How objects of a type become those of the type in which they are stored, and back.
pub struct Conversion {
    /// Faults that only this form of an object can have.
    pub validate: fn(&Value, &mut Faults),
    /// From this form into the stored one; of an object or of the part of it that an apply says.
    pub store: fn(&mut Value),
    /// From the stored form into this one.
    pub show: fn(&mut Value),
    /// Columns and rows of this form.
    pub rules: &'static Rules,
    /// Names of selectable fields in this form, and what they are in the stored one.
    pub fields: &'static [(&'static str, &'static str)],
}

/// A type without rules of its own.
pub const PLAIN: Rules = Rules {
    name: names::dns_subdomain,
    defaults: |_| {},
    create: |_| {},
    update: |_, _| {},
    validate: |_, _| {},
    validate_update: |_, _, _| {},
    validate_added: |_, _, _| {},
    validate_status: |_, _| {},
    settle: None,
    guard: None,
    reserves: None,
    needs: None,
    warnings: |_| Vec::new(),
    columns: &[NAME, AGE],
    row: |_, _| Vec::new(),
    fields: &[],
    revision_required: false,
    create_on_update: false,
    keeps_status: false,
    status_labels: false,
    status_alone: false,
    graceful: false,
    orphans: false,
    holds: |object| !crate::value::list(object, &["metadata", "finalizers"]).is_empty(),
    mark: |_| {},
    encloses: false,
    protected: &[],
    expires_after_seconds: None,
};
