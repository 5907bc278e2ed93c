//! A tree of cgroups as a value: what shall be, or what is.
//!
//! Translation yields one that is wanted, reading cgroupfs yields one that was found; planning
//! compares the two. A tree is only data: it never touches the kernel.

use std::collections::BTreeMap;

use super::{CgroupPath, ControllerSet, InterfaceFile, Setting};

/// One cgroup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The files and their values. A file that is absent is not managed (in a wanted tree) or does
    /// not exist (in a found one).
    pub settings: BTreeMap<InterfaceFile, Setting>,
    /// The controllers its children have: `cgroup.subtree_control`.
    pub enabled: ControllerSet,
}

impl Node {
    /// Puts a setting into its file.
    pub fn set(&mut self, setting: Setting) {
        self.settings.insert(setting.file(), setting);
    }

    /// The value of a file.
    pub fn get(&self, file: InterfaceFile) -> Option<Setting> {
        self.settings.get(&file).copied()
    }
}

impl FromIterator<Setting> for Node {
    fn from_iter<I: IntoIterator<Item = Setting>>(settings: I) -> Self {
        let mut node = Self::default();
        for setting in settings {
            node.set(setting);
        }
        node
    }
}

/// Cgroups by path; a parent comes before its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(BTreeMap<CgroupPath, Node>);

impl Tree {
    /// Puts a cgroup at a path, in place of what was there.
    pub fn insert(&mut self, path: CgroupPath, node: Node) {
        self.0.insert(path, node);
    }

    /// Takes a cgroup out.
    pub fn remove(&mut self, path: &CgroupPath) -> Option<Node> {
        self.0.remove(path)
    }

    /// Takes a cgroup and all below it out.
    pub fn remove_within(&mut self, above: &CgroupPath) {
        self.0.retain(|path, _| !path.is_within(above));
    }

    /// The cgroup at a path.
    pub fn get(&self, path: &CgroupPath) -> Option<&Node> {
        self.0.get(path)
    }

    /// The cgroup at a path, to change it.
    pub fn get_mut(&mut self, path: &CgroupPath) -> Option<&mut Node> {
        self.0.get_mut(path)
    }

    /// Whether there is a cgroup at the path.
    pub fn contains(&self, path: &CgroupPath) -> bool {
        self.0.contains_key(path)
    }

    /// All cgroups, parents first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&CgroupPath, &Node)> {
        self.0.iter()
    }

    /// The cgroup at `above` and all below it, parents first. The rest of the tree costs nothing.
    pub fn within(
        &self,
        above: &CgroupPath,
    ) -> impl DoubleEndedIterator<Item = (&CgroupPath, &Node)> + use<'_> {
        let itself = self.0.get_key_value(above);
        itself.into_iter().chain(self.0.range(above.below()))
    }

    /// The same after the cgroups above `scope`, the top first.
    pub fn around(
        &self,
        scope: &CgroupPath,
    ) -> impl DoubleEndedIterator<Item = (&CgroupPath, &Node)> + use<'_> {
        let mut above: Vec<_> = scope.self_and_above().skip(1).collect();
        above.reverse();
        let above: Vec<_> = above
            .iter()
            .filter_map(|path| self.0.get_key_value(path))
            .collect();
        above.into_iter().chain(self.within(scope))
    }

    /// Adds all cgroups of another tree, in place of those at the same paths.
    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The number of cgroups.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(CgroupPath, Node)> for Tree {
    fn from_iter<I: IntoIterator<Item = (CgroupPath, Node)>>(nodes: I) -> Self {
        Self(nodes.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_whole_cut_to_size() {
        let path = |text: &str| {
            text.split('/')
                .filter(|name| !name.is_empty())
                .fold(CgroupPath::top(), |path, name| path.child(name).unwrap())
        };
        let all = ["", "a", "a-b", "a-b/d", "a/b", "a/b/c", "a/b0", "a0", "b"];
        let tree: Tree = all
            .iter()
            .map(|text| (path(text), Node::default()))
            .collect();
        for scope in all.into_iter().chain(["a/x", "x"]) {
            let scope = path(scope);
            let within = tree.iter().filter(|(path, _)| path.is_within(&scope));
            assert!(tree.within(&scope).eq(within), "{scope}");
            let around = tree
                .iter()
                .filter(|(path, _)| path.is_within(&scope) || scope.is_within(path));
            assert!(tree.around(&scope).eq(around), "{scope}");
        }
    }
}
