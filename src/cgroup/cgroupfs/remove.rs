//! Removing a cgroup with everything below it.
//!
//! What lies below a container is the container's own: any depth, any name. So there is no
//! recursion and only one directory is held open at a time. A cgroup that cannot be removed does
//! not stop the removal of the others. It never moves or kills a process.

use std::ffi::{CStr, CString};

use rustix::io::Errno;

use super::dir::Dir;

/// Removes the child `name` of `parent` with all below it, leaves first; what is gone is no error.
///
/// # Errors
/// The first refusal, after everything that can go is gone: EBUSY while a process is in a cgroup.
pub(super) fn remove(parent: &Dir, name: &CStr) -> Result<(), Errno> {
    let mut refused = Ok(());
    let mut here = parent.below("")?;
    // For each level the names that are still to be removed; the last of a level is in work.
    let mut levels: Vec<Vec<CString>> = vec![vec![name.to_owned()]];
    while let Some(names) = levels.last_mut() {
        let Some(name) = names.last() else {
            // The level is empty: up, and finish the cgroup that we came down through.
            levels.pop();
            let Some(names) = levels.last_mut() else {
                break;
            };
            here = here.above()?;
            if let Some(emptied) = names.pop() {
                refused = refused.and(gone(here.remove(&emptied)));
            }
            continue;
        };
        match gone(here.remove(name)) {
            Ok(()) => {
                names.pop();
            }
            Err(Errno::BUSY) => match descend(&here, name)? {
                Some((child, below)) => {
                    here = child;
                    levels.push(below);
                }
                // No children, so it is held by a process, or it went away just now.
                None => {
                    if let Some(leaf) = names.pop() {
                        refused = refused.and(gone(here.remove(&leaf)));
                    }
                }
            },
            Err(errno) => {
                names.pop();
                refused = refused.and(Err(errno));
            }
        }
    }
    refused
}

/// The child and the names of its children; `None` if it has none or is gone.
fn descend(here: &Dir, name: &CStr) -> Result<Option<(Dir, Vec<CString>)>, Errno> {
    let opened = here.child(name).and_then(|child| {
        let below = child.children()?;
        Ok((child, below))
    });
    match opened {
        Ok((_, below)) if below.is_empty() => Ok(None),
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NODEV) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn gone(answer: Result<(), Errno>) -> Result<(), Errno> {
    match answer {
        Err(Errno::NOENT | Errno::NODEV) => Ok(()),
        other => other,
    }
}
