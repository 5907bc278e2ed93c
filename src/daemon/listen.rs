//! The socket of the API: the one that the service manager passed, or one of our own.
//!
//! Decides who may open a socket of our own. It never changes one that was passed: its unit says who may.

use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as Passed;

use anyhow::{Context, bail};
use tokio::net::UnixListener;

use super::{group_id, make_dir};
use crate::config::Config;
use crate::sys::passed::take_passed;

/// A socket that listens.
pub(super) struct Listening {
    /// The socket.
    pub listener: UnixListener,
    /// It was passed: its file is not ours to remove.
    pub is_passed: bool,
}

/// The socket, in the context of a tokio runtime.
pub(super) fn listen(config: &Config) -> anyhow::Result<Listening> {
    let mut passed = take_passed().context("cannot take the sockets that were passed")?;
    let Some(fd) = passed.pop() else {
        return Ok(Listening {
            listener: own(config)?,
            is_passed: false,
        });
    };
    if !passed.is_empty() {
        bail!("{} sockets were passed: one is right", passed.len() + 1);
    }
    let listener = Passed::from(fd);
    let address = listener
        .local_addr()
        .context("what was passed is no Unix socket")?;
    if address.as_pathname() != Some(&config.socket) {
        tracing::warn!(
            "serving on {address:?}, which was passed, and not on {} (socket)",
            config.socket.display()
        );
    }
    listener.set_nonblocking(true)?;
    Ok(Listening {
        listener: UnixListener::from_std(listener).context("cannot use the socket passed")?,
        is_passed: true,
    })
}

/// A new socket that only root and the group can open.
fn own(config: &Config) -> anyhow::Result<UnixListener> {
    let path = &config.socket;
    if let Some(dir) = path.parent() {
        make_dir(dir, 0o755)?;
    }
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                bail!("another allotd serves on {}", path.display());
            }
            std::fs::remove_file(path)
                .with_context(|| format!("cannot replace {}", path.display()))?;
        }
        Ok(_) => bail!("{} exists and is no socket", path.display()),
        Err(_) => {}
    }
    // Nobody else may open it before its group and mode are set.
    let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
    let bound = UnixListener::bind(path);
    nix::sys::stat::umask(before);
    let listener = bound.with_context(|| format!("cannot listen on {}", path.display()))?;
    if let Some(gid) = group_id(&config.socket_group)? {
        std::os::unix::fs::chown(path, None, Some(gid))
            .with_context(|| format!("cannot give {} to its group", path.display()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))
            .with_context(|| format!("cannot set the mode of {}", path.display()))?;
    }
    Ok(listener)
}
