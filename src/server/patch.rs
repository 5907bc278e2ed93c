//! Patches of objects: JSON patch (RFC 6902), merge patch (RFC 7386) and Kubernetes' strategic one.

use axum::http::HeaderMap;
use serde_json::Value;

use super::body::media_type;
use crate::agent::Refusal;
use crate::manifest::strategic;
use crate::model::Kind;

/// Media types of patches.
const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// A patch that can be applied again and again.
pub(super) enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// The patch of a request; its media type says which it is. How the lists of a kind that was defined are
    /// merged is not known, so there is no strategic patch of one, as upstream.
    pub fn read(kind: Kind, headers: &HeaderMap, body: &[u8]) -> Result<Self, Refusal> {
        let given = media_type(headers);
        let is_known = kind.defined.is_none();
        let read = match given {
            JSON => serde_json::from_slice(body).map(Self::Json),
            MERGE => serde_json::from_slice(body).map(Self::Merge),
            STRATEGIC if is_known => serde_json::from_slice(body).map(Self::Strategic),
            _ => {
                let right = if is_known {
                    format!("{STRATEGIC}, {MERGE} or {JSON}")
                } else {
                    format!("{MERGE} or {JSON}")
                };
                let message = format!("the patch is {given:?}: {right} is right");
                return Err(Refusal::new(415, "UnsupportedMediaType", message));
            }
        };
        read.map_err(|error| Refusal::bad_request(format!("the body is no patch: {error}")))
    }

    /// Changes an object as the patch says.
    pub fn apply(&self, object: &mut Value) -> Result<(), Refusal> {
        let applied = match self {
            Self::Merge(change) => {
                json_patch::merge(object, change);
                Ok(())
            }
            Self::Json(change) => {
                json_patch::patch(object, change).map_err(|error| error.to_string())
            }
            Self::Strategic(change) => {
                strategic::merge(object, change).map_err(|error| error.to_string())
            }
        };
        applied
            .map_err(|why| Refusal::new(422, "Invalid", format!("the patch does not apply: {why}")))
    }
}
