//! The bounds and defaults that a namespace gives its objects one by one (`LimitRange`).
//!
//! Plain data, and the one rule that is a property of the data: which amount stands in for one that is
//! not given. Whether an object keeps the bounds is decided in `admission::limit_range`.

use std::collections::BTreeMap;
use std::fmt;

use super::{List, ResourceList, ResourceName};
use crate::units::Quantity;

/// A LimitRange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitRange {
    /// `metadata.namespace`: it holds for the objects of this namespace.
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `spec.limits`
    pub items: Vec<LimitRangeItem>,
}

/// One item of `spec.limits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRangeItem {
    /// `type`: what it bounds.
    pub kind: LimitType,
    /// `max`
    pub max: ResourceList,
    /// `min`
    pub min: ResourceList,
    /// `default`: the limit of a container that gives none.
    pub default: ResourceList,
    /// `defaultRequest`: the request of a container that gives none.
    pub default_request: ResourceList,
    /// `maxLimitRequestRatio`: the greatest quotient of limit and request.
    pub max_limit_request_ratio: ResourceList,
}

impl LimitRangeItem {
    /// An item that bounds nothing yet.
    pub fn new(kind: LimitType) -> Self {
        Self {
            kind,
            max: ResourceList::default(),
            min: ResourceList::default(),
            default: ResourceList::default(),
            default_request: ResourceList::default(),
            max_limit_request_ratio: ResourceList::default(),
        }
    }

    /// One of its lists.
    pub fn list(&self, bound: Bound) -> &ResourceList {
        match bound {
            Bound::Max => &self.max,
            Bound::Min => &self.min,
            Bound::Default => &self.default,
            Bound::DefaultRequest => &self.default_request,
            Bound::MaxLimitRequestRatio => &self.max_limit_request_ratio,
        }
    }

    /// What a container gets that gives no amount of its own, and which list that is from; nothing for
    /// types other than Container.
    ///
    /// A default that is not given is derived (Kubernetes 1.36 `SetDefaults_LimitRangeItem`): a limit is
    /// the greatest that is allowed; a request is the default limit, and failing that the least that is
    /// allowed.
    pub fn defaults(&self, list: List) -> BTreeMap<&ResourceName, (Quantity, Bound)> {
        let sources: &[Bound] = match list {
            _ if self.kind != LimitType::Container => &[],
            List::Limits => &[Bound::Default, Bound::Max],
            List::Requests => &[
                Bound::DefaultRequest,
                Bound::Default,
                Bound::Max,
                Bound::Min,
            ],
        };
        let mut defaults = BTreeMap::new();
        for bound in sources {
            for (name, amount) in self.list(*bound).iter() {
                defaults.entry(name).or_insert((amount, *bound));
            }
        }
        defaults
    }
}

/// What an item bounds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitType {
    /// Each container, init containers included.
    Container,
    /// Each pod as a whole.
    Pod,
    /// The storage that each claim asks for.
    PersistentVolumeClaim,
    /// The size of each image that is pushed (OpenShift).
    Image,
    /// The number of images and tags in each image stream (OpenShift).
    ImageStream,
    /// A type of somebody else.
    Other(String),
}

impl From<&str> for LimitType {
    fn from(name: &str) -> Self {
        match name {
            "Container" => Self::Container,
            "Pod" => Self::Pod,
            "PersistentVolumeClaim" => Self::PersistentVolumeClaim,
            "openshift.io/Image" => Self::Image,
            "openshift.io/ImageStream" => Self::ImageStream,
            _ => Self::Other(name.to_owned()),
        }
    }
}

impl fmt::Display for LimitType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Container => "Container",
            Self::Pod => "Pod",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::Image => "openshift.io/Image",
            Self::ImageStream => "openshift.io/ImageStream",
            Self::Other(name) => name,
        })
    }
}

/// The lists of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// `max`
    Max,
    /// `min`
    Min,
    /// `default`
    Default,
    /// `defaultRequest`
    DefaultRequest,
    /// `maxLimitRequestRatio`
    MaxLimitRequestRatio,
}

impl Bound {
    /// All of them, in the order of the API's documentation.
    pub const ALL: [Self; 5] = [
        Self::Max,
        Self::Min,
        Self::Default,
        Self::DefaultRequest,
        Self::MaxLimitRequestRatio,
    ];
}

impl fmt::Display for Bound {
    /// The field's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Max => "max",
            Self::Min => "min",
            Self::Default => "default",
            Self::DefaultRequest => "defaultRequest",
            Self::MaxLimitRequestRatio => "maxLimitRequestRatio",
        })
    }
}
