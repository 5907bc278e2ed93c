//! Everything that reaches the owner, on one channel.

use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::oneshot;

use super::cache::Cache;
use super::eviction::News;
use super::guard::Verdict;
use super::probes::ProbeNews;
use super::request::{Refusal, Reply, Request};
use super::sampler::Sampler;
use super::statics::Files;
use super::walks::Walks;
use crate::model::{Kinds, PodUid};
use crate::observation::kmsg::Told;
use crate::observation::watch::Notice;
use crate::runtime::{AttemptState, RuntimeError};

/// One message to the owner.
#[derive(Debug)]
pub enum Input {
    /// Somebody asks.
    Request(Request),
    /// The kernel hints at a cgroup.
    Notice(Notice),
    /// What the kernel's log tells of OOM kills; `None` once all of its past is told.
    Log(Option<Told>),
    /// A start has been carried out, well or badly.
    Started {
        /// The pod.
        uid: PodUid,
        /// The container.
        container: String,
        /// The run.
        attempt: u32,
        /// How it went.
        result: Result<AttemptState, RuntimeError>,
    },
    /// The main process of a container may have ended: look.
    Exited {
        /// The pod.
        uid: PodUid,
        /// The container.
        container: String,
    },
    /// What probes and hooks of a container tell.
    Probes(Box<ProbeNews>),
    /// The files of a deleted pod are gone, or could not be removed for this reason.
    Cleared {
        /// The pod.
        uid: PodUid,
        /// What stood in the way.
        result: Result<(), String>,
    },
    /// A pod's files were found to take too much.
    Storage {
        /// The pod.
        uid: PodUid,
        /// What was found.
        verdict: Verdict,
    },
    /// What concerns eviction.
    Eviction(Box<News>),
    /// What the files of static pods hold.
    Manifests(Box<Files>),
    /// End in good order; pods go on.
    Stop,
}

/// The way to the owner, and to what it tells; cheap to copy.
#[derive(Clone, Debug)]
pub struct Handle {
    inputs: Sender<Input>,
    cache: Arc<Cache>,
    kinds: Arc<RwLock<Arc<Kinds>>>,
    sampler: Arc<Sampler>,
    walks: Arc<Walks>,
}

impl Handle {
    /// A handle on the owner's channel.
    pub fn new(inputs: Sender<Input>) -> Self {
        Self {
            inputs,
            cache: Arc::default(),
            kinds: Arc::default(),
            sampler: Arc::default(),
            walks: Arc::default(),
        }
    }

    /// What readers see.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// What was read last for those who ask for figures.
    pub(super) fn sampler(&self) -> &Sampler {
        &self.sampler
    }

    /// What pods' files take.
    pub(super) fn walks(&self) -> &Arc<Walks> {
        &self.walks
    }

    /// The kinds of object that are known at present. Only the owner makes others known.
    pub fn kinds(&self) -> Arc<Kinds> {
        let kinds = self.kinds.read();
        Arc::clone(&kinds.unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these kinds are known.
    pub(super) fn know(&self, kinds: Kinds) {
        let mut known = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        *known = Arc::new(kinds);
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// The owner's refusal; or that it is stopping.
    pub async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, Refusal> {
        let stopping = || {
            Refusal::new(
                503,
                "ServiceUnavailable",
                "allotd is stopping; try again later",
            )
        };
        let (reply, answer) = oneshot::channel();
        self.inputs
            .send(Input::Request(request(reply)))
            .map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())?
    }

    /// Tells the owner; false once it has stopped.
    pub fn tell(&self, input: Input) -> bool {
        self.inputs.send(input).is_ok()
    }
}
