//! Walks: the blocks below directories and of files that were deleted but are held open.
//!
//! A container writes in these trees while they are walked, and may replace a directory by a symlink
//! or mount something there: nothing outside is ever read, no mount is entered, and the work is
//! bounded. A walk takes long on a slow disk, so it runs neither in the owner's thread nor in that of
//! anybody who asks (kubernetes#23255); whoever walks decides at each step whether to go on.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, openat, openat2, statat,
};
use rustix::io::Errno;

/// The deepest directory that is entered, below the one asked for.
pub const MAX_DEPTH: usize = 128;
/// The most files and directories that are counted.
pub const MAX_INODES: u64 = 1_000_000;
/// After so many files and directories is asked whether to go on.
pub const STEP: u64 = 512;
/// The size of a block in `st_blocks` (bytes), whatever the file system's own is.
const BLOCK: u64 = 512;

/// Disk that is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Allocated bytes; a hard-linked file counts once, holes do not count.
    pub bytes: u64,
    /// Files, directories and all others.
    pub inodes: u64,
    /// Whether something could not be read or the walk was ended before its time, so that `bytes` is a
    /// lower bound.
    pub partial: bool,
    /// Whether there is more, deeper than [`MAX_DEPTH`] or beyond [`MAX_INODES`]: a lower bound again.
    pub hidden: bool,
}

/// The disk used by the directories `roots` and all below, each file counted once. A root that is not
/// there uses nothing; a root that is a symlink is not followed.
///
/// # Errors
/// A root that cannot be opened.
pub fn usage(roots: &[&Path]) -> io::Result<Usage> {
    usage_beside(roots, &[], &mut |_| true)
}

/// The same without the directories `others` and all below. After each [`STEP`] `goes_on` is given what was
/// found so far; where it says no the walk ends.
///
/// # Errors
/// As [`usage`].
pub fn usage_beside(
    roots: &[&Path],
    others: &[&Path],
    goes_on: &mut dyn FnMut(Usage) -> bool,
) -> io::Result<Usage> {
    let mut walk = Walk {
        usage: Usage::default(),
        linked: HashSet::new(),
        others: HashSet::new(),
        steps: 0,
        goes_on,
    };
    for other in others {
        // One that is not there is in nobody's way.
        if let Ok(stat) = statat(CWD, *other, AtFlags::SYMLINK_NOFOLLOW) {
            walk.others.insert((stat.st_dev, stat.st_ino));
        }
    }
    for root in roots {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(CWD, *root, flags, Mode::empty()) {
            Ok(dir) => walk.tree(dir)?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(walk.usage)
}

struct Walk<'a> {
    usage: Usage,
    /// Device and inode of the files seen that have several names.
    linked: HashSet<(u64, u64)>,
    /// Device and inode of directories that are passed over.
    others: HashSet<(u64, u64)>,
    /// So many entries were looked at, be they counted or not.
    steps: u64,
    goes_on: &'a mut dyn FnMut(Usage) -> bool,
}

impl Walk<'_> {
    fn tree(&mut self, root: OwnedFd) -> io::Result<()> {
        let stat = rustix::fs::fstat(&root)?;
        self.count(&stat);
        let mut open = vec![Dir::new(root)?];
        while let Some(dir) = open.last_mut() {
            let entry = match dir.read() {
                Some(Ok(entry)) => entry,
                failed_or_end => {
                    self.usage.partial |= failed_or_end.is_some();
                    open.pop();
                    continue;
                }
            };
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            if self.usage.inodes >= MAX_INODES {
                self.usage.hidden = true;
                return Ok(());
            }
            self.steps += 1;
            if self.steps.is_multiple_of(STEP) && !(self.goes_on)(self.usage) {
                self.usage.partial = true;
                return Ok(());
            }
            let dir = dir.fd()?;
            let entry_stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // Gone since it was listed.
                Err(Errno::NOENT) => continue,
                Err(_) => {
                    self.usage.partial = true;
                    continue;
                }
            };
            let identity = (entry_stat.st_dev, entry_stat.st_ino);
            if entry_stat.st_dev != stat.st_dev || self.others.contains(&identity) {
                continue;
            }
            let is_dir = FileType::from_raw_mode(entry_stat.st_mode) == FileType::Directory;
            let inner = if is_dir { enter(dir, name) } else { Ok(None) };
            match inner {
                // A mount of the same file system shows files that are counted where they are.
                Err(Errno::XDEV) => continue,
                Ok(None) | Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
                Err(_) => self.usage.partial = true,
                Ok(Some(_)) if open.len() > MAX_DEPTH => self.usage.hidden = true,
                Ok(Some(inner)) => open.push(Dir::new(inner)?),
            }
            self.count(&entry_stat);
        }
        Ok(())
    }

    fn count(&mut self, stat: &rustix::fs::Stat) {
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !is_dir && stat.st_nlink > 1 && !self.linked.insert((stat.st_dev, stat.st_ino)) {
            return;
        }
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        self.usage.bytes = self
            .usage
            .bytes
            .saturating_add(blocks.saturating_mul(BLOCK));
        self.usage.inodes += 1;
    }
}

/// Opens a directory that was just seen, unless it has become something else or is a mount.
fn enter(dir: impl AsFd, name: &std::ffi::CStr) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(dir, name, flags, Mode::empty(), resolve).map(Some)
}

/// The disk held by files below `roots` that have no name any more but are open in one of `pids`;
/// each file counts once, and those below `others` do not. All paths are absolute and hold no symlink, as
/// `/proc` shows paths.
pub fn deleted_open(pids: &[i32], roots: &[&Path], others: &[&Path]) -> Usage {
    let mut usage = Usage::default();
    let mut seen = HashSet::new();
    for pid in pids {
        // A process that has ended holds nothing.
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        for link in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            // The name first: to look at a file itself can wait for a dead network disk.
            let ours = fs::read_link(&link).is_ok_and(|target| {
                target
                    .to_str()
                    .is_some_and(|name| name.ends_with(" (deleted)"))
                    && roots.iter().any(|root| target.starts_with(root))
                    && !others.iter().any(|other| target.starts_with(other))
            });
            if !ours {
                continue;
            }
            if let Ok(file) = fs::metadata(&link)
                && file.nlink() == 0
                && seen.insert((file.dev(), file.ino()))
            {
                usage.bytes = usage
                    .bytes
                    .saturating_add(file.blocks().saturating_mul(BLOCK));
                usage.inodes += 1;
            }
        }
    }
    usage
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn file(path: &Path, bytes: u64) {
        let bytes = usize::try_from(bytes).unwrap();
        let file = fs::File::create(path).unwrap();
        io::Write::write_all(&mut &file, &vec![1; bytes]).unwrap();
        // Delayed allocation would show no blocks yet.
        file.sync_all().unwrap();
    }

    fn used(root: &Path) -> u64 {
        let usage = usage(&[root]).unwrap();
        assert!(!usage.partial && !usage.hidden, "{usage:?}");
        usage.bytes
    }

    #[test]
    fn blocks_count_once_and_holes_do_not() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        assert_eq!(usage(&[&root]).unwrap(), Usage::default());
        fs::create_dir_all(root.join("a/b")).unwrap();
        let empty = used(&root);
        file(&root.join("a/b/file"), MIB);
        assert!((MIB..MIB + 65536).contains(&(used(&root) - empty)));
        let one = used(&root);
        fs::hard_link(root.join("a/b/file"), root.join("again")).unwrap();
        fs::hard_link(root.join("a/b/file"), temp.path().join("outside")).unwrap();
        assert_eq!(used(&root), one);
        // The same file through two roots.
        let both = usage(&[&root.join("a"), &root]).unwrap();
        assert!(both.bytes < one + MIB, "{both:?}");
        let hole = fs::File::create(root.join("hole")).unwrap();
        hole.set_len(1 << 40).unwrap();
        assert!(used(&root) < one + 65536);
    }

    #[test]
    fn symlinks_are_themselves_and_odd_names_are_names() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        fs::create_dir_all(root.join("new\nline")).unwrap();
        file(&temp.path().join("outside"), 4 * MIB);
        symlink("/", root.join("all")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink(temp.path(), root.join("up")).unwrap();
        symlink("../outside", root.join("file")).unwrap();
        file(&root.join("new\nline/file"), MIB);
        let usage = usage(&[&root]).unwrap();
        assert!((MIB..2 * MIB).contains(&usage.bytes), "{usage:?}");
        assert_eq!((usage.inodes, usage.partial), (7, false));
        let link = temp.path().join("link");
        symlink(&root, &link).unwrap();
        assert!(super::usage(&[&link]).is_err());
    }

    #[test]
    fn what_is_too_deep_is_told() {
        let temp = tempfile::tempdir().unwrap();
        let path = |depth| -> PathBuf { (0..depth).map(|_| "d").collect() };
        fs::create_dir_all(temp.path().join(path(MAX_DEPTH))).unwrap();
        file(&temp.path().join(path(MAX_DEPTH)).join("file"), MIB);
        assert!(used(temp.path()) > MIB);
        fs::create_dir_all(temp.path().join(path(MAX_DEPTH + 1))).unwrap();
        assert!(usage(&[temp.path()]).unwrap().hidden);
    }

    /// Report kubernetes#23255: what is found by then is told as less than there is.
    #[test]
    fn a_walk_ends_where_it_is_told_to() {
        let temp = tempfile::tempdir().unwrap();
        for number in 0..3 * STEP {
            fs::File::create(temp.path().join(number.to_string())).unwrap();
        }
        let roots = [temp.path()];
        let mut asked = Vec::new();
        let ended = usage_beside(&roots, &[], &mut |found| {
            asked.push(found.inodes);
            asked.len() < 2
        });
        let ended = ended.unwrap();
        // The root itself counts too, and is no entry of itself.
        assert_eq!(asked, [STEP, 2 * STEP]);
        assert_eq!((ended.inodes, ended.partial), (2 * STEP, true));
        let whole = usage(&roots).unwrap();
        assert_eq!((whole.inodes, whole.partial), (3 * STEP + 1, false));
    }

    /// A directory that becomes a symlink between two looks leads nowhere (kubernetes#104980).
    #[test]
    fn a_directory_swapped_for_a_link_leads_nowhere() {
        let temp = tempfile::tempdir().unwrap();
        let (root, outside) = (temp.path().join("root"), temp.path().join("outside"));
        fs::create_dir_all(&outside).unwrap();
        file(&outside.join("big"), 8 * MIB);
        fs::create_dir_all(root.join("a")).unwrap();
        symlink(&outside, temp.path().join("spare")).unwrap();
        let stop = AtomicBool::new(false);
        let swap = || {
            use rustix::fs::{RenameFlags, renameat_with};
            let (a, b) = (root.join("a"), temp.path().join("spare"));
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(swap);
            let most = (0..2000).map(|_| used(&root)).max();
            stop.store(true, Ordering::Relaxed);
            assert!(most < Some(MIB), "{most:?}");
        });
    }

    #[test]
    fn a_deleted_file_counts_while_it_is_open() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let path = root.join("big");
        file(&path, 4 * MIB);
        let me = i32::try_from(std::process::id()).unwrap();
        let open = [
            fs::File::open(&path).unwrap(),
            fs::File::open(&path).unwrap(),
        ];
        assert_eq!(deleted_open(&[me], &[&root], &[]), Usage::default());
        fs::remove_file(&path).unwrap();
        assert!(used(&root) < MIB);
        // Two descriptors, and the process named twice: one file.
        let held = deleted_open(&[me, me, i32::MAX], &[&root], &[]);
        assert!(held.bytes >= 4 * MIB && held.bytes < 5 * MIB, "{held:?}");
        assert_eq!(held.inodes, 1);
        assert_eq!(
            deleted_open(&[me], &[&root.join("other")], &[]),
            Usage::default()
        );
        drop(open);
        assert_eq!(deleted_open(&[me], &[&root], &[]), Usage::default());
    }
}
