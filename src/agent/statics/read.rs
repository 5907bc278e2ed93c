//! Files of manifests to static pods: name, identity and annotations as the kubelet gives them.
//!
//! Decides what a file holds, on the thread that reads it; never whether that may run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;

use crate::agent::request::PodKey;
use crate::manifest::{self, Object, Strictness, convert};
use crate::model::PodUid;
use crate::observation::manifests::{Content, Seen};

/// What all annotations begin with by which the kubelet marks a pod of its own.
pub(in crate::agent) const CONFIG: &str = "kubernetes.io/config.";
/// So many problems of a file are told.
const SHOWN: usize = 4;

/// What is known of the files, by name; or why nothing is.
pub(in crate::agent) type Files = Result<BTreeMap<String, Reading>, String>;

/// What a file holds.
#[derive(Clone, Debug)]
pub enum Reading {
    /// A pod.
    Pod(Arc<StaticPod>),
    /// Nothing that can be used, and why.
    Broken(String),
    /// It is perhaps being written.
    Unsettled,
}

/// A pod of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticPod {
    /// Its namespace, and its name with the node's.
    pub(in crate::agent) key: PodKey,
    /// The same for the same content on the same node.
    pub(in crate::agent) uid: PodUid,
    /// The object, complete but for what admission adds.
    pub(in crate::agent) object: v1::Pod,
}

/// Reads the files of a directory on the node of this name.
pub(in crate::agent) fn read(dir: &Path, node: &str, seen: Seen) -> Files {
    let files = seen?.into_iter().map(|found| {
        let path = dir.join(&found.name).display().to_string();
        let reading = match found.content {
            Content::Unsettled => Reading::Unsettled,
            Content::Refused(why) => Reading::Broken(format!("{path} {why}")),
            Content::Text(text) => match pod(&path, node, &text) {
                Ok(pod) => Reading::Pod(Arc::new(pod)),
                Err(why) => Reading::Broken(why),
            },
        };
        (found.name, reading)
    });
    Ok(files.collect())
}

/// The one pod of a file.
fn pod(path: &str, node: &str, text: &[u8]) -> Result<StaticPod, String> {
    let mut manifest = manifest::read(path, text, Strictness::Strict);
    if !manifest.problems.is_empty() {
        return Err(few(manifest.problems.iter().map(ToString::to_string)));
    }
    let located = match (manifest.objects.pop(), manifest.objects.len()) {
        (None, _) => return Err(format!("{path} holds no object: a pod is right")),
        (Some(located), 0) => located,
        (_, more) => {
            let count = more.saturating_add(1);
            return Err(format!("{path} holds {count} objects: one pod is right"));
        }
    };
    let Object::Pod(written) = &located.object else {
        let kind = located.object.kind();
        return Err(located
            .problem("kind", format!("is {kind}: a static pod is a Pod"))
            .to_string());
    };
    let pod = complete((**written).clone(), node).map_err(|(field, message)| {
        let problem = located.problem(field, message);
        problem.to_string()
    })?;
    let problems = convert::pod(&pod.object, &pod.uid).problems;
    if !problems.is_empty() {
        let problems = problems.into_iter();
        let place = |remark: convert::Remark| located.problem(&remark.field, remark.message);
        return Err(few(problems.map(|remark| place(remark).to_string())));
    }
    Ok(pod)
}

/// What the kubelet adds to a pod of a file.
fn complete(mut object: v1::Pod, node: &str) -> Result<StaticPod, (&'static str, &'static str)> {
    object.metadata.uid = None;
    object.status = None;
    let text = serde_json::to_vec(&object).map_err(|_| ("", "the pod has no JSON form"))?;
    let digest = digest(&[node.as_bytes(), b"\0", &text]);
    let uid = PodUid::new(&digest).ok_or(("metadata.uid", "no uid can be made"))?;
    let metadata = &mut object.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    if name.is_empty() {
        return Err(("metadata.name", "is missing"));
    }
    let name = format!("{name}-{}", node.to_lowercase());
    let namespace = metadata.namespace.take().filter(|given| !given.is_empty());
    let namespace = namespace.unwrap_or_else(|| "default".to_owned());
    let key = PodKey::new(&namespace, &name);
    metadata.name = Some(name);
    metadata.namespace = Some(namespace);
    metadata.generate_name = None;
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.retain(|name, _| !name.starts_with(CONFIG));
    for (name, value) in [
        ("source", "file"),
        ("hash", &digest),
        ("mirror", &digest),
        ("seen", &Timestamp::now().to_string()),
    ] {
        annotations.insert(format!("{CONFIG}{name}"), value.to_owned());
    }
    if let Some(spec) = object.spec.as_mut() {
        spec.node_name = Some(node.to_owned());
    }
    Ok(StaticPod { key, uid, object })
}

/// FNV-1a of 128 bits, in hexadecimal digits: fixed for all time, and no secret is guarded by it, for only
/// root writes manifests.
fn digest(parts: &[&[u8]]) -> String {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let bytes = parts.iter().flat_map(|part| part.iter());
    let hash = bytes.fold(BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    });
    format!("{hash:032x}")
}

fn few(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<_> = texts.collect();
    let mut shown: Vec<_> = texts.iter().take(SHOWN).cloned().collect();
    if let Some(more) = texts.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        shown.push(format!("{more} more"));
    }
    shown.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {kubernetes.io/config.hash: mine, a: b}}
spec: {containers: [{name: c, image: i}]}
";

    #[test]
    fn the_digest_is_that_of_the_standard() {
        // Test vectors of the FNV specification.
        assert_eq!(digest(&[b""]), "6c62272e07bb014262b821756295c58d");
        assert_eq!(digest(&[b"a"]), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(
            digest(&[b"foo", b"bar"]),
            "343e1662793c64bf6f0d3597ba446f18"
        );
    }

    #[test]
    fn a_pod_is_named_and_marked_as_by_the_kubelet() {
        let read = |node: &str, text: &str| pod("/m/web.yaml", node, text.as_bytes()).unwrap();
        let web = read("Node1", WEB);
        assert_eq!(web.key, PodKey::new("default", "web-node1"));
        let annotations = web.object.metadata.annotations.clone().unwrap();
        let of = |name: &str| annotations.get(name).map(String::as_str);
        assert_eq!(of("kubernetes.io/config.source"), Some("file"));
        assert_eq!(of("kubernetes.io/config.hash"), Some(web.uid.as_str()));
        assert_eq!(of("kubernetes.io/config.mirror"), Some(web.uid.as_str()));
        assert_eq!(of("a"), Some("b"));
        assert!(convert::pod(&web.object, &web.uid).object.is_static);
        // A comment is no other pod; another word, uid given or not, or another node is.
        assert_eq!(read("Node1", &format!("# a remark\n{WEB}")).uid, web.uid);
        assert_ne!(read("Node1", &WEB.replace("a: b", "a: c")).uid, web.uid);
        assert_ne!(read("Node2", WEB).uid, web.uid);
        let own = WEB.replace("{name: web", "{uid: own, name: web");
        assert_eq!(read("Node1", &own).uid, web.uid);
    }

    #[test]
    fn what_is_no_pod_is_told_with_its_place() {
        let two = format!("{WEB}---\n{WEB}");
        let odd = WEB.replace("image: i", "image: i, resources: {limits: {cpu: 1x}}");
        for (text, expected) in [
            ("", "/m/web.yaml: document 1: holds no object"),
            (
                two.as_str(),
                "/m/web.yaml holds 2 objects: one pod is right",
            ),
            (
                "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
                "/m/web.yaml: document 1, line 2: kind: is Namespace: a static pod is a Pod",
            ),
            (
                "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{nam",
                "/m/web.yaml: document 1, line 4:",
            ),
            (
                odd.as_str(),
                "/m/web.yaml: document 1, line 4: spec.containers[0].resources.limits[cpu]: ",
            ),
        ] {
            let why = pod("/m/web.yaml", "node", text.as_bytes()).unwrap_err();
            assert!(why.starts_with(expected), "{why}");
        }
    }
}
