//! Is it too much? What a pod's files take against what they may take.
//!
//! Pure. Order and texts are the kubelet's (1.32, `localStorageEviction`), with the figures behind them.
//! One that cannot be measured is not too much: doubt must not end a pod. A tree that is built to hide
//! from the walk is.

use std::collections::BTreeMap;

use super::projects::Refusal;
use crate::model::space::{Measured, Space};
use crate::units::quantity::Format;
use crate::units::{Bytes, Quantity};

/// What a pod's files may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Of single parts: containers' limits and volumes' sizes.
    pub parts: BTreeMap<Space, Bytes>,
    /// Of all parts on disk together, where every container is limited.
    pub pod: Option<Bytes>,
    /// Parts of `parts` whose writers are stopped by the kernel; too much is told and ends nothing.
    pub enforced: Vec<Space>,
    /// What the kernel tells the writers of those on disk.
    pub refusal: Refusal,
    /// Parts that are no part of the sum: they are in memory.
    pub in_memory: Vec<Space>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The pod has to go.
    Excess {
        /// What was exceeded, in the words of the kubelet's metric `kubelet_evictions`.
        signal: &'static str,
        /// Why, for people.
        message: String,
    },
    /// Writers of this part get errors.
    Full {
        /// The part.
        space: Space,
        /// Why, for people.
        message: String,
    },
}

impl Limits {
    /// Whether anything is limited at all.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.pod.is_none()
    }

    /// The first limit that is exceeded, or else the parts that are full.
    pub fn judge(&self, measured: &BTreeMap<Space, Measured>) -> Vec<Finding> {
        let volumes = self.over(measured, |space| matches!(space, Space::Volume(_)));
        let containers = || self.over(measured, |space| matches!(space, Space::Container(_)));
        let excess = volumes
            .or_else(|| self.pod_over(measured))
            .or_else(containers);
        match excess {
            Some(excess) => vec![excess],
            None => self.full(measured),
        }
    }

    fn over(
        &self,
        measured: &BTreeMap<Space, Measured>,
        is_meant: fn(&Space) -> bool,
    ) -> Option<Finding> {
        let mut parts = self.parts.iter().filter(|(space, _)| is_meant(space));
        parts.find_map(|(space, limit)| {
            let used = measured.get(space)?;
            if self.enforced.contains(space) || !exceeds(used, *limit) {
                return None;
            }
            let limit = spelt(*limit);
            let (signal, text) = match space {
                Space::Volume(name) => (
                    "emptydirfs.limit",
                    format!("Usage of EmptyDir volume {name:?} exceeds the limit \"{limit}\". "),
                ),
                Space::Container(name) => (
                    "ephemeralcontainerfs.limit",
                    format!(
                        "Container {name} exceeded its local ephemeral storage limit \"{limit}\". "
                    ),
                ),
                Space::Pod => return None,
            };
            let message = text + &figures(used);
            Some(Finding::Excess { signal, message })
        })
    }

    fn pod_over(&self, measured: &BTreeMap<Space, Measured>) -> Option<Finding> {
        let limit = self.pod?;
        let on_disk = measured
            .iter()
            .filter(|(space, _)| !self.in_memory.contains(space));
        let sum = on_disk
            .map(|(_, used)| *used)
            .reduce(Measured::plus)
            .unwrap_or_default();
        // Where the kernel lets a container write to its very limit, the few directories that hold its files
        // must not be what ends the pod.
        let is_kept = |space: &Space| matches!(space, Space::Container(_));
        let spared = if self.enforced.iter().any(is_kept) {
            limit.0.saturating_add(slack(limit.0))
        } else {
            limit.0
        };
        exceeds(&sum, Bytes(spared)).then(|| Finding::Excess {
            signal: "ephemeralpodfs.limit",
            message: format!(
                "Pod ephemeral local storage usage exceeds the total limit of containers {}. {}",
                spelt(limit),
                figures(&sum)
            ),
        })
    }

    fn full(&self, measured: &BTreeMap<Space, Measured>) -> Vec<Finding> {
        let parts = self.enforced.iter();
        let full = parts.filter_map(|space| {
            let (used, limit) = (measured.get(space)?, self.parts.get(space)?);
            is_full(used.bytes, limit.0).then(|| Finding::Full {
                space: space.clone(),
                message: format!(
                    "{} uses {} of {} bytes: further writes get {:?}",
                    spoken(space),
                    used.bytes,
                    limit.0,
                    if self.in_memory.contains(space) {
                        Refusal::Space
                    } else {
                        self.refusal
                    }
                    .text()
                ),
            })
        });
        full.collect()
    }
}

fn exceeds(used: &Measured, limit: Bytes) -> bool {
    used.hidden || used.bytes > limit.0
}

/// A file system does not fill a limit to the last block.
fn is_full(used: u64, limit: u64) -> bool {
    used >= limit.saturating_sub(slack(limit))
}

/// What is little beside a limit.
fn slack(limit: u64) -> u64 {
    (limit / 16).min(64 << 10)
}

fn figures(used: &Measured) -> String {
    let deleted = match used.deleted {
        0 => String::new(),
        bytes => format!(", {bytes} of them in deleted files that are open"),
    };
    if used.hidden {
        let most = super::walk::MAX_INODES;
        let deepest = super::walk::MAX_DEPTH;
        format!(
            "It holds more than {most} files or directories deeper than {deepest}, and {} bytes or more are in use{deleted}. ",
            used.bytes
        )
    } else {
        format!("{} bytes are in use{deleted}. ", used.bytes)
    }
}

fn spelt(Bytes(bytes): Bytes) -> String {
    Quantity::from_units(bytes, Format::BinarySi).to_string()
}

fn spoken(space: &Space) -> String {
    match space {
        Space::Pod => "the pod".to_owned(),
        Space::Container(name) => format!("container {name}"),
        Space::Volume(name) => format!("volume {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: u64) -> Measured {
        Measured {
            bytes,
            inodes: 1,
            ..Measured::default()
        }
    }

    fn volume() -> Space {
        Space::Volume("cache".into())
    }

    fn container() -> Space {
        Space::Container("web".into())
    }

    fn limits() -> Limits {
        Limits {
            parts: BTreeMap::from([(volume(), Bytes(1 << 30)), (container(), Bytes(10 << 20))]),
            pod: Some(Bytes(20 << 20)),
            enforced: Vec::new(),
            refusal: Refusal::Quota,
            in_memory: vec![volume()],
        }
    }

    fn told(limits: &Limits, used: &[(Space, Measured)]) -> Vec<String> {
        let measured = used.iter().cloned().collect();
        let text = |finding| match finding {
            Finding::Excess { signal, message } => format!("{signal}: {message}"),
            Finding::Full { message, .. } => message,
        };
        limits.judge(&measured).into_iter().map(text).collect()
    }

    #[test]
    fn the_familiar_text_comes_with_the_figures() {
        let limits = limits();
        let at = |more: u64| [(container(), bytes((10 << 20) + more))];
        assert_eq!(told(&limits, &at(0)), [""; 0]);
        assert_eq!(
            told(&limits, &at(1)),
            [
                "ephemeralcontainerfs.limit: Container web exceeded its local ephemeral storage \
                 limit \"10Mi\". 10485761 bytes are in use. "
            ]
        );
        let deleted = Measured {
            deleted: 5,
            ..bytes((1 << 30) + 1)
        };
        assert_eq!(
            told(&limits, &[(volume(), deleted)]),
            [
                "emptydirfs.limit: Usage of EmptyDir volume \"cache\" exceeds the limit \"1Gi\". \
                 1073741825 bytes are in use, 5 of them in deleted files that are open. "
            ]
        );
    }

    #[test]
    fn the_pod_is_the_sum_of_what_is_on_disk() {
        let limits = limits();
        let half = bytes(10 << 20);
        let all = [(container(), half), (volume(), half), (Space::Pod, half)];
        assert_eq!(told(&limits, &all), [""; 0], "the volume is in memory");
        let more = [(container(), half), (Space::Pod, bytes((10 << 20) + 1))];
        let expected = "ephemeralpodfs.limit: Pod ephemeral local storage usage exceeds the total \
                        limit of containers 20Mi. 20971521 bytes are in use. ";
        assert_eq!(told(&limits, &more), [expected]);
    }

    #[test]
    fn where_the_kernel_stops_the_writer_nothing_ends() {
        let limits = Limits {
            enforced: vec![container()],
            ..limits()
        };
        let told = |used: u64| told(&limits, &[(container(), bytes(used))]);
        assert_eq!(told(9 << 20), [""; 0]);
        let expected = "container web uses 10485760 of 10485760 bytes: further writes get \"Disk \
                        quota exceeded\"";
        assert_eq!(told(10 << 20), [expected]);
        // The limit of the pod is that of its one container, and the pod's own directories come on top.
        let limits = Limits {
            pod: Some(Bytes(10 << 20)),
            ..limits
        };
        let beside = |own: u64| {
            let all = [(container(), bytes(10 << 20)), (Space::Pod, bytes(own))];
            limits.judge(&all.into_iter().collect())
        };
        assert!(matches!(beside(64 << 10)[..], [Finding::Full { .. }]));
        assert!(matches!(
            beside((64 << 10) + 1)[..],
            [Finding::Excess { .. }]
        ));
        let limits = Limits {
            refusal: Refusal::Space,
            ..limits
        };
        let full = [(container(), bytes(10 << 20))].into();
        let found = limits.judge(&full);
        assert!(
            matches!(&found[..], [Finding::Full { message, .. }] if message.ends_with("\"No space left on device\"")),
            "{found:?}"
        );
    }

    #[test]
    fn a_tree_that_hides_is_too_much_and_one_unmeasured_is_not() {
        let hidden = Measured {
            hidden: true,
            ..bytes(1)
        };
        let found = told(&limits(), &[(container(), hidden)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(told(&limits(), &[]), [""; 0]);
        assert!(Limits::default().is_empty() && !limits().is_empty());
    }
}
