//! What is allowed and yet is hardly meant: known surprises, each with a name that stays.
//!
//! Decides from what was written, from what admission made of it, and from the policies of a namespace.
//! A finding never refuses. Few go to whoever sends an object ([`Lint::is_always_told`]), so that they are
//! read; the others are for somebody who asks.

mod amounts;
mod limit_range;
mod pod;
mod quota;
mod written;

use std::fmt;

use super::reason::tame;

pub use amounts::claim;
pub use limit_range::{limit_ranges, tied};
pub use pod::pod;
pub use quota::quota;
pub(super) use written::written;

/// Findings of one object. A bound of ours: beyond it nobody reads.
const MAX_FINDINGS: usize = 1000;

macro_rules! lints {
    ($($name:ident $id:literal $always:literal $summary:literal;)*) => {
        /// A known surprise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Lint {
            $(#[doc = $summary] $name,)*
        }

        impl Lint {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// What it is about, in a few words.
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$name => $summary,)*
                }
            }

            /// Whether it is told to everybody, not only to those who ask for it.
            pub fn is_always_told(self) -> bool {
                match self {
                    $(Self::$name => $always,)*
                }
            }
        }
    };
}

lints! {
    FractionOfByte "fraction-of-byte" true "`400m` of memory is less than a byte";
    MissingSuffix "missing-suffix" true "memory of so few bytes that a suffix is missing";
    LittleMemory "little-memory" true "less memory than any process needs";
    ManyCpus "many-cpus" true "more CPUs than a kernel can have: an m is missing";
    SmallCpuLimit "small-cpu-limit" true "a CPU limit below what the kernel takes";
    ZeroLimit "zero-limit" true "a limit of 0, which is no limit";
    AboveNode "above-node" false "an amount of a container that is more than the node has";
    RequestFromLimit "request-from-limit" false "limits without requests: all of it is asked for";
    NoLimit "no-limit" false "requests without limits: only the node bounds the container";
    UnusedArgs "unused-args" true "args without a command";
    UnknownAnnotation "unknown-annotation" true "an annotation of allotd that it does not know";
    NoEffect "no-effect" false "a field that allotd does not act on";
    UnknownNamespace "unknown-namespace" false "cluster quotas choose by labels of a namespace that is not given";
    ContradictingBounds "contradicting-bounds" true "a min of one LimitRange is above the max of another";
    BrokenDefault "broken-default" true "the defaults of LimitRanges break a bound of one";
    TiedDefaults "tied-defaults" false "LimitRanges of a namespace give different defaults";
    DefaultFromMax "default-from-max" false "a max without default is the default as well";
    RequestFromDefault "request-from-default" false "a default without defaultRequest is asked for as well";
    DeadKey "dead-key" true "a key of a quota that counts nothing";
    EmptyScope "empty-scope" false "scopes of a quota that nothing matches";
    ZeroQuota "zero-quota" false "a quota of 0 for pods or what every pod needs";
    OverusedQuota "overused-quota" false "more of a quota is used than it allows";
    SmallQuota "small-quota" false "a quota is less than a LimitRange makes each pod ask for";
    UndefaultedQuota "undefaulted-quota" false "a quota asks for amounts for which no LimitRange gives defaults";
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// Whose the finding is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The object itself, which the message names where it must.
    Object,
    /// The pod as a whole.
    Pod,
    /// A container of the pod.
    Container(String),
    /// A policy: its kind and its name.
    Policy(&'static str, String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => Ok(()),
            Self::Pod => f.write_str("pod: "),
            Self::Container(name) => write!(f, "container {}: ", tame(name, 64)),
            Self::Policy(kind, name) => write!(f, "{kind} {}: ", tame(name, 253)),
        }
    }
}

/// One surprise in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub lint: Lint,
    /// Whose.
    pub owner: Owner,
    /// The path of the field, as in reasons.
    pub field: String,
    /// What is odd, with the figures, and what would be right.
    pub message: String,
}

impl Finding {
    fn new(lint: Lint, owner: &Owner, field: impl Into<String>, message: &str) -> Self {
        Self {
            lint,
            owner: owner.clone(),
            field: tame(&field.into(), 1024),
            message: tame(message, 2048),
        }
    }
}

impl fmt::Display for Finding {
    /// With its owner in front.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.owner, self.message)
    }
}
