//! Where a value stands in its object, in the notation of Kubernetes' messages:
//! `spec.containers[0].resources.limits[cpu]`.

use std::fmt;

/// A step from the top of a document to a value, and all the steps before it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'p> {
    /// The object itself; its own place in a list of objects, `items[3]`, or nothing.
    Top(&'p str),
    /// A field of a struct.
    Field(&'p Place<'p>, &'p str),
    /// A key of a map.
    Key(&'p Place<'p>, &'p str),
    /// An item of a list, from 0.
    Item(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top(prefix) => f.write_str(prefix),
            Self::Field(Place::Top(""), name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{parent}.{name}"),
            Self::Key(parent, key) => write!(f, "{parent}[{key}]"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
