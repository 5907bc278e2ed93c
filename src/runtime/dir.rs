//! Directories below a base, made and opened one name at a time so that no symlink is followed.
//!
//! The base itself is the administrator's and may be a symlink. Names come from [`super::name`].

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Dir, Mode, OFlags, fsync, mkdirat, openat};
use rustix::io::Errno;

/// How every directory is opened.
pub(super) const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// The mode of a directory that only root and the service's group read.
pub(super) const GROUP_READS: Mode = Mode::from_raw_mode(0o750);
/// The mode of a container's own directory.
pub(super) const OWNER_ONLY: Mode = Mode::from_raw_mode(0o700);

/// Opens `base`/`names`, making what is missing: the last directory with `mode`, those above it
/// with 0750. What it makes is durable.
pub(super) fn make(base: &Path, names: &[String], mode: Mode) -> io::Result<OwnedFd> {
    std::fs::create_dir_all(base)?;
    let mut dir = open_base(base)?;
    for (index, name) in names.iter().enumerate() {
        let last = index + 1 == names.len();
        match mkdirat(&dir, name.as_str(), if last { mode } else { GROUP_READS }) {
            Ok(()) => fsync(&dir)?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        dir = openat(&dir, name.as_str(), DIRECTORY, Mode::empty())?;
    }
    Ok(dir)
}

/// Opens `base`/`names`; `None` where one of them is missing.
pub(super) fn open(base: &Path, names: &[String]) -> io::Result<Option<OwnedFd>> {
    let mut dir = match open_base(base) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        dir => dir?,
    };
    for name in names {
        dir = match openat(&dir, name.as_str(), DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            dir => dir?,
        };
    }
    Ok(Some(dir))
}

/// The names in a directory, `.` and `..` left out. Names that are not UTF-8 are none of ours.
pub(super) fn names(dir: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        if let Ok(name) = entry?.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn open_base(base: &Path) -> io::Result<OwnedFd> {
    let flags = DIRECTORY.difference(OFlags::NOFOLLOW);
    Ok(openat(CWD, base, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('/').map(str::to_owned).collect()
    }

    #[test]
    fn no_symlink_is_followed_below_the_base() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), base.path().join("pods")).unwrap();
        assert!(make(base.path(), &path("pods/u"), GROUP_READS).is_err());
        assert!(open(base.path(), &path("pods")).is_err());
        assert_eq!(outside.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn directories_are_made_once_with_their_modes() {
        let base = tempfile::tempdir().unwrap();
        assert!(open(base.path(), &path("a/b")).unwrap().is_none());
        for _ in 0..2 {
            let made = make(base.path(), &path("a/b"), OWNER_ONLY).unwrap();
            assert!(names(&made).unwrap().is_empty());
        }
        let mode = |path: &str| {
            let metadata = base.path().join(path).metadata().unwrap();
            metadata.permissions().mode() & 0o7777
        };
        assert_eq!((mode("a") & 0o750, mode("a/b")), (mode("a"), 0o700));
        let top = open(base.path(), &[]).unwrap().unwrap();
        assert_eq!(names(&top).unwrap(), ["a"]);
    }
}
