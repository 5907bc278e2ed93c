//! Directories of pods that nobody knows of, and the shims that still live in them.
//!
//! It only looks, and at a bounded number of them: nothing is removed here, because what a pod wrote is its
//! owner's, and a record that was lost may be found again.

use std::io;

use super::process::{RuntimeError, attempts};
use super::{Runtime, dir, lock};

/// So many of the directories are looked into for shims.
const LOOKED_INTO: usize = 64;
/// In each of them at so many runs at the most.
const RUNS: usize = 64;

/// What was left below the state directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftBehind {
    /// The names of the directories that belong to no pod, which are uids.
    pub pods: Vec<String>,
    /// The process ids of shims that live in the first 64 of them.
    pub shims: Vec<i32>,
}

impl Runtime {
    /// The directories of pods that `is_known` does not know.
    ///
    /// # Errors
    /// What the kernel answered where they cannot be listed.
    pub fn left_behind(&self, is_known: impl Fn(&str) -> bool) -> Result<LeftBehind, RuntimeError> {
        let names = vec!["pods".to_owned()];
        let Some(above) = self.open(&names)? else {
            return Ok(LeftBehind::default());
        };
        let mut pods = dir::names(&above).map_err(RuntimeError::io("list", "pods"))?;
        pods.retain(|name| !is_known(name));
        pods.sort_unstable();
        let mut shims = Vec::new();
        for pod in pods.iter().take(LOOKED_INTO) {
            // One that goes away meanwhile, or is no directory, has no shim.
            shims.extend(self.shims_of(pod).unwrap_or_default());
        }
        Ok(LeftBehind { pods, shims })
    }

    fn shims_of(&self, pod: &str) -> Result<Vec<i32>, RuntimeError> {
        let failed = |error: io::Error| RuntimeError::io("list", pod)(error);
        let above = ["pods", pod].map(str::to_owned);
        let mut shims = Vec::new();
        let Some(pod) = self.open(&above)? else {
            return Ok(shims);
        };
        let mut left = RUNS;
        for name in dir::names(&pod).map_err(failed)? {
            let of_container = [above.as_slice(), &[name]].concat();
            let Ok(Some(container)) = self.open(&of_container) else {
                continue;
            };
            for run in attempts(&container).map_err(failed)?.into_iter().take(left) {
                left = left.saturating_sub(1);
                let of_run = [of_container.as_slice(), &[run.to_string()]].concat();
                if let Ok(Some(run)) = self.open(&of_run) {
                    let holder = lock::holder(&run).map_err(failed)?;
                    shims.extend(holder.map(|pid| pid.as_raw_nonzero().get()));
                }
            }
        }
        Ok(shims)
    }
}
