//! Names of containers and attempts, checked once more before they become file names.
//!
//! A value of these types holds no slash, no dot-dot and no control character, whatever a manifest
//! said; nothing here touches a file.

use std::fmt;

use crate::model::PodUid;
use crate::model::name::{dns_label, dns_subdomain};

/// The longest file name of Linux (bytes).
const NAME_MAX: usize = 255;

/// A container of a pod: the directories of its attempts, its scratch space and its logs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContainerId {
    namespace: String,
    pod: String,
    uid: PodUid,
    container: String,
}

/// One run of a container; the number is the count of restarts before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId {
    /// The container.
    pub container: ContainerId,
    /// 0 for the first run.
    pub attempt: u32,
}

/// A name that must not become a file's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {name:?} is not a DNS name of lower-case letters, digits and '-'")]
pub struct BadName {
    /// Which name.
    pub what: &'static str,
    /// The name as given.
    pub name: String,
}

impl ContainerId {
    /// A container's identity.
    ///
    /// # Errors
    /// A namespace or container name that is not a DNS label (RFC 1123, 63 characters), or a pod
    /// name that is not a DNS subdomain (253 characters).
    pub fn new(namespace: &str, pod: &str, uid: PodUid, container: &str) -> Result<Self, BadName> {
        let check = |what, name: &str, problems: fn(&str) -> Vec<String>| {
            if problems(name).is_empty() {
                Ok(name.to_owned())
            } else {
                let name = name.chars().take(NAME_MAX).collect();
                Err(BadName { what, name })
            }
        };
        Ok(Self {
            namespace: check("namespace", namespace, dns_label)?,
            pod: check("pod", pod, dns_subdomain)?,
            container: check("container", container, dns_label)?,
            uid,
        })
    }

    /// The pod's uid.
    pub fn uid(&self) -> &PodUid {
        &self.uid
    }

    /// The container's name.
    pub fn name(&self) -> &str {
        &self.container
    }

    /// Another container of the same pod.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn sibling(&self, container: &str) -> Result<Self, BadName> {
        Self::new(&self.namespace, &self.pod, self.uid.clone(), container)
    }

    /// The run after `attempt` restarts.
    pub fn attempt(&self, attempt: u32) -> AttemptId {
        AttemptId {
            container: self.clone(),
            attempt,
        }
    }

    /// The pod's directory below the state directory.
    pub(super) fn pod_path(&self) -> Vec<String> {
        vec!["pods".to_owned(), self.uid.to_string()]
    }

    /// The container's directory below the state directory.
    pub(super) fn path(&self) -> Vec<String> {
        [self.pod_path(), vec![self.container.clone()]].concat()
    }

    /// The container's scratch directory below the state directory.
    pub(super) fn scratch_path(&self) -> Vec<String> {
        [self.path(), vec!["scratch".to_owned()]].concat()
    }

    /// The directory of the pod's volumes; no container has a name like that.
    pub(super) fn volumes_path(&self) -> Vec<String> {
        [self.pod_path(), vec![".volumes".to_owned()]].concat()
    }

    /// The directory of a volume.
    pub(super) fn volume_path(&self, name: &str) -> Result<Vec<String>, BadName> {
        if !dns_label(name).is_empty() {
            return Err(BadName {
                what: "volume",
                name: name.chars().take(NAME_MAX).collect(),
            });
        }
        Ok([self.volumes_path(), vec![name.to_owned()]].concat())
    }

    /// The pod's directory below the logs directory, `NAMESPACE_NAME_UID` as the kubelet calls it. A
    /// pod name that would not fit into a file name is cut; the uid keeps it unique.
    pub(super) fn pod_log_path(&self) -> Vec<String> {
        let rest = self.namespace.len() + self.uid.as_str().len() + 2;
        let room = NAME_MAX.saturating_sub(rest);
        let pod = self.pod.get(..room).unwrap_or(&self.pod);
        vec![format!("{}_{pod}_{}", self.namespace, self.uid)]
    }

    /// The directory of the container's logs below the logs directory.
    pub(super) fn log_path(&self) -> Vec<String> {
        [self.pod_log_path(), vec![self.container.clone()]].concat()
    }
}

impl AttemptId {
    /// The attempt's directory below the state directory.
    pub(super) fn path(&self) -> Vec<String> {
        [self.container.path(), vec![self.attempt.to_string()]].concat()
    }
}

impl fmt::Display for ContainerId {
    /// `NAMESPACE/POD/CONTAINER`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.pod, self.container)
    }
}

impl fmt::Display for AttemptId {
    /// `NAMESPACE/POD/CONTAINER#ATTEMPT`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.container, self.attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(namespace: &str, pod: &str, container: &str) -> Result<ContainerId, BadName> {
        ContainerId::new(namespace, pod, PodUid::new("u-1").unwrap(), container)
    }

    #[test]
    fn names_that_climb_or_hide_are_refused() {
        assert!(id("default", "web-0.example", "app").is_ok());
        for bad in [
            "", ".", "..", "a/b", "A", "a_b", "-a", "a-", "a\n", "a\0", "é",
        ] {
            assert!(id(bad, "p", "c").is_err(), "namespace {bad:?}");
            assert!(id("n", bad, "c").is_err(), "pod {bad:?}");
            assert!(id("n", "p", bad).is_err(), "container {bad:?}");
        }
        assert!(id("n", "a..b", "c").is_err());
        assert!(id("n", "p", "a.b").is_err());
        assert!(id(&"n".repeat(64), "p", "c").is_err());
    }

    #[test]
    fn the_longest_names_fit_into_a_file_name() {
        let pod = vec!["p".repeat(63); 4].join(".").split_off(2);
        assert_eq!(pod.len(), 253);
        let uid = PodUid::new(&"u".repeat(64)).unwrap();
        let id = ContainerId::new(&"n".repeat(63), &pod, uid, "c").unwrap();
        let [dir] = <[String; 1]>::try_from(id.pod_log_path()).unwrap();
        assert_eq!(dir.len(), NAME_MAX);
        assert!(dir.ends_with(&"u".repeat(64)));
        let short = self::id("n", "p", "c").unwrap();
        assert_eq!(short.log_path(), ["n_p_u-1", "c"]);
        assert_eq!(short.scratch_path(), ["pods", "u-1", "c", "scratch"]);
        assert_eq!(short.attempt(3).path(), ["pods", "u-1", "c", "3"]);
        assert_eq!(short.attempt(3).to_string(), "n/p/c#3");
    }
}
