//! An object together with its typed view, parsed once for the life of the cached object. Knows no kind.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use strata_model::object::{Object, ObjectError};

/// An object of the cache, read as a `T`: dereferences to the `T`. Cheap to clone.
#[derive(Debug)]
pub struct Typed<T> {
    object: Arc<Object>,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + Sync + 'static> Typed<T> {
    /// Reads an object; parses only if nobody did before.
    pub fn new(object: Arc<Object>) -> Result<Self, ObjectError> {
        object.typed::<T>()?;
        Ok(Self { object, of: PhantomData })
    }

    /// Reads many.
    pub fn all(objects: Vec<Arc<Object>>) -> Result<Vec<Self>, ObjectError> {
        objects.into_iter().map(Self::new).collect()
    }
}

impl<T> Typed<T> {
    /// The object as a whole.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }
}

impl<T: 'static> Deref for Typed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // The constructor parsed it, and an object keeps its first view for life.
        self.object.typed_ref::<T>().expect("the typed view was made by the constructor")
    }
}

impl<T> Clone for Typed<T> {
    fn clone(&self) -> Self {
        Self { object: Arc::clone(&self.object), of: PhantomData }
    }
}
