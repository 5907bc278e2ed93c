//! Who is at the other end of the socket, and what they may do (design D14).
//!
//! The kernel says who it is (`SO_PEERCRED`); the socket's own mode lets in only root and the group.
//! Reading is for everybody who got that far, but for secrets; changing for root and the admin group.

use axum::extract::{ConnectInfo, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::net::UnixStream;

use super::status::Failure;
use crate::agent::Refusal;

/// The process that connected.
#[derive(Clone, Debug)]
pub struct Peer {
    uid: Option<u32>,
    gid: Option<u32>,
    pid: Option<i32>,
}

impl Peer {
    #[cfg(test)]
    pub(super) fn new(uid: u32, gid: u32, pid: Option<i32>) -> Self {
        Self {
            uid: Some(uid),
            gid: Some(gid),
            pid,
        }
    }

    /// The process at the other end.
    pub(super) fn of(stream: &UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        Self {
            uid: credentials.as_ref().map(tokio::net::unix::UCred::uid),
            gid: credentials.as_ref().map(tokio::net::unix::UCred::gid),
            pid: credentials.and_then(|credentials| credentials.pid()),
        }
    }
}

/// Who may change things besides root.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access {
    /// Members of this group may.
    pub admin_gid: Option<u32>,
}

impl Access {
    fn may_change(self, peer: &Peer) -> bool {
        peer.uid == Some(0)
            || self
                .admin_gid
                .is_some_and(|admin| peer.gid == Some(admin) || peer.has_group(admin))
    }
}

impl Peer {
    /// Supplementary groups are not among the socket's credentials; `/proc/PID/status` has them. The
    /// process is still connected, so its id has not been given to another, unless it handed the
    /// socket on: then it answers for that.
    fn has_group(&self, gid: u32) -> bool {
        let Some(pid) = self.pid else { return false };
        procfs::process::Process::new(pid)
            .and_then(|process| process.status())
            .is_ok_and(|status| Some(status.euid) == self.uid && status.groups.contains(&gid))
    }
}

/// Lets a request through or refuses it.
pub(super) async fn authorize(
    State(access): State<Access>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = Caller { access, peer };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && let Err(refusal) = caller.check_trusted(request.method(), request.uri().path()) {
        return Failure(refusal).into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Who asks, as those know it who let them in.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    access: Access,
    peer: Peer,
}

impl Caller {
    /// Changes, and the reading of secrets, are for those who may change things.
    ///
    /// # Errors
    /// This one may not.
    pub fn check_trusted(&self, method: &Method, path: &str) -> Result<(), Refusal> {
        if self.access.may_change(&self.peer) {
            return Ok(());
        }
        let uid = self.peer.uid;
        let uid = uid.map_or_else(|| "unknown".to_owned(), |uid| uid.to_string());
        let who = match self.access.admin_gid {
            Some(gid) => format!("root and members of group {gid} (adminGroup) may"),
            None => "only root may: the configuration names no adminGroup".to_owned(),
        };
        let message = format!("user {uid} may read but not {method} {path}: {who}");
        Err(Refusal::new(403, "Forbidden", message))
    }
}
