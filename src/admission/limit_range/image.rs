//! The bounds on images and image streams: types of OpenShift, for what is pushed to a registry.
//!
//! Only `max` counts, and of several the least (`openshift-apiserver`, `image/apiserver/admission`).

use std::collections::BTreeMap;

use super::super::reason::{Code, Reason};
use crate::model::{LimitRange, LimitType, ResourceList, ResourceName};
use crate::units::{Format, Quantity};

/// The number of distinct images in a stream.
const IMAGES: &str = "openshift.io/images";
/// The number of distinct references in a stream's tags.
const TAGS: &str = "openshift.io/image-tags";

/// The bound that an image of this size breaks, if there is one.
pub fn image(size: Quantity, ranges: &[&LimitRange]) -> Option<Reason> {
    let storage = ResourceName::from("storage");
    let most = *least_max(&LimitType::Image, ranges).get(&storage)?;
    (size > most.amount).then(|| above(&LimitType::Image, &storage, size, most))
}

/// The bounds on each image stream.
pub fn stream_limits(ranges: &[&LimitRange]) -> ResourceList {
    least_max(&LimitType::ImageStream, ranges)
        .into_iter()
        .filter(|(name, _)| [IMAGES, TAGS].contains(&name.to_string().as_str()))
        .map(|(name, most)| (name.clone(), most.amount))
        .collect()
}

/// What an image stream holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamCounts {
    /// Distinct images.
    pub images: u64,
    /// Distinct references in its tags.
    pub tags: u64,
}

/// Every bound that a stream breaks. What it held before it may go on holding.
pub fn stream(now: StreamCounts, before: StreamCounts, ranges: &[&LimitRange]) -> Vec<Reason> {
    let limits = least_max(&LimitType::ImageStream, ranges);
    let counts = [
        (IMAGES, now.images, before.images),
        (TAGS, now.tags, before.tags),
    ];
    let mut reasons = Vec::new();
    for (name, now, before) in counts {
        let name = ResourceName::from(name);
        let count = Quantity::from_units(now, Format::DecimalSi);
        if let Some(most) = limits.get(&name)
            && count > most.amount
            && now > before
        {
            reasons.push(above(&LimitType::ImageStream, &name, count, *most));
        }
    }
    reasons
}

/// A bound and where it stands.
#[derive(Clone, Copy)]
struct Most<'a> {
    amount: Quantity,
    range: &'a str,
}

fn above(kind: &LimitType, name: &ResourceName, amount: Quantity, most: Most<'_>) -> Reason {
    let message = format!(
        "requested usage of {name} exceeds the maximum limit per {kind} ({amount} > {}); LimitRange {}",
        most.amount, most.range
    );
    Reason::policy(Code::LimitRange, "", &message)
}

fn least_max<'a>(
    kind: &LimitType,
    ranges: &[&'a LimitRange],
) -> BTreeMap<&'a ResourceName, Most<'a>> {
    let mut least = BTreeMap::new();
    for range in ranges {
        let items = range.items.iter().filter(|item| item.kind == *kind);
        for (name, amount) in items.flat_map(|item| item.max.iter()) {
            let most = Most {
                amount,
                range: &range.name,
            };
            let known = least.entry(name).or_insert(most);
            if amount < known.amount {
                *known = most;
            }
        }
    }
    least
}
