//! Volumes and where containers see them.

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use super::{Remark, given};
use crate::model::volume::{Medium, Mount, Volume};
use crate::units::{Bytes, Quantity};

/// The volumes that the node makes, and the names of all others.
pub(super) fn volumes(
    from: &[v1::Volume],
    problems: &mut Vec<Remark>,
) -> (Vec<Volume>, Vec<String>) {
    let (mut own, mut foreign) = (Vec::new(), Vec::new());
    for (index, volume) in from.iter().enumerate() {
        let Some(source) = &volume.empty_dir else {
            foreign.push(volume.name.clone());
            continue;
        };
        let field = format!("spec.volumes[{index}].emptyDir.sizeLimit");
        let read = |Text(text): &Text| match text.trim().parse::<Quantity>() {
            Ok(amount) => Some(amount),
            Err(error) => {
                problems.push(Remark::new(&field, error.to_string()));
                None
            }
        };
        let size = source.size_limit.as_ref().and_then(read);
        let is_negative = size.is_some_and(Quantity::is_negative);
        own.push(Volume {
            name: volume.name.clone(),
            index,
            medium: match given(source.medium.as_deref()) {
                None => Medium::Disk,
                Some("Memory") => Medium::Memory,
                Some(other) => Medium::Other(other.to_owned()),
            },
            size_limit: size
                .filter(|_| !is_negative)
                .map(|size| Bytes(size.bytes()))
                .filter(|size| *size > Bytes::ZERO),
            negative_size: size.filter(|_| is_negative),
        });
    }
    (own, foreign)
}

/// Where a container sees volumes.
pub(super) fn mounts(from: Option<&Vec<v1::VolumeMount>>) -> Vec<Mount> {
    let mounts = from.into_iter().flatten();
    mounts
        .map(|mount| Mount {
            volume: mount.name.clone(),
            path: mount.mount_path.clone(),
            read_only: mount.read_only == Some(true),
            is_part: given(mount.sub_path.as_deref()).is_some()
                || given(mount.sub_path_expr.as_deref()).is_some(),
        })
        .collect()
}
