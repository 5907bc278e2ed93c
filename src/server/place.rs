//! What a path of the API is about: a kind, and a namespace or a name where the path has them.

use std::collections::HashMap;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde_json::{Value, json};

use super::Shared;
use super::peer::Caller;
use super::status::Failure;
use crate::agent::{ObjectKey, Refusal};
use crate::model::kind::SECRET;
use crate::model::{Kind, Kinds};

/// The objects, or the object, of a path.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Their kind.
    pub kind: Kind,
    /// Their namespace; all of them if there is none.
    pub namespace: Option<String>,
    /// The name of the object; empty in a path of many.
    pub name: String,
}

impl Place {
    /// The object.
    pub fn key(&self) -> ObjectKey {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        ObjectKey::of(self.kind, namespace, &self.name)
    }

    /// Makes an object what it is in the version of this path: all versions of a kind that was defined are the
    /// same objects.
    pub fn speak(&self, object: &mut Value) {
        if self.kind.defined.is_some()
            && let Some(version) = object.get_mut("apiVersion")
        {
            *version = json!(self.kind.api_version());
        }
    }

    fn of_path(path: &HashMap<String, String>, kinds: &Kinds) -> Option<Self> {
        let part = |name: &str| path.get(name).map(String::as_str);
        let kind = kinds.of_path(
            part("group").unwrap_or_default(),
            part("version").unwrap_or("v1"),
            part("plural")?,
        )?;
        let namespace = part("namespace").map(str::to_owned);
        let name = part("name").unwrap_or_default().to_owned();
        // Without a namespace a path leads to the objects of all, but to no single one of them.
        let is_right = match namespace {
            Some(_) => kind.namespaced,
            None => !kind.namespaced || name.is_empty(),
        };
        is_right.then_some(Self {
            kind,
            namespace,
            name,
        })
    }
}

impl FromRequestParts<Shared> for Place {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Shared) -> Result<Self, Failure> {
        let path = Path::<HashMap<String, String>>::from_request_parts(parts, shared).await;
        let Path(path) = path.map_err(|error| Refusal::bad_request(error.body_text()))?;
        let Some(place) = Self::of_path(&path, &shared.handle.kinds()) else {
            let message = format!("there is nothing at {}", parts.uri.path());
            return Err(Refusal::new(404, "NotFound", message).into());
        };
        if place.kind == SECRET {
            let Some(caller) = parts.extensions.get::<Caller>() else {
                return Err(Refusal::internal("nobody knows who asks").into());
            };
            caller.check_trusted(&parts.method, parts.uri.path())?;
        }
        Ok(place)
    }
}
