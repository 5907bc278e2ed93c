//! The client that Rust's controllers are made with, kube, against the same API: what kubectl is told is
//! no accident of kubectl.

use std::path::PathBuf;
use std::pin::pin;

use futures_util::TryStreamExt;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ResourceQuota};
use kube::api::{
    DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent,
    WatchParams,
};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind, Status};
use kube::{Api, Client, Error};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::server::{self, Server};

/// A client on the socket: one connection for each request.
fn client(server: &Server) -> Client {
    let socket = server.socket().to_owned();
    let service = tower::service_fn(move |request| send(socket.clone(), request));
    Client::new(service, "default")
}

async fn send(
    socket: PathBuf,
    mut request: hyper::Request<Body>,
) -> Result<hyper::Response<hyper::body::Incoming>, Box<dyn std::error::Error + Send + Sync>> {
    let stream = tokio::net::UnixStream::connect(socket).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let host = hyper::header::HeaderValue::from_static("allotd");
    request.headers_mut().insert(hyper::header::HOST, host);
    Ok(sender.send_request(request).await?)
}

fn run(test: impl AsyncFnOnce(&Client, &Server)) {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { test(&client(&server), &server).await });
}

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// What a request was refused with.
fn refused<T: std::fmt::Debug>(answer: kube::Result<T>) -> Status {
    match answer.unwrap_err() {
        Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}

fn config_map(name: &str, labels: &Value) -> ConfigMap {
    of(json!({"metadata": {"name": name, "labels": labels}}))
}

#[test]
fn a_quota_is_obeyed_and_its_figures_are_told() {
    run(async |client, _| {
        let (quotas, pods): (Api<ResourceQuota>, Api<Pod>) = (
            Api::default_namespaced(client.clone()),
            Api::default_namespaced(client.clone()),
        );
        let post = PostParams::default();
        let quota = of(json!({"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}}));
        let kept = quotas.create(&post, &quota).await.unwrap();
        assert_eq!(kept.status.unwrap().used.unwrap()["requests.cpu"].0, "0");
        pods.create(&post, &of(server::pod("one", "600m")))
            .await
            .unwrap();
        let status = refused(pods.create(&post, &of(server::pod("two", "600m"))).await);
        assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
        assert!(
            status.message.starts_with(
                "pods \"two\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
            ),
            "{}",
            status.message
        );
        let details = status.details.unwrap();
        assert_eq!(
            (details.name.as_str(), details.kind.as_str()),
            ("two", "pods")
        );
        assert_eq!(details.causes[0].reason, "ExceededQuota");
        let used = quotas.get("q").await.unwrap().status.unwrap().used.unwrap();
        assert_eq!(used["requests.cpu"].0, "600m");
        // Only tried.
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        pods.create(&dry, &of(server::pod("small", "100m")))
            .await
            .unwrap();
        assert_eq!(refused(pods.get("small").await).code, 404);
        let nodes: Api<Node> = Api::all(client.clone());
        let node = nodes
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .remove(0);
        assert_eq!(node.status.unwrap().capacity.unwrap()["cpu"].0, "4");
    });
}

#[test]
fn objects_are_listed_in_pieces_replaced_and_patched() {
    run(async |client, _| {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
        let post = PostParams::default();
        for n in 0..5 {
            let labels = json!({"half": if n < 3 { "first" } else { "second" }});
            maps.create(&post, &config_map(&format!("m{n}"), &labels))
                .await
                .unwrap();
        }
        let labelled = ListParams::default().labels("half=first");
        assert_eq!(maps.list(&labelled).await.unwrap().items.len(), 3);
        let mut names = Vec::new();
        let mut piece = ListParams::default().limit(2);
        loop {
            let list = maps.list(&piece).await.unwrap();
            names.extend(list.items.into_iter().map(|map| map.metadata.name.unwrap()));
            match list.metadata.continue_.filter(|next| !next.is_empty()) {
                Some(next) => piece = piece.continue_token(&next),
                None => break,
            }
        }
        assert_eq!(names, ["m0", "m1", "m2", "m3", "m4"]);
        let status = refused(maps.create(&post, &config_map("m0", &json!({}))).await);
        assert_eq!(
            (status.code, status.reason.as_str()),
            (409, "AlreadyExists")
        );

        let old = maps.get("m0").await.unwrap();
        let how = PatchParams::default();
        let merge = Patch::Merge(json!({"data": {"a": "1"}}));
        maps.patch("m0", &how, &merge).await.unwrap();
        let strategic = Patch::Strategic(json!({"metadata": {"labels": {"half": null}}}));
        maps.patch("m0", &how, &strategic).await.unwrap();
        let patch = of(json!([{"op": "add", "path": "/data/b", "value": "2"}]));
        let new = maps
            .patch("m0", &how, &Patch::<ConfigMap>::Json(patch))
            .await
            .unwrap();
        assert_eq!(json!(new.data), json!({"a": "1", "b": "2"}));
        assert_eq!(new.metadata.labels.unwrap_or_default().len(), 0);
        let status = refused(maps.replace("m0", &post, &old).await);
        assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let shop = namespaces.get("shop").await.unwrap();
        assert_eq!(shop.status.unwrap().phase.as_deref(), Some("Active"));
        namespaces
            .delete("shop", &DeleteParams::default())
            .await
            .unwrap();
        assert_eq!(refused(maps.get("m0").await).code, 404);
    });
}

#[test]
fn a_watch_tells_every_change_once() {
    run(async |client, _| {
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let post = PostParams::default();
        maps.create(&post, &config_map("before", &json!({})))
            .await
            .unwrap();
        let from = maps.list(&ListParams::default()).await.unwrap().metadata;
        let from = from.resource_version.unwrap();
        let watch = maps
            .watch(&WatchParams::default().timeout(60), &from)
            .await
            .unwrap();
        let mut watch = pin!(watch);
        maps.create(&post, &config_map("a", &json!({})))
            .await
            .unwrap();
        let merge = Patch::Merge(json!({"data": {"k": "v"}}));
        maps.patch("a", &PatchParams::default(), &merge)
            .await
            .unwrap();
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        let mut told = Vec::new();
        while told.len() < 3 {
            let event = watch.try_next().await.unwrap().unwrap();
            let (what, map) = match event {
                WatchEvent::Added(map) => ("added", map),
                WatchEvent::Modified(map) => ("modified", map),
                WatchEvent::Deleted(map) => ("deleted", map),
                other => panic!("{other:?}"),
            };
            told.push((what, map.metadata.name.unwrap(), map.data.is_some()));
        }
        let a = || "a".to_owned();
        assert_eq!(
            told,
            [
                ("added", a(), false),
                ("modified", a(), true),
                ("deleted", a(), true)
            ]
        );
    });
}

#[test]
fn kinds_of_other_groups_are_reached_too() {
    run(async |client, _| {
        let kind = GroupVersionKind::gvk("quota.openshift.io", "v1", "ClusterResourceQuota");
        let resource = ApiResource::from_gvk_with_plural(&kind, "clusterresourcequotas");
        let quotas: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let quota = of(json!({
            "apiVersion": "quota.openshift.io/v1", "kind": "ClusterResourceQuota",
            "metadata": {"name": "all"},
            "spec": {"selector": {"labels": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}},
                "quota": {"hard": {"configmaps": "1"}}},
        }));
        let post = PostParams::default();
        quotas.create(&post, &quota).await.unwrap();
        let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
        maps.create(&post, &config_map("one", &json!({})))
            .await
            .unwrap();
        let status = refused(maps.create(&post, &config_map("two", &json!({}))).await);
        assert!(
            status.message.contains("exceeded quota: all"),
            "{}",
            status.message
        );
        let kept = quotas.get("all").await.unwrap();
        assert_eq!(
            kept.data["status"]["total"]["used"],
            json!({"configmaps": "1"})
        );
    });
}
