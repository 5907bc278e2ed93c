//! Tests that need a kernel of their own: a cgroup v2 tree from the root down, huge pages, out-of-memory kills.
//!
//! This one static program is both halves. `scripts/vm` boots it as `/init` of an emulated machine, where it runs every
//! test in a fresh process of itself (`/init run-test NAME`). It must never run a test anywhere else: on an ordinary
//! host it says so and fails, and `Cargo.toml` keeps it out of a plain `cargo test`.
//!
//! A topic is one file with test functions and a `tests![…]` line, plus one line in [`TOPICS`].

// All of this is test code, which clippy cannot know without the standard harness.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss
)]

use std::error::Error;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;

/// Lists the tests of one file. A function left out is dead code, which the build refuses.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub const TESTS: &[crate::Test] = &[$(crate::Test {
            path: concat!(module_path!(), "::", stringify!($name)),
            body: $name,
        }),+];
    };
}

mod conformance;
mod door;
mod enforcement;
mod environment;
mod faults;
mod init;
mod interceptor;
mod node;
mod player;
mod runner;
mod runtime;
mod support;

/// Every file of tests, in the order in which they run.
const TOPICS: &[&[Test]] = &[
    environment::TESTS,
    door::opening::TESTS,
    door::settings::TESTS,
    door::lifecycle::TESTS,
    door::finding::TESTS,
    door::counting::TESTS,
    runtime::TESTS,
    enforcement::TESTS,
    faults::TESTS,
    node::usage::TESTS,
    node::values::TESTS,
    node::enforce::TESTS,
    node::drift::TESTS,
    node::burst::TESTS,
    node::oom::TESTS,
    node::oom_many::TESTS,
    node::oom_inner::TESTS,
    node::supervisor::TESTS,
    node::crash::TESTS,
    conformance::random::TESTS,
    conformance::scripted::TESTS,
    node::command_line::TESTS,
    node::policies::TESTS,
    node::resize::TESTS,
    node::storm::TESTS,
    node::storage::TESTS,
    node::disks::TESTS,
    node::security::TESTS,
    node::probes::TESTS,
    node::node_end::TESTS,
    node::eviction::TESTS,
];

/// Files of tests that need so many CPUs: there only on a machine that has them, which `scripts/test` boots for
/// them.
const ON_MANY_CPUS: &[&[Test]] = &[node::cpus::TESTS];
const MANY_CPUS: usize = 4;

/// Files of tests that take longer than a minute: each runs only where the filter is its whole name.
const ON_REQUEST: &[&[Test]] = &[node::storm_long::TESTS, node::thousand::TESTS];

/// What a test returns. It may panic as well; both are failures with a text.
type Outcome = Result<(), Box<dyn Error>>;

/// One test.
struct Test {
    path: &'static str,
    body: fn() -> Outcome,
}

impl Test {
    /// The name without the crate's: `environment::pressure_is_reported`.
    fn name(&self) -> &'static str {
        self.path
            .split_once("::")
            .map_or(self.path, |(_, name)| name)
    }
}

fn all_tests() -> impl Iterator<Item = &'static Test> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let more = if cpus < MANY_CPUS { &[] } else { ON_MANY_CPUS };
    TOPICS.iter().chain(more).copied().flatten()
}

fn tests_on_request() -> impl Iterator<Item = &'static Test> {
    ON_REQUEST.iter().copied().flatten()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if std::process::id() == 1 {
        init::run(&arguments);
    }
    match arguments.as_slice() {
        // What a set-uid copy of this program is.
        [mode] if mode == "print-user" => {
            println!("{}", nix::unistd::geteuid());
            ExitCode::SUCCESS
        }
        [mode, name] if mode == "run-test" && process_1_is_us_too() => runner::run_here(name),
        [mode, part @ ..] if mode == "play" && process_1_is_us_too() => player::play(part),
        _ => {
            eprintln!("these tests change the machine they run on; scripts/vm boots one for them");
            ExitCode::from(2)
        }
    }
}

/// Whether this machine was booted for the tests: it has this program as its `/init`. Who is not root may not ask what
/// process 1 is.
fn process_1_is_us_too() -> bool {
    let file = |path: &str| std::fs::metadata(path).map(|file| (file.dev(), file.ino()));
    matches!((file("/init"), file("/proc/self/exe")), (Ok(init), Ok(own)) if init == own)
}
