//! As whom a container runs, and what of a process of root it may not do (`securityContext`).
//!
//! Plain data: what the manifest says of pod and container, put together. What cannot be honoured is not
//! in here; it is refused where a manifest is read.

use serde::{Deserialize, Serialize};

/// What becomes of a container's program between its birth and its first instruction. Without any of it
/// it is a process of root like any other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Security {
    /// `runAsUser`
    pub user: Option<u32>,
    /// `runAsGroup`
    pub group: Option<u32>,
    /// `supplementalGroups`, and `fsGroup` of the pod.
    pub groups: Vec<u32>,
    /// `runAsNonRoot`
    pub must_not_be_root: bool,
    /// The capabilities that neither it nor its children can have, a bit each.
    pub dropped: u64,
    /// The capabilities that it asks for, a bit each.
    pub added: u64,
    /// `allowPrivilegeEscalation: false`: no program that it starts gains anything by its file.
    pub no_new_privileges: bool,
    /// `readOnlyRootFilesystem`: it writes to its own directories and volumes alone.
    pub has_read_only_root: bool,
    /// How it was said: for those who judge it, not for those who do it.
    #[serde(skip)]
    pub said: Said,
}

/// How something was said that comes to the same for the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The user is that of the pod, not the container's own.
    pub user_by_pod: bool,
    /// `allowPrivilegeEscalation: true`, which is Kubernetes' default too.
    pub wants_to_gain: bool,
}

/// The greatest user or group (Kubernetes').
pub const MAX_ID: u32 = 2_147_483_647;

/// What holds on a node where no container may be root (`allowRootContainers: false`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NonRoot {
    /// As whom a container runs that names no user (`defaultRunAsUser`); not 0.
    pub user: u32,
    /// Its group, if it names none either (`defaultRunAsGroup`); not 0.
    pub group: u32,
    /// The capabilities that containers may ask for, a bit each (`allowedCapabilities`).
    pub allowed: u64,
}

impl Security {
    /// Whether it must see the pod's own files in the state directory and nothing else there: as root
    /// it may look anyway, and as another user it could not even get to its own.
    pub fn is_secluded(&self) -> bool {
        self.has_read_only_root || !self.is_root()
    }

    /// Whether its program begins as root.
    pub fn is_root(&self) -> bool {
        self.user.is_none_or(|user| user == 0)
    }

    /// The capabilities that its program begins with, a bit each: root has all that are not dropped, another user
    /// those alone that it asked for.
    pub fn capabilities(&self) -> u64 {
        let granted = if self.is_root() { u64::MAX } else { self.added };
        granted & !self.dropped & known()
    }
}

/// The kernel's capabilities by number (capabilities(7), Linux 5.9), without `CAP_`.
pub const CAPABILITIES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What a pod may ask for: the list of the Pod Security Standards, level "baseline".
pub const ADDABLE: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The bit of a capability, named with or without `CAP_`; of `ALL` every bit. `None` for what is none.
pub fn capability(name: &str) -> Option<u64> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("CAP_").unwrap_or(&name);
    if name == "ALL" {
        return Some(u64::MAX);
    }
    let number = CAPABILITIES.iter().position(|known| *known == name)?;
    1_u64.checked_shl(u32::try_from(number).ok()?)
}

/// Those of these names, a bit each; what is no name of one has none.
pub fn bits<'a>(names: impl IntoIterator<Item = &'a str>) -> u64 {
    let bits = names.into_iter().filter_map(capability);
    bits.fold(0, |all, bit| all | bit)
}

/// Those that a pod may ask for, a bit each.
pub fn addable() -> u64 {
    bits(ADDABLE.iter().copied())
}

/// All of them, a bit each.
fn known() -> u64 {
    bits(CAPABILITIES.iter().copied())
}

/// The names of those whose bits are set.
pub fn names(bits: u64) -> Vec<&'static str> {
    let all = CAPABILITIES.iter().copied();
    all.filter(|name| capability(name).is_some_and(|bit| bits & bit != 0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_the_kernels_numbers() {
        for (name, bit) in [
            ("CHOWN", Some(1)),
            ("CAP_NET_BIND_SERVICE", Some(1 << 10)),
            ("sys_admin", Some(1 << 21)),
            ("SYS_RESOURCE", Some(1 << 24)),
            ("AUDIT_WRITE", Some(1 << 29)),
            ("CHECKPOINT_RESTORE", Some(1 << 40)),
            ("ALL", Some(u64::MAX)),
            ("EVERYTHING", None),
            ("", None),
        ] {
            assert_eq!(capability(name), bit, "{name}");
        }
        assert_eq!(names(1 | 1 << 13), ["CHOWN", "NET_RAW"]);
        assert!(ADDABLE.iter().all(|name| capability(name).is_some()));
        assert_eq!(known(), (1 << 41) - 1);
    }

    #[test]
    fn a_program_begins_with_what_is_left_to_root_or_was_asked_for() {
        let chown = 1;
        for (user, dropped, added, expected) in [
            (None, 0, 0, known()),
            (Some(0), !chown, chown, chown),
            (Some(0), chown, 0, known() & !chown),
            (Some(5), 0, 0, 0),
            (Some(5), 0, chown, chown),
            (Some(5), !chown, chown, chown),
            (Some(5), chown, chown, 0),
            (Some(5), 0, u64::MAX, known()),
        ] {
            let security = Security {
                user,
                dropped,
                added,
                ..Security::default()
            };
            assert_eq!(security.capabilities(), expected, "{security:?}");
        }
    }
}
