//! Who a container's program is and what it can do, for `explain`.
//!
//! Decides nothing: what is told follows from the pod as it was admitted.

use serde::{Deserialize, Serialize};

use super::explain::DefaultRow;
use crate::admission::privilege::RULE;
use crate::admission::{Secured, Verdict};
use crate::model::security::{Security, names};

/// What stands for a list where a default is of no resource.
const LIST: &str = "securityContext";

/// Who a program is and what it can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecurityRow {
    /// Its user; 0: root.
    pub user: u32,
    /// Its group; absent: that of the user in the host's list, or 65534.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Its further groups; empty where none is given.
    pub groups: Vec<u32>,
    /// Whether no program that it starts gains anything by its file.
    pub no_new_privileges: bool,
    /// The capabilities that it begins with.
    pub capabilities: Vec<String>,
    /// Those that neither it nor what it starts can ever have.
    pub dropped: Vec<String>,
    /// Whether it writes to its own directories and volumes alone.
    pub read_only_root_filesystem: bool,
}

impl From<&Security> for SecurityRow {
    fn from(security: &Security) -> Self {
        let owned = |bits| names(bits).into_iter().map(str::to_owned).collect();
        Self {
            user: security.user.unwrap_or(0),
            group: security.group.or_else(|| security.is_root().then_some(0)),
            groups: security.groups.clone(),
            no_new_privileges: security.no_new_privileges,
            capabilities: owned(security.capabilities()),
            dropped: owned(security.dropped),
            read_only_root_filesystem: security.has_read_only_root,
        }
    }
}

impl From<&Secured> for DefaultRow {
    fn from(secured: &Secured) -> Self {
        Self {
            container: Some(secured.container.clone()),
            list: LIST.to_owned(),
            resource: secured.given.field().to_owned(),
            amount: secured.given.value(),
            rule: RULE.to_owned(),
        }
    }
}

impl DefaultRow {
    /// All that admission filled in.
    pub fn all(verdict: &Verdict) -> Vec<Self> {
        let amounts = verdict.defaults().iter().map(Self::from);
        let users = verdict.secured().iter().map(Self::from);
        amounts.chain(users).collect()
    }

    /// Whether it says who a container is.
    pub fn is_of_security(&self) -> bool {
        self.list == LIST
    }
}
