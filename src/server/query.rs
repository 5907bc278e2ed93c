//! What a client wants of many objects: which, how many at a time, from when on.

use std::time::Duration;

use serde::Deserialize;

use super::select::Selection;
use crate::agent::Refusal;
use crate::model::Kind;

/// Query parameters of a list or a watch.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListQuery {
    label_selector: String,
    field_selector: String,
    resource_version: String,
    resource_version_match: String,
    limit: Option<usize>,
    r#continue: String,
    watch: Option<String>,
    allow_watch_bookmarks: Option<String>,
    send_initial_events: Option<String>,
    timeout_seconds: Option<u64>,
}

/// Go's clients write `true` or `1`, people nothing.
fn is_set(parameter: Option<&String>) -> bool {
    parameter.is_some_and(|text| matches!(text.as_str(), "" | "1" | "true"))
}

impl ListQuery {
    /// Which objects of a kind are wanted.
    ///
    /// # Errors
    /// A selector that cannot be read.
    pub fn selection(&self, kind: Kind) -> Result<Selection, Refusal> {
        Selection::read(kind, &self.label_selector, &self.field_selector)
    }

    /// Whether the changes are wanted and not the objects.
    pub fn is_watch(&self) -> bool {
        is_set(self.watch.as_ref())
    }

    /// Whether a client wants to be told how far it is.
    pub fn wants_bookmarks(&self) -> bool {
        is_set(self.allow_watch_bookmarks.as_ref())
    }

    /// Whether a watch begins with the objects there are, and says where those end.
    pub fn ends_its_list(&self) -> bool {
        is_set(self.send_initial_events.as_ref())
    }

    /// How long a watch shall last.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_seconds.map(Duration::from_secs)
    }

    /// The revision that a watch begins after; without one it begins with the objects there are.
    ///
    /// # Errors
    /// It is no number.
    pub fn watched_from(&self) -> Result<Option<u64>, Refusal> {
        if self.ends_its_list() {
            return Ok(None);
        }
        Ok(Some(self.version()?).filter(|version| *version > 0))
    }

    /// Whether a list of this revision is recent enough.
    ///
    /// # Errors
    /// It is not, or the revision that is asked for is no number.
    pub fn check_revision(&self, revision: u64) -> Result<(), Refusal> {
        let wanted = self.version()?;
        if wanted > revision {
            let message = format!("Too large resource version: {wanted}, current: {revision}");
            return Err(Refusal::new(504, "Timeout", message));
        }
        if self.resource_version_match == "Exact" && wanted != revision {
            let message = format!("too old resource version: {wanted} (it is {revision} now)");
            return Err(Refusal::new(410, "Expired", message));
        }
        Ok(())
    }

    /// How many objects at a time; none says all.
    pub fn limit(&self) -> Option<usize> {
        self.limit.filter(|limit| *limit > 0)
    }

    /// Namespace and name of the last object that the client has got of its list.
    ///
    /// # Errors
    /// It is not from us.
    pub fn after(&self) -> Result<Option<(&str, &str)>, Refusal> {
        if self.r#continue.is_empty() {
            return Ok(None);
        }
        self.r#continue.split_once('/').map(Some).ok_or_else(|| {
            Refusal::bad_request(format!(
                "continue is {:?}: it is none that was given out here",
                self.r#continue
            ))
        })
    }

    fn version(&self) -> Result<u64, Refusal> {
        match self.resource_version.as_str() {
            "" => Ok(0),
            text => text.parse().map_err(|_| {
                Refusal::bad_request(format!("resourceVersion is {text:?}: a number is right"))
            }),
        }
    }
}
