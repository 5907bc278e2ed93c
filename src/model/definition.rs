//! What a CustomResourceDefinition says of a kind. Its schemas are not here: objects of such a kind are never
//! acted on, so nothing looks into them.

use std::cmp::Reverse;

/// A CustomResourceDefinition, with the names that Kubernetes fills in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// `metadata.name`: the plural, a point, the group.
    pub name: String,
    /// `spec.group`
    pub group: String,
    /// `spec.names.plural`
    pub plural: String,
    /// `spec.names.singular`; the kind in lower case if it is not given.
    pub singular: String,
    /// `spec.names.kind`
    pub kind: String,
    /// `spec.names.listKind`; the kind with `List` if it is not given.
    pub list: String,
    /// `spec.names.shortNames`
    pub short: Vec<String>,
    /// `spec.names.categories`
    pub categories: Vec<String>,
    /// `spec.scope`: `Namespaced` or `Cluster`
    pub scope: String,
    /// `spec.versions`
    pub versions: Vec<DefinedVersion>,
    /// `spec.conversion.strategy`: `None` or `Webhook`
    pub conversion: String,
    /// The annotation `api-approved.kubernetes.io`.
    pub approval: Option<String>,
}

/// One version of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinedVersion {
    /// `v1`, `v1beta1` …
    pub name: String,
    /// Whether it shall be served.
    pub served: bool,
    /// Whether objects are kept in it.
    pub storage: bool,
}

impl Definition {
    /// The version in which objects are kept.
    pub fn storage(&self) -> Option<&str> {
        let mut versions = self.versions.iter();
        versions
            .find(|version| version.storage)
            .map(|version| version.name.as_str())
    }

    /// The versions that are served, best first. Where a webhook would make one version of another, only the
    /// version that is kept can be had: nobody is asked.
    pub fn served(&self) -> Vec<&str> {
        let versions = self.versions.iter();
        let served =
            versions.filter(|version| version.served && (version.storage || !self.converts()));
        let mut names: Vec<_> = served.map(|version| version.name.as_str()).collect();
        names.sort_by_key(|name| rank(name));
        names
    }

    /// Whether its versions differ in more than their name.
    pub fn converts(&self) -> bool {
        self.conversion == "Webhook"
    }
}

/// The order of versions, best first: `v2`, `v1`, `v1beta2`, `v1alpha1`, then all others by name.
pub fn rank(version: &str) -> (Reverse<(u8, u64, u64)>, &str) {
    let known = || {
        let rest = version.strip_prefix('v')?;
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (major, rest) = rest.split_at_checked(end)?;
        let major = major.parse().ok()?;
        if rest.is_empty() {
            return Some((3, major, 0));
        }
        let beta = rest.strip_prefix("beta").map(|minor| (2, minor));
        let (class, minor) = beta.or_else(|| Some((1, rest.strip_prefix("alpha")?)))?;
        Some((class, major, minor.parse().ok()?))
    };
    (Reverse(known().unwrap_or_default()), version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_an_order() {
        let best_first = [
            "v10", "v2", "v1", "v2beta1", "v1beta2", "v1beta1", "v3alpha1", "1", "foo", "v1gamma",
        ];
        let mut sorted = best_first;
        sorted.reverse();
        sorted.sort_by_key(|name| rank(name));
        assert_eq!(sorted, best_first);
    }
}
