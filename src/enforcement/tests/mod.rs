//! Both halves of enforcement against the model kernel.

mod applying;
mod burst;
mod planning;
mod spare;

use super::*;
use crate::cgroup::{
    CgroupPath, Controller, ControllerSet, ErrorKind, Hierarchy, InterfaceFile, ModelKernel, Node,
    Op, Pid, Setting, Tree,
};
use crate::units::{Bytes, CpuWeight, HugePageSize, Limit, PageSize};

const MIB: u64 = 1 << 20;
const PAGE: PageSize = PageSize::FOUR_KIB;

fn path(text: &str) -> CgroupPath {
    let names = text.split('/').filter(|name| !name.is_empty());
    names.fold(CgroupPath::top(), |path, name| path.child(name).unwrap())
}

fn max(mib: u64) -> Setting {
    Setting::MemoryMax(Limit::At(Bytes(mib * MIB)))
}

fn min(mib: u64) -> Setting {
    Setting::MemoryMin(Limit::At(Bytes(mib * MIB)))
}

fn huge(mib: u64) -> Setting {
    Setting::HugetlbMax(HugePageSize::TWO_MIB, Limit::At(Bytes(mib * MIB)))
}

/// Cgroups that all hand down every controller, but for the containers at the third level.
fn tree(nodes: &[(&str, &[Setting])]) -> Tree {
    let node = |text: &str, settings: &[Setting]| {
        let path = path(text);
        let mut node: Node = settings.iter().copied().collect();
        if path.depth() < 2 {
            node.enabled = ControllerSet::all();
        }
        (path, node)
    };
    nodes
        .iter()
        .map(|(text, settings)| node(text, settings))
        .collect()
}

/// The usual two levels.
fn pod(pod: &[Setting], container: &[Setting]) -> Tree {
    tree(&[("", &[]), ("pod", pod), ("pod/a", container)])
}

/// What an owner of the trees does.
#[derive(Default)]
struct Owner {
    kernel: ModelKernel,
    applied: Tree,
}

impl Owner {
    fn with(wanted: &Tree) -> Self {
        let mut owner = Self::default();
        let outcome = owner.pass(wanted);
        assert!(outcome.is_complete(), "{outcome:?}");
        owner
    }

    fn plan(&mut self, wanted: &Tree) -> Plan {
        let found = self.kernel.found(&path("")).unwrap();
        plan(&path(""), wanted, &found, &self.applied, PAGE)
    }

    fn pass(&mut self, wanted: &Tree) -> Outcome {
        let plan = self.plan(wanted);
        let outcome = apply(&mut self.kernel, &plan);
        let mut found = self.kernel.found(&path("")).unwrap();
        outcome.update(&mut found);
        assert_eq!(
            found,
            self.kernel.found(&path("")).unwrap(),
            "what was seen is what is"
        );
        remember(&mut self.applied, &path(""), wanted, &found, PAGE);
        outcome
    }
}

fn text<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}
