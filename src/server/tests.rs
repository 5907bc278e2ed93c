//! Who may do what, whoever runs the tests.

use std::sync::Arc;
use std::sync::mpsc::channel;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use super::peer::Peer;
use super::{Access, Bounds, Shared, router};
use crate::agent::Handle;

const POD: &str = "/api/v1/namespaces/default/pods/web";

/// What somebody is answered. The owner is gone: whoever is let through finds nothing (404) or nobody
/// to change it (503).
fn answer(access: Access, peer: Peer, method: &str, path: &str) -> (StatusCode, String) {
    let shared = Shared {
        handle: Handle::new(channel().0),
        followers: Arc::new(Semaphore::new(1)),
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .extension(ConnectInfo(peer))
        .body(Body::empty())
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let app = router(shared, access, Bounds::default());
        let response = app.oneshot(request).await.unwrap();
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 4096).await;
        (status, String::from_utf8(body.unwrap().to_vec()).unwrap())
    })
}

#[test]
fn reading_is_for_all_and_changing_for_root_and_the_admin_group() {
    let admin = |gid| Access {
        admin_gid: Some(gid),
    };
    let here = i32::try_from(std::process::id()).unwrap();
    let (uid, group) = (nix::unistd::geteuid().as_raw(), 4_000_000_001);
    for (access, peer, may) in [
        (Access::default(), Peer::new(0, 0, None), true),
        (Access::default(), Peer::new(1000, 1000, None), false),
        (admin(50), Peer::new(1000, 50, None), true),
        (admin(50), Peer::new(1000, 1000, None), false),
        // Process 1 has the uid 0: what it may is not what the peer may.
        (admin(0), Peer::new(1000, 1000, Some(1)), false),
        (
            admin(group),
            Peer::new(uid.max(1), group - 1, Some(here)),
            false,
        ),
    ] {
        let (status, _) = answer(access, peer.clone(), "GET", POD);
        assert_eq!(status, StatusCode::NOT_FOUND, "{peer:?} reads");
        for secret in [
            "/api/v1/secrets",
            "/api/v1/namespaces/default/secrets",
            "/api/v1/namespaces/default/secrets/s",
            "/api/v1/namespaces/default/secrets/s/status",
            "/api/v1/namespaces/default/%73ecrets/s",
        ] {
            let (status, text) = answer(access, peer.clone(), "GET", secret);
            assert_eq!(status != StatusCode::FORBIDDEN, may, "{secret}: {text}");
        }
        for method in ["DELETE", "POST", "PUT", "PATCH", "BREW"] {
            let (status, text) = answer(access, peer.clone(), method, POD);
            assert_eq!(
                status != StatusCode::FORBIDDEN,
                may,
                "{peer:?} {method}: {text}"
            );
            if !may {
                assert!(text.contains("\"reason\":\"Forbidden\""), "{text}");
                assert!(text.contains("adminGroup"), "{text}");
            }
        }
    }
}
