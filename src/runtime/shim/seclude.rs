//! The host's files to a container that is not to write to them, or is not root: all is to be read, and
//! of the state directory it sees what is its own.
//!
//! All of it is done in the shim's own mount namespace; it must never change a mount of the host.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};

use crate::runtime::space::by_number;

/// The kernel's own, where to write is no matter of files.
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A mount of the host.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostMount {
    /// Where it is.
    pub path: PathBuf,
    flags: MountFlags,
}

/// All mounts that can be written to, but for those of the kernel's own files.
pub(super) fn mounts() -> Result<Vec<HostMount>, String> {
    let text = fs::read("/proc/self/mountinfo")
        .map_err(|error| format!("cannot read /proc/self/mountinfo: {error}"))?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

/// `36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 …`; see proc_pid_mountinfo(5).
fn parse(line: &[u8]) -> Option<HostMount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let path = PathBuf::from(unescaped(fields.next()?));
    let options = std::str::from_utf8(fields.next()?).ok()?;
    let mut flags = MountFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "ro" => return None,
            "nosuid" => MountFlags::NOSUID,
            "nodev" => MountFlags::NODEV,
            "noexec" => MountFlags::NOEXEC,
            "noatime" => MountFlags::NOATIME,
            "nodiratime" => MountFlags::NODIRATIME,
            "relatime" => MountFlags::RELATIME,
            _ => MountFlags::empty(),
        };
    }
    let is_kernels = KERNELS.iter().any(|own| path.starts_with(own));
    (!is_kernels).then_some(HostMount { path, flags })
}

/// The kernel writes a space, a tab, a newline and a backslash as `\` and three octal digits.
fn unescaped(text: &[u8]) -> OsString {
    let (mut plain, mut rest) = (Vec::new(), text);
    while let Some((first, others)) = rest.split_first() {
        let digits = others
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = byte.filter(|_| *first == b'\\') {
            plain.push(byte);
            rest = others.get(3..).unwrap_or_default();
        } else {
            plain.push(*first);
            rest = others;
        }
    }
    OsString::from_vec(plain)
}

/// Lets nobody in this namespace write to a mount. One that lies under another is out of reach anyway.
pub(super) fn protect(host: &HostMount) -> Result<(), String> {
    let flags = host.flags | MountFlags::BIND | MountFlags::RDONLY;
    match mount_remount(&host.path, flags, "") {
        Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(errno) => Err(format!(
            "cannot make {} read-only: {errno}",
            host.path.display()
        )),
    }
}

/// Puts an empty directory in place of `state` that holds `own`, paths below it that are open, and nothing
/// else. Others may pass through to them.
pub(super) fn hide(state: &Path, own: &[(&Path, OwnedFd)]) -> Result<(), String> {
    let failed = |what: &str, path: &Path, error: &dyn std::fmt::Display| {
        format!("cannot {what} {}: {error}", path.display())
    };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", state, "tmpfs", flags, c"mode=0755,size=1m")
        .map_err(|errno| failed("hide", state, &errno))?;
    for (path, open) in own {
        let below = path
            .strip_prefix(state)
            .map_err(|error| failed("show", path, &error))?;
        let mut place = state.to_owned();
        for part in below.components() {
            place.push(part);
            if !place.exists() {
                fs::create_dir(&place)
                    .and_then(|()| fs::set_permissions(&place, fs::Permissions::from_mode(0o755)))
                    .map_err(|error| failed("make", &place, &error))?;
            }
        }
        mount_bind(by_number(open), &place).map_err(|errno| failed("show", path, &errno))?;
    }
    mount_remount(state, flags | MountFlags::BIND | MountFlags::RDONLY, "")
        .map_err(|errno| failed("make read-only", state, &errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_flags() {
        for (line, expected) in [
            (
                "36 35 98:0 /mnt1 /mnt\\0402\\134a rw,nosuid,noatime master:1 - ext3 /dev/root rw",
                Some(("/mnt 2\\a", MountFlags::NOSUID | MountFlags::NOATIME)),
            ),
            (
                "1 2 0:1 / / rw - ext4 /dev/root rw",
                Some(("/", MountFlags::empty())),
            ),
            ("1 2 0:1 / /ro ro,nodev - ext4 /dev/root rw", None),
            ("1 2 0:1 / /dev/shm rw,nodev - tmpfs tmpfs rw", None),
            (
                "1 2 0:1 / /device rw - tmpfs tmpfs rw",
                Some(("/device", MountFlags::empty())),
            ),
            ("", None),
        ] {
            let expected = expected.map(|(path, flags)| HostMount {
                path: path.into(),
                flags,
            });
            assert_eq!(parse(line.as_bytes()), expected, "{line}");
        }
    }
}
