//! Performing a plan through the one door to the kernel.
//!
//! It goes on after a failure, except in a cgroup that could not be made, and tells every failure. It
//! decides no value and writes none that is not in the plan. Each cgroup it touched is read once at
//! the end, and only what the kernel shows then is called enforced.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::hold::{self, Held};
use super::order::compare;
use super::outcome::{Failed, Outcome, Repaired};
use super::plan::{Cause, Plan, Step};
use crate::cgroup::{
    CgroupPath, ErrorKind, Hierarchy, InterfaceFile, KernelError, Node, Op, Setting,
};
use crate::units::{Bytes, Limit};

/// Performs the steps in order. It never waits: a cgroup whose killed processes have not ended yet is
/// `pending`, and a bound that does not fit yet is `held`; planning again later brings both.
pub fn apply(kernel: &mut dyn Hierarchy, plan: &Plan) -> Outcome {
    let mut pass = Pass {
        kernel,
        outcome: Outcome::default(),
        not_made: Vec::new(),
        busy: Vec::new(),
        touched: BTreeMap::new(),
    };
    for step in plan.steps() {
        pass.perform(step);
    }
    pass.remove_the_busy();
    pass.read_back();
    pass.outcome
}

/// Whether a bound fits what is in use.
enum Room {
    Enough,
    /// With what is in use (bytes), if that is known.
    TooLittle(Option<Bytes>),
}

struct Pass<'a> {
    kernel: &'a mut dyn Hierarchy,
    outcome: Outcome,
    not_made: Vec<(&'a CgroupPath, ErrorKind)>,
    busy: Vec<&'a CgroupPath>,
    /// The steps that the kernel took, by cgroup; a cgroup where it took none is looked at too.
    touched: BTreeMap<&'a CgroupPath, Vec<&'a Step>>,
}

impl<'a> Pass<'a> {
    fn perform(&mut self, step: &'a Step) {
        let path = step.op.path();
        let above = self
            .not_made
            .iter()
            .find(|(above, _)| path.is_within(above));
        if let Some((above, kind)) = above {
            let (kind, why) = (*kind, format!("{above} could not be created"));
            self.fail(&step.op, kind, why);
            return;
        }
        match &step.op {
            Op::Create(_) => {
                if let Err(error) = self.kernel.perform(&step.op) {
                    self.not_made.push((path, error.kind));
                    self.refuse(&step.op, &error);
                } else {
                    self.touch(step, true);
                }
            }
            Op::Write(_, setting) => self.write(step, *setting),
            Op::Kill(_) => match self.kernel.perform(&step.op) {
                // What is gone needs no killing.
                Err(error) if error.kind != ErrorKind::Gone => self.refuse(&step.op, &error),
                _ => {}
            },
            Op::Remove(_) => match self.kernel.perform(&step.op) {
                Ok(()) => self.outcome.removed.push(path.clone()),
                Err(error) if error.kind == ErrorKind::Busy => self.busy.push(path),
                Err(error) => self.refuse(&step.op, &error),
            },
            // A refusal to enable one controller may still have enabled the others.
            Op::Enable(..) | Op::Attach(..) | Op::Reclaim(..) => {
                let answer = self.kernel.perform(&step.op);
                self.touch(step, answer.is_ok());
                if let Err(error) = answer {
                    self.refuse(&step.op, &error);
                }
            }
        }
    }

    fn write(&mut self, step: &'a Step, wanted: Setting) {
        if let (Some(bound), Some(stays)) = (hold::lowered_memory(step.before, wanted), step.before)
        {
            return self.lower(step, wanted, bound, stays);
        }
        let answer = self.kernel.perform(&step.op);
        self.touch(step, answer.is_ok());
        match answer {
            Err(error) if error.kind == ErrorKind::Busy && hold::is_busy_bound(wanted) => {
                let held = Held {
                    path: step.op.path().clone(),
                    stays: step.before.unwrap_or(Setting::initial(wanted.file())),
                    wanted,
                    in_use: None,
                    spare: Bytes::ZERO,
                };
                self.outcome.held.push(held);
            }
            Err(error) => self.refuse(&step.op, &error),
            Ok(()) => {}
        }
    }

    /// Lowers a bound of memory, unless the write would kill.
    fn lower(&mut self, step: &'a Step, wanted: Setting, bound: Bytes, stays: Setting) {
        let path = step.op.path();
        let spare = hold::spare(bound, self.kernel.page_size());
        let most = bound.saturating_sub(spare);
        let lowered = self.kernel.look(path).and_then(|node| {
            let node = node.unwrap_or_default();
            self.renew_protection(path, &node);
            match self.make_room(path, most, spare)? {
                Room::Enough => self.lower_now(step, most, &node),
                Room::TooLittle(in_use) => Ok(Room::TooLittle(in_use)),
            }
        });
        self.touch(step, matches!(lowered, Ok(Room::Enough)));
        match lowered {
            Ok(Room::Enough) => {}
            Ok(Room::TooLittle(in_use)) => self.outcome.held.push(Held {
                path: path.clone(),
                stays,
                wanted,
                in_use,
                spare,
            }),
            Err(error) => self.refuse(&step.op, &error),
        }
    }

    /// Before Linux 6.2 reclaim for the bound of a cgroup still spares what `memory.min` protected when reclaim last
    /// came from above ("mm: memcg: fix stale protection of reclaim target memcg"). Above a bound that is smaller
    /// than that nothing is reclaimed, all page cache notwithstanding, and only the OOM killer is left. Reclaim from
    /// above, of a page, lets the kernel look at `memory.min` anew, which has come down before the bound does.
    fn renew_protection(&mut self, path: &CgroupPath, node: &Node) {
        // What hands down controllers has no memory of its own to spare.
        if let Some(above) = path.parent().filter(|_| node.enabled.is_empty()) {
            let page = Bytes(self.kernel.page_size().bytes());
            // That there is nothing to take does not matter: it was looked at.
            let _ = self.kernel.perform(&Op::Reclaim(above, page));
        }
    }

    /// What reclaim can take is no reason to wait, so it is taken first: a page cache fills every limit,
    /// and the bound would never come down. `more` is taken than what is in the way, so that a little that
    /// comes meanwhile does not matter.
    fn make_room(
        &mut self,
        path: &CgroupPath,
        most: Bytes,
        more: Bytes,
    ) -> Result<Room, KernelError> {
        let room = self.room(path, most)?;
        let Room::TooLittle(Some(in_use)) = room else {
            return Ok(room);
        };
        let wanted = in_use.saturating_sub(most).saturating_add(more);
        // What it answers does not matter: what is in use afterwards does.
        let _ = self.kernel.perform(&Op::Reclaim(path.clone(), wanted));
        self.room(path, most)
    }

    /// Writes a bound below which there is room. Growth beyond `most` is throttled meanwhile (`memory.high`), so
    /// that what is in use cannot pass the bound between the last look and the write. Should the agent end in
    /// between, the next pass finds the throttle and takes it off, as it would anybody's.
    fn lower_now(&mut self, step: &'a Step, most: Bytes, node: &Node) -> Result<Room, KernelError> {
        let path = step.op.path();
        let high = node.get(InterfaceFile::MemoryHigh);
        let throttle = Setting::MemoryHigh(Limit::At(most));
        // Where it is lower already, or the kernel has no such file, there is nothing to do.
        let before = high.filter(|high| compare(*high, throttle) == Some(Ordering::Greater));
        let write = |setting| Op::Write(path.clone(), setting);
        let before = before.filter(|_| self.kernel.perform(&write(throttle)).is_ok());
        let lowered = match self.room(path, most) {
            Ok(Room::Enough) => self.kernel.perform(&step.op).map(|()| Room::Enough),
            too_little => too_little,
        };
        if let Some(before) = before
            && let Err(error) = self.kernel.perform(&write(before))
        {
            self.refuse(&write(before), &error);
        }
        lowered
    }

    /// Whether no more than `most` is in use. Not knowing what is in use is a reason to wait as well.
    fn room(&mut self, path: &CgroupPath, most: Bytes) -> Result<Room, KernelError> {
        let in_use = self.kernel.counters(path)?.memory_current;
        Ok(match in_use {
            Some(usage) if usage <= most => Room::Enough,
            in_use => Room::TooLittle(in_use),
        })
    }

    /// A killed process counts until it has exited; by now most have.
    fn remove_the_busy(&mut self) {
        for path in std::mem::take(&mut self.busy) {
            let op = Op::Remove(path.clone());
            match self.kernel.perform(&op) {
                Ok(()) => self.outcome.removed.push(path.clone()),
                Err(error) if error.kind == ErrorKind::Busy => {
                    self.outcome.pending.push(path.clone());
                }
                Err(error) => self.refuse(&op, &error),
            }
        }
    }

    fn read_back(&mut self) {
        for (path, steps) in std::mem::take(&mut self.touched) {
            let (kind, why) = match self.kernel.look(path) {
                Ok(Some(node)) => {
                    self.compare(path, &node, steps);
                    self.outcome.seen.insert(path.clone(), node);
                    continue;
                }
                Ok(None) => {
                    self.outcome.gone.push(path.clone());
                    (ErrorKind::Gone, "the cgroup is gone".to_owned())
                }
                Err(error) => (error.kind, format!("it cannot be read back: {error}")),
            };
            for step in steps {
                self.fail(&step.op, kind, why.clone());
            }
        }
    }

    fn compare(&mut self, path: &CgroupPath, node: &Node, steps: Vec<&Step>) {
        let mut enforced = Node::default();
        for step in steps {
            let instead = match &step.op {
                Op::Write(_, setting) => match node.get(setting.file()) {
                    Some(shown) if shown == *setting => {
                        enforced.set(shown);
                        None
                    }
                    Some(shown) => Some(format!("it reads back {}", shown.value())),
                    None => Some("it cannot be read back".to_owned()),
                },
                Op::Enable(_, controllers) => {
                    enforced.enabled = controllers.common(&node.enabled);
                    let missing = controllers.without(&node.enabled);
                    (!missing.is_empty()).then(|| format!("{missing} reads back as not enabled"))
                }
                _ => None,
            };
            let repair = Repaired {
                op: step.op.clone(),
                found: step.before,
            };
            let is_repair = step.cause == Cause::Drift;
            match instead {
                None if is_repair => self.outcome.repaired.push(repair),
                None => {}
                Some(why) => {
                    self.fail(&step.op, ErrorKind::Other, why);
                    self.outcome.undone.extend(is_repair.then_some(repair));
                }
            }
        }
        self.outcome.enforced.insert(path.clone(), enforced);
    }

    fn touch(&mut self, step: &'a Step, taken: bool) {
        let steps = self.touched.entry(step.op.path()).or_default();
        steps.extend(taken.then_some(step));
    }

    fn refuse(&mut self, op: &Op, error: &KernelError) {
        self.fail(op, error.kind, error.source.to_string());
    }

    fn fail(&mut self, op: &Op, kind: ErrorKind, why: String) {
        let op = op.clone();
        self.outcome.failed.push(Failed { op, kind, why });
    }
}
