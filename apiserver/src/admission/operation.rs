//! What is done to an object, in the words of admission.

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is made; also what acts through a subresource, such as a binding.
    Create,
    /// It is changed, in whichever way.
    Update,
    /// It is deleted.
    Delete,
    /// A stream to it is opened.
    Connect,
}

impl Operation {
    /// The word in rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}
