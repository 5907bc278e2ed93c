//! One part of a pod's files, measured by the best means there is.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::walk::{Usage, deleted_open, usage_beside};
use crate::model::space::{Measured, Place};
use crate::sys::quota::project_use;

/// What a part takes where a file system counts it, which is a call or two; `None` where it has to be walked.
///
/// # Errors
/// A directory that cannot be opened. One that is not there takes nothing.
pub fn counted(place: &Place) -> io::Result<Option<Measured>> {
    match place.project {
        _ if place.in_memory => file_system(place).map(Some),
        Some(project) => of_project(place, project),
        None => Ok(None),
    }
}

/// What a part takes, found by looking at every file, as long as `goes_on` says so. `processes` are those that
/// may hold deleted files of it open.
///
/// # Errors
/// A directory that cannot be opened. One that is not there takes nothing.
pub fn walked(
    place: &Place,
    processes: impl FnOnce() -> Vec<i32>,
    goes_on: &mut dyn FnMut(Usage) -> bool,
) -> io::Result<Measured> {
    let roots: Vec<&Path> = place.directories.iter().map(AsRef::as_ref).collect();
    let others: Vec<&Path> = place.others.iter().map(AsRef::as_ref).collect();
    let named = usage_beside(&roots, &others, goes_on)?;
    let shown: Vec<&Path> = roots
        .into_iter()
        .chain(place.aliases.iter().map(AsRef::as_ref))
        .collect();
    let deleted = deleted_open(&processes(), &shown, &others);
    Ok(Measured {
        bytes: named.bytes.saturating_add(deleted.bytes),
        inodes: named.inodes.saturating_add(deleted.inodes),
        deleted: deleted.bytes,
        exact: false,
        hidden: named.hidden,
        partial: named.partial,
    })
}

/// What the file systems count for the project; `None` where one of them does not count.
fn of_project(place: &Place, project: u32) -> io::Result<Option<Measured>> {
    let mut seen = HashSet::new();
    sum(place, |directory| {
        if !seen.insert(fstat(directory)?.st_dev) {
            return Ok(Some((0, 0)));
        }
        // Quotas may have been turned off since the project was assigned.
        let used = project_use(directory, project).ok();
        Ok(used.map(|used| (used.bytes, used.inodes)))
    })
}

/// The sum of bytes and inodes that the directories of a place have, as far as they are there; `None` as
/// soon as one says so.
fn sum(
    place: &Place,
    mut used: impl FnMut(&OwnedFd) -> io::Result<Option<(u64, u64)>>,
) -> io::Result<Option<Measured>> {
    let mut sum = Measured {
        exact: true,
        ..Measured::default()
    };
    for path in &place.directories {
        let Some(directory) = open(path)? else {
            continue;
        };
        let Some((bytes, inodes)) = used(&directory)? else {
            return Ok(None);
        };
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.inodes = sum.inodes.saturating_add(inodes);
    }
    Ok(Some(sum))
}

/// A file system of its own is used as a whole.
fn file_system(place: &Place) -> io::Result<Measured> {
    let found = sum(place, |directory| {
        // Before its first container starts there is only the directory.
        let above = statat(directory, "..", AtFlags::SYMLINK_NOFOLLOW)?;
        if fstat(directory)?.st_dev == above.st_dev {
            return Ok(Some((0, 0)));
        }
        let whole = rustix::fs::fstatvfs(directory)?;
        let blocks = whole.f_blocks.saturating_sub(whole.f_bfree);
        let bytes = blocks.saturating_mul(whole.f_frsize);
        Ok(Some((bytes, whole.f_files.saturating_sub(whole.f_ffree))))
    });
    Ok(found?.unwrap_or_default())
}

fn open(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;
    use crate::model::space::Space;

    /// Reports kubernetes#83107 (deleted but open) and #93032 (a file of a kind that nobody thought of).
    #[test]
    fn every_file_of_a_pod_counts_in_one_part() {
        let temp = tempfile::tempdir().unwrap();
        let pod = temp.path().canonicalize().unwrap();
        let scratch = pod.join("c/scratch");
        fs::create_dir_all(&scratch).unwrap();
        let place = |space, directory: &Path, others: &[&Path]| Place {
            space,
            directories: vec![directory.to_owned()],
            others: others.iter().map(|path| (*path).to_owned()).collect(),
            aliases: Vec::new(),
            in_memory: false,
            project: None,
        };
        let whole = place(Space::Pod, &pod, &[&scratch]);
        let container = place(Space::Container("c".into()), &scratch, &[]);
        let me = || vec![i32::try_from(std::process::id()).unwrap()];
        let measure = |place: &Place| walked(place, me, &mut |_| true).unwrap();
        let write = |path: &Path, bytes: usize| {
            let file = fs::File::create(path).unwrap();
            (&file).write_all(&vec![1; bytes]).unwrap();
            file.sync_all().unwrap();
            file
        };
        let [pod_before, own_before] = [&whole, &container].map(|place| measure(place).bytes);
        drop(write(&pod.join("etc-hosts"), 5 << 20));
        let open = write(&scratch.join("big"), 4 << 20);
        let again = open.try_clone().unwrap();
        fs::remove_file(scratch.join("big")).unwrap();
        let [of_pod, own] = [&whole, &container].map(measure);
        let near = |more: u64, expected: u64| (expected..expected + (1 << 16)).contains(&more);
        assert!(near(of_pod.bytes - pod_before, 5 << 20), "{of_pod:?}");
        assert_eq!(of_pod.deleted, 0);
        assert!(near(own.bytes - own_before, 4 << 20), "{own:?}");
        assert!(
            near(own.deleted, 4 << 20),
            "two descriptors, one file: {own:?}"
        );
        assert!(!own.exact && !own.hidden && !own.partial);
        drop((open, again));
        assert_eq!(measure(&container).bytes, own_before);
    }

    #[test]
    fn what_is_not_there_takes_nothing() {
        let place = |in_memory| Place {
            space: Space::Volume("v".into()),
            directories: vec!["/nowhere/at/all".into()],
            others: Vec::new(),
            aliases: Vec::new(),
            in_memory,
            project: Some(7),
        };
        for in_memory in [true, false] {
            let nothing = counted(&place(in_memory)).unwrap().unwrap();
            assert_eq!((nothing.bytes, nothing.exact), (0, true), "{in_memory}");
        }
        let nothing = walked(&place(false), Vec::new, &mut |_| true).unwrap();
        assert_eq!((nothing.bytes, nothing.partial), (0, false));
    }
}
