//! What a program loses before it begins: capabilities, the gain of others, its being root. And what it needs to be
//! somebody else: its directory, its output, room for its tasks.
//!
//! It reads `/etc/passwd` itself: the static build must not ask NSS.

use std::io;

use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, fchown, openat};
use rustix::io::Errno;
use rustix::process::{Gid, Resource, Rlimit, Uid, setrlimit};
use rustix::thread::{
    CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set,
    set_no_new_privs,
};

use crate::model::security::Security;
use crate::runtime::dir::DIRECTORY;
use crate::runtime::record::Spec;
use crate::sys::exec::Credentials;

/// The group of users that the host does not know: that of nobody.
const NO_GROUP: u32 = 65534;

/// Takes from the shim's children what they shall not have; the shim keeps what it has itself.
pub(super) fn limit(security: &Security) -> Result<(), String> {
    for capability in CapabilitySet::from_bits_retain(security.dropped).iter() {
        // The kernel may know fewer.
        if capability_is_in_bounding_set(capability) != Ok(true) {
            continue;
        }
        remove_capability_from_bounding_set(capability)
            .map_err(|errno| format!("cannot drop {capability:?}: {errno}"))?;
    }
    if security.no_new_privileges {
        set_no_new_privs(true).map_err(|errno| format!("cannot set no_new_privs: {errno}"))?;
    }
    Ok(())
}

/// As whom the program runs; `None`: as the shim.
pub(super) fn credentials(security: &Security) -> Result<Option<Credentials>, String> {
    let Security {
        user,
        group,
        groups,
        ..
    } = security;
    if user.is_none() && group.is_none() && groups.is_empty() {
        return Ok(None);
    }
    let user = user.unwrap_or(0);
    let group = match group {
        Some(group) => *group,
        None if user == 0 => 0,
        // Root's is nobody's by default, whatever the list says of a user.
        None => known_group(user)?
            .filter(|group| *group != 0)
            .unwrap_or(NO_GROUP),
    };
    Ok(Some(Credentials {
        user,
        group,
        groups: groups.clone(),
        capabilities: security.capabilities(),
    }))
}

/// Gives the pipes of its output to the user, who could not open `/dev/stdout` otherwise, and lets it have as many
/// tasks as its cgroup: the kernel would count all that a user runs on the machine, so pods of one user would take
/// them from each other.
pub(super) fn make_room(credentials: &Credentials, output: &[&OwnedFd]) -> Result<(), String> {
    let (user, group) = owner(credentials);
    for pipe in output {
        fchown(pipe, Some(user), Some(group)).map_err(|errno| {
            format!(
                "cannot give its output to user {}: {errno}",
                credentials.user
            )
        })?;
    }
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    match setrlimit(Resource::Nproc, unlimited) {
        // Whoever may not lift it lives with it.
        Ok(()) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(format!("cannot lift the limit of a user's tasks: {errno}")),
    }
}

fn owner(credentials: &Credentials) -> (Uid, Gid) {
    let Credentials { user, group, .. } = credentials;
    (Uid::from_raw(*user), Gid::from_raw(*group))
}

/// Gives the scratch directory to the user, who could not write to it otherwise.
pub(super) fn give_scratch(spec: &Spec, credentials: &Credentials) -> Result<(), String> {
    let Some(path) = &spec.scratch else {
        return Ok(());
    };
    let shown = path.display();
    let scratch = openat(CWD, path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
        .map_err(|errno| format!("cannot open {shown}: {errno}"))?;
    let (user, group) = owner(credentials);
    fchown(&scratch, Some(user), Some(group))
        .map_err(|errno| format!("cannot give {shown} to user {}: {errno}", credentials.user))
}

/// The group of a user in the host's list of them.
fn known_group(user: u32) -> Result<Option<u32>, String> {
    match std::fs::read_to_string("/etc/passwd") {
        Ok(text) => Ok(group_in(&text, user)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read /etc/passwd: {error}")),
    }
}

/// `name:password:user:group:…`
fn group_in(passwd: &str, user: u32) -> Option<u32> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let is_it = fields.next()?.parse() == Ok(user);
        is_it.then(|| fields.next()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_user_is_that_of_the_list() {
        let list = "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:1000:50::/:\nodd:x:7:x::/:\n";
        for (user, group) in [(0, Some(0)), (1000, Some(50)), (7, None), (1001, None)] {
            assert_eq!(group_in(list, user), group, "{user}");
        }
    }

    #[test]
    fn credentials_follow_from_user_and_groups() {
        let of = |user, group, groups: &[u32]| {
            let security = Security {
                user,
                group,
                groups: groups.to_vec(),
                ..Security::default()
            };
            let made = credentials(&security).unwrap();
            made.map(|made| (made.user, made.group, made.groups))
        };
        assert_eq!(of(None, None, &[]), None);
        assert_eq!(of(None, None, &[5]), Some((0, 0, vec![5])));
        assert_eq!(of(None, Some(7), &[]), Some((0, 7, vec![])));
        assert_eq!(of(Some(1000), Some(7), &[5]), Some((1000, 7, vec![5])));
        // No machine has this user.
        assert_eq!(
            of(Some(2_000_000_001), None, &[]),
            Some((2_000_000_001, NO_GROUP, vec![]))
        );
    }
}
