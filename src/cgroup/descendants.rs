//! `cgroup.stat`: how many cgroups are below one. A figure that the kernel does not tell is absent, never
//! zero. It must never judge them.

use super::parse;

/// `cgroup.stat`: the cgroups below one, at any depth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descendants {
    /// `nr_descendants`: those that are there.
    pub live: Option<u64>,
    /// `nr_dying_descendants`: those that were removed, but are still referred to.
    pub dying: Option<u64>,
}

impl Descendants {
    /// Read from the text of `cgroup.stat`.
    pub fn parse(text: &str) -> Self {
        Self {
            live: parse::value(text, "nr_descendants"),
            dying: parse::value(text, "nr_dying_descendants"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_unknown() {
        for (text, live, dying) in [
            (
                "nr_descendants 240\nnr_subsys_memory 241\nnr_dying_descendants 68680\nnr_dying_subsys_memory 68680\n",
                Some(240),
                Some(68_680),
            ),
            ("nr_descendants 240\n", Some(240), None),
            ("nr_descendants many\nnr_dying_descendants -1\n", None, None),
            ("", None, None),
        ] {
            assert_eq!(
                Descendants::parse(text),
                Descendants { live, dying },
                "{text}"
            );
        }
    }
}
