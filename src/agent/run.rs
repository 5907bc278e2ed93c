//! The owner's loop: one message or deadline at a time, then whatever became due, then one commit.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::cpus::Cpus;
use super::crash;
use super::drift::Drifts;
use super::events::Events;
use super::eviction::Evictor;
use super::guard::Guard;
use super::hints::Touch;
use super::input::{Handle, Input};
use super::kills::Kills;
use super::node_end::NodeEnd;
use super::objects::StoredObject;
use super::orphans::Orphans;
use super::pods::Pods;
use super::probes::Limits;
use super::request::{ObjectKey, PodKey};
use super::spaces::Projects;
use super::statics::Statics;
use crate::admission::Ledger;
use crate::cgroup::{CgroupPath, Hierarchy, Tree};
use crate::config::Config;
use crate::model::{LimitedResource, Node, PodUid, Policy, ResourceList, Words};
use crate::observation::kmsg;
use crate::observation::node::NodeFacts;
use crate::observation::oom::OomSeen;
use crate::observation::watch::Watch;
use crate::report::Tallies;
use crate::report::node::SystemInfo;
use crate::runtime::Runtime;
use crate::store::{Change, Expect, Store, StoreError};
use crate::translation::{LevelTree, Totals, levels};

/// At most so many messages are taken before what became due is done.
const BATCH: usize = 256;

/// How long a container's removal or kill may take before it is looked at again.
pub(super) const RETRY: Duration = Duration::from_millis(100);

/// How long a step waits that must be durable first, where the disk refuses.
pub(super) const STORE_RETRY: Duration = Duration::from_secs(5);

/// What the agent is made from.
pub struct Parts {
    /// The configuration.
    pub config: Config,
    /// What the machine has.
    pub facts: NodeFacts,
    /// More about the machine.
    pub system: SystemInfo,
    /// The kernel.
    pub kernel: Box<dyn Hierarchy>,
    /// The durable store.
    pub store: Store,
    /// How containers are started.
    pub runtime: Runtime,
    /// Watches on cgroups.
    pub watch: Watch,
    /// The reader of the kernel's log; or why there is none.
    pub log: Result<kmsg::Reader, String>,
    /// Where waiting for processes runs.
    pub tokio: tokio::runtime::Handle,
    /// The way back to the owner.
    pub handle: Handle,
}

/// Why the agent cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The reservations do not fit the machine.
    #[error("invalid node allocatable configuration: {}", .0.join("; "))]
    Node(Vec<String>),
    /// Containers cannot be placed on CPUs.
    #[error("cpuManagerPolicy static is not possible: {0}")]
    Cpus(String),
    /// No thread can be had.
    #[error("cannot start the owner's thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// The owner of all state.
pub struct Agent {
    pub(super) config: Config,
    pub(super) facts: NodeFacts,
    pub(super) system: SystemInfo,
    pub(super) policy: Policy,
    /// What may be used only where a quota counts it.
    pub(super) limited: Vec<LimitedResource>,
    pub(super) node: Node,
    /// Extended resources advertised through the API.
    pub(super) advertised: ResourceList,
    pub(super) kernel: Box<dyn Hierarchy>,
    pub(super) store: Store,
    pub(super) runtime: Runtime,
    pub(super) watch: Watch,
    /// It reads as long as this is held.
    pub(super) log: Result<kmsg::Reader, String>,
    /// The past of the kernel's log is told.
    pub(super) caught_up: bool,
    pub(super) tokio: tokio::runtime::Handle,
    pub(super) handle: Handle,
    pub(super) pods: Pods,
    pub(super) by_uid: HashMap<PodUid, PodKey>,
    /// Objects of other kinds.
    pub(super) objects: BTreeMap<ObjectKey, StoredObject>,
    /// The words of kinds that were defined.
    pub(super) words: Words,
    /// What is in use.
    pub(super) ledger: Ledger,
    /// Pods whose records are of no use to this agent: what they run is left alone.
    pub(super) stranded: BTreeSet<PodUid>,
    /// What is there of pods without a record.
    pub(super) orphans: Orphans,
    /// What somebody else changed.
    pub(super) drifts: Drifts,
    /// Which CPUs containers have to themselves.
    pub(super) cpus: Cpus,
    /// Pods whose resize waits for room.
    pub(super) waiting: BTreeSet<PodKey>,
    /// There may be more room than when they were looked at last.
    pub(super) room: bool,
    pub(super) wanted: Tree,
    pub(super) applied: Tree,
    pub(super) totals: Totals,
    /// The levels above the pods, as the totals have it.
    pub(super) levels: LevelTree,
    pub(super) unenforced: BTreeMap<CgroupPath, Vec<String>>,
    pub(super) events: Events,
    pub(super) kills: Kills,
    pub(super) projects: Projects,
    pub(super) guard: Guard,
    pub(super) evictor: Evictor,
    pub(super) statics: Statics,
    /// Set where all pods end with the node: then nothing else is done.
    pub(super) node_end: Option<NodeEnd>,
    /// How much probes and hooks do at once.
    pub(super) acting: Arc<Limits>,
    pub(super) tallies: Tallies,
    /// OOM counters of the levels above pods, as told.
    pub(super) levels_seen: BTreeMap<String, OomSeen>,
    pub(super) levels_dirty: bool,
    pub(super) oom_rises: BTreeMap<CgroupPath, Instant>,
    /// The same for containers and the limits of cgroups that they made themselves.
    pub(super) inner_rises: BTreeMap<CgroupPath, Instant>,
    pub(super) wakes: BTreeSet<(Instant, PodKey)>,
    /// What is wrong at present, by subject.
    pub(super) problems: BTreeMap<String, String>,
    pub(super) started: Timestamp,
    pub(super) revision: u64,
    /// Of which revision the node is, and the problems it told then.
    pub(super) node_told: (u64, Vec<String>),
    /// Where to look next.
    pub(super) touched: BTreeMap<CgroupPath, Touch>,
    pub(super) next_sync: Instant,
}

/// Starts the owner on a thread of its own. It ends on `Input::Stop`; pods go on.
///
/// # Errors
/// The stored state or the configuration cannot be used.
pub fn start(
    parts: Parts,
    inputs: Receiver<Input>,
) -> Result<std::thread::JoinHandle<()>, StartupError> {
    let mut agent = Agent::restore(parts)?;
    std::thread::Builder::new()
        .name("owner".to_owned())
        .spawn(move || agent.run(&inputs))
        .map_err(StartupError::Thread)
}

impl Agent {
    /// An agent with nothing in it yet.
    pub(super) fn empty(parts: Parts, node: Node, events: Events, revision: u64) -> Self {
        let policy = parts.config.policy();
        let levels = levels(&Totals::default(), &node, &policy);
        // The settings were read before; without any nothing is evicted.
        let eviction = parts.config.eviction().unwrap_or_default();
        Self {
            policy,
            limited: parts.config.limited_resources(),
            next_sync: Instant::now() + parts.config.sync_frequency,
            config: parts.config,
            facts: parts.facts,
            system: parts.system,
            node,
            advertised: ResourceList::default(),
            kernel: parts.kernel,
            store: parts.store,
            runtime: parts.runtime,
            watch: parts.watch,
            log: parts.log,
            caught_up: false,
            tokio: parts.tokio,
            projects: Projects::default(),
            guard: Guard::start(parts.handle.clone()),
            handle: parts.handle,
            pods: Pods::default(),
            by_uid: HashMap::new(),
            objects: BTreeMap::new(),
            words: Words::default(),
            ledger: Ledger::default(),
            stranded: BTreeSet::new(),
            orphans: Orphans::default(),
            drifts: Drifts::default(),
            cpus: Cpus::default(),
            waiting: BTreeSet::new(),
            room: false,
            wanted: Tree::default(),
            applied: Tree::default(),
            totals: Totals::default(),
            levels,
            unenforced: BTreeMap::new(),
            events,
            kills: Kills::default(),
            evictor: Evictor::new(eviction),
            statics: Statics::default(),
            node_end: None,
            acting: Arc::default(),
            tallies: Tallies::default(),
            levels_seen: BTreeMap::new(),
            levels_dirty: false,
            oom_rises: BTreeMap::new(),
            inner_rises: BTreeMap::new(),
            wakes: BTreeSet::new(),
            problems: BTreeMap::new(),
            started: Timestamp::now(),
            revision,
            node_told: (revision, Vec::new()),
            touched: BTreeMap::new(),
        }
    }

    fn run(&mut self, inputs: &Receiver<Input>) {
        while self.turn(inputs, Duration::MAX) {}
    }

    /// One turn of the loop, which waits `most` at the longest; false ends it.
    pub(super) fn turn(&mut self, inputs: &Receiver<Input>, most: Duration) -> bool {
        if self.node_end.is_some() {
            return self.ending_turn(inputs, most);
        }
        self.settle_all();
        let due = self
            .wakes
            .first()
            .map_or(self.next_sync, |(at, _)| (*at).min(self.next_sync));
        let due = self.evictor.next.map_or(due, |next| next.min(due));
        let wait = if self.touched.is_empty() {
            due.saturating_duration_since(Instant::now()).min(most)
        } else {
            Duration::ZERO
        };
        let first = match inputs.recv_timeout(wait) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        for input in first.into_iter().chain(inputs.try_iter().take(BATCH)) {
            if !self.take(input) {
                return false;
            }
        }
        self.look_at_touched();
        self.do_what_is_due();
        true
    }

    /// Takes one message; false ends the loop.
    fn take(&mut self, input: Input) -> bool {
        match input {
            Input::Request(request) => self.answer(request),
            Input::Notice(notice) => self.notice(&notice),
            Input::Log(told) => self.hear(told),
            Input::Started {
                uid,
                container,
                attempt,
                result,
            } => self.started(&uid, &container, attempt, result),
            Input::Exited { uid, container } => self.exited(&uid, &container),
            Input::Probes(news) => self.take_probe_news(*news),
            Input::Cleared { uid, result } => self.cleared(&uid, result),
            Input::Storage { uid, verdict } => self.storage_found(&uid, verdict),
            Input::Eviction(news) => self.take_news(*news),
            Input::Manifests(files) => self.take_manifests(*files),
            Input::Stop => {
                self.settle_all();
                return false;
            }
        }
        true
    }

    fn do_what_is_due(&mut self) {
        self.follow_cpus();
        let now = Instant::now();
        if now >= self.next_sync {
            self.next_sync = now + self.config.sync_frequency;
            self.enforce(&CgroupPath::top());
            for key in self.pods.keys().cloned().collect::<Vec<_>>() {
                self.look_for_oom(&key);
                self.drive(&key);
            }
            self.end_namespaces();
            self.look_for_offline_cpus();
        }
        while let Some((at, key)) = self.wakes.first().cloned()
            && at <= now
        {
            self.wakes.pop_first();
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.wake = None;
                self.look_for_oom(&key);
                self.clear_suspects(&key);
                self.drive(&key);
            }
        }
        self.mind_statics();
        self.retry_resizes();
        self.mind_eviction();
    }

    /// Looks at a pod again after this time at the latest.
    pub(super) fn wake_pod(&mut self, key: &PodKey, after: Duration) {
        let at = Instant::now().checked_add(after);
        let (Some(at), Some(entry)) = (at, self.pods.get_mut(key)) else {
            return;
        };
        if let Some(earlier) = entry.wake {
            if earlier <= at {
                return;
            }
            self.wakes.remove(&(earlier, key.clone()));
        }
        entry.wake = Some(at);
        self.wakes.insert((at, key.clone()));
    }

    /// Kills the agent here if a test asks for it.
    pub(super) fn crash_point(point: crash::Point) {
        crash::point(point);
    }
}

/// The store key of the levels' OOM counters.
pub(super) const LEVELS_KEY: &str = "node/levels-oom-seen";

/// The store key of a pod.
pub(super) fn store_key(key: &PodKey) -> String {
    format!("pods/{}/{}", key.namespace, key.name)
}

/// A change that writes a value as JSON; `None` if it has no JSON form, which is told.
pub(super) fn put<T: serde::Serialize>(key: &str, value: &T) -> Option<Change> {
    match serde_json::to_vec(value) {
        Ok(bytes) => Some(Change::Put(key.to_owned(), bytes, Expect::Any)),
        Err(error) => {
            tracing::error!("cannot write {key} as JSON: {error}");
            None
        }
    }
}
