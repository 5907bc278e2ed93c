//! OOM kills as the kernel's log tells them: who was killed, how large it was, and for whose limit.
//!
//! The log is a witness, not the count: records are overwritten, and reports are cut to ten in five
//! seconds, but for the line that names the victim. So each such line makes a [`Kill`], with whatever
//! else of its report was seen. Nothing here reads a file but `reader`.

mod reader;
#[cfg(test)]
mod tests;
mod text;

pub use reader::{KMSG, Reader};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use text::{Killed, Line, Record, Summary};

/// Why memory could not be had, in the kernel's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Constraint {
    /// The limit of a cgroup.
    #[serde(rename = "CONSTRAINT_MEMCG")]
    Memcg,
    /// The whole node had none left.
    #[serde(rename = "CONSTRAINT_NONE")]
    None,
    /// The memory nodes of a cpuset had none left.
    #[serde(rename = "CONSTRAINT_CPUSET")]
    Cpuset,
    /// The memory nodes of a policy had none left.
    #[serde(rename = "CONSTRAINT_MEMORY_POLICY")]
    MemoryPolicy,
}

impl Constraint {
    fn of(text: &[u8]) -> Option<Self> {
        match text {
            b"CONSTRAINT_MEMCG" => Some(Self::Memcg),
            b"CONSTRAINT_NONE" => Some(Self::None),
            b"CONSTRAINT_CPUSET" => Some(Self::Cpuset),
            b"CONSTRAINT_MEMORY_POLICY" => Some(Self::MemoryPolicy),
            _ => None,
        }
    }
}

/// How large a process was when it was killed. What the kernel did not say is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Its address space (bytes).
    pub total_vm_bytes: Option<u64>,
    /// Memory of its own (bytes).
    pub anon_rss_bytes: Option<u64>,
    /// Memory that files back (bytes).
    pub file_rss_bytes: Option<u64>,
    /// Shared memory and tmpfs (bytes).
    pub shmem_rss_bytes: Option<u64>,
    /// Its page tables (bytes).
    pub page_table_bytes: Option<u64>,
    /// `oom_score_adj`
    pub oom_score_adj: Option<i32>,
}

/// What is known of the report that a kill belongs to. Reports are cut to ten in five seconds; then all
/// is absent but the constraint of a cgroup's limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Why memory could not be had.
    pub constraint: Option<Constraint>,
    /// The cgroup whose limit was hit, from the kernel's root.
    pub oom_memcg: Option<String>,
    /// The victim's cgroup, from the kernel's root.
    pub task_memcg: Option<String>,
    /// What the cgroup whose limit was hit used (bytes).
    pub usage_bytes: Option<u64>,
    /// That limit (bytes).
    pub limit_bytes: Option<u64>,
    /// What it was used for, as `memory.stat` has it: figures by their names in it (bytes).
    pub stat: BTreeMap<&'static str, u64>,
    /// The name of the process that asked for memory; it need not be the victim.
    pub asked_by: Option<String>,
    /// What kind of memory it asked for, such as `0xcc0(GFP_KERNEL)`.
    pub gfp_mask: Option<String>,
    /// It asked for 2 to this power pages.
    pub order: Option<i32>,
    /// The cgroup all processes of which were to be killed.
    pub group: Option<String>,
}

/// A process that the kernel says it has killed for lack of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Which report it belongs to: its kills have the same number.
    pub report: u64,
    /// The number of its record since boot.
    pub sequence: u64,
    /// Microseconds since boot, suspension not counted.
    pub micros: u64,
    /// The id of the victim's thread that held the memory; that of the process but where its first
    /// thread had ended.
    pub pid: i32,
    /// The process, where the report names another than `pid`.
    pub process: Option<i32>,
    /// The victim's name, at the most 15 bytes; what is no UTF-8 is U+FFFD.
    pub name: String,
    /// Its owner, as the first user namespace knows it.
    pub uid: Option<u32>,
    /// How large it was.
    pub sizes: Sizes,
    /// What is known of the report.
    pub cause: Cause,
}

/// What a record of the log tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A process was killed.
    Kill(Box<Kill>),
    /// The kill that was told last, in this report, began a group kill.
    Group(u64),
    /// So many records were overwritten before anybody read them.
    Lost(u64),
}

/// A longer summary is given up (bytes): two paths, each at the most 4096 bytes, and little else.
const MAX_SUMMARY: usize = 16 * 1024;

/// Follows the log record by record. Reports do not interleave, since the kernel makes one at a time;
/// other records may stand between their lines.
#[derive(Debug, Default)]
pub struct Reports {
    /// The number of the record read last.
    last: Option<u64>,
    /// The number of the present report; reports are counted.
    report: u64,
    cause: Cause,
    /// Lines of `memory.stat` may follow.
    in_stat: bool,
    /// The one line of the report, which may arrive in pieces.
    summary: Vec<u8>,
    /// The victim told first: a group kill names it again.
    first: Option<i32>,
}

impl Reports {
    /// What one record tells, as a single read of `/dev/kmsg` gives it, and before it how many were lost.
    /// Records that programs wrote tell nothing.
    pub fn take(&mut self, bytes: &[u8]) -> (Option<Told>, Option<Told>) {
        let Some((sequence, record)) = text::record(bytes) else {
            return (None, None);
        };
        let expected = self.last.replace(sequence).map(|last| last.wrapping_add(1));
        let lost = expected
            .and_then(|expected| sequence.checked_sub(expected))
            .filter(|lost| *lost > 0);
        if lost.is_some() {
            self.begin();
        }
        (
            lost.map(Told::Lost),
            record.and_then(|record| self.read(&record)),
        )
    }

    fn read(&mut self, record: &Record) -> Option<Told> {
        if self.continue_summary(record) {
            return None;
        }
        let Some(line) = text::line(&record.text) else {
            if self.in_stat {
                self.cause.stat.extend(text::stat(&record.text));
            }
            return None;
        };
        self.in_stat = false;
        match line {
            Line::Invoked {
                name,
                gfp_mask,
                order,
            } => {
                self.begin();
                self.cause.asked_by = Some(name);
                self.cause.gfp_mask = Some(gfp_mask);
                self.cause.order = Some(order);
            }
            Line::Usage {
                usage_kib,
                limit_kib,
            } => {
                self.begin_after_kill();
                self.cause.usage_bytes = usage_kib.checked_mul(1024);
                self.cause.limit_bytes = limit_kib.checked_mul(1024);
            }
            Line::StatsOf(path) => {
                self.begin_after_kill();
                self.cause.oom_memcg = Some(path);
                self.in_stat = true;
            }
            Line::LimitOf { victim, limit } => {
                self.begin_after_kill();
                self.cause.constraint = Some(Constraint::Memcg);
                self.cause.oom_memcg = Some(limit);
                self.cause.task_memcg = Some(victim);
            }
            Line::Summary(summary) => {
                self.begin_after_kill();
                self.summary = summary;
            }
            Line::Choosing { memcg } => {
                self.begin_after_kill();
                self.choose(memcg);
            }
            Line::NoVictim => self.begin(),
            Line::Group(path) => {
                self.first?;
                self.cause.group = Some(path);
                return Some(Told::Group(self.report));
            }
            Line::Killed(killed) => return self.kill(record, killed),
        }
        None
    }

    /// A piece of the summary that is not at its end yet.
    fn continue_summary(&mut self, record: &Record) -> bool {
        if !record.continues || self.summary.is_empty() || text::is_whole(&self.summary) {
            return false;
        }
        self.summary.extend_from_slice(&record.text);
        self.summary.truncate(MAX_SUMMARY);
        true
    }

    /// Another report.
    fn begin(&mut self) {
        *self = Self {
            last: self.last,
            report: self.report.wrapping_add(1),
            ..Self::default()
        };
    }

    /// The same line cannot stand twice in a report: where its first one was suppressed, this begins it.
    fn begin_after_kill(&mut self) {
        if self.first.is_some() {
            self.begin();
        }
    }

    fn choose(&mut self, memcg: bool) {
        let said = if memcg {
            Constraint::Memcg
        } else {
            Constraint::None
        };
        self.cause.constraint.get_or_insert(said);
    }

    fn kill(&mut self, record: &Record, killed: Killed) -> Option<Told> {
        // Several victims of one report are those of a group kill.
        if self.cause.group.is_none() {
            self.begin_after_kill();
        }
        if self.first == Some(killed.pid) {
            return None;
        }
        self.first.get_or_insert(killed.pid);
        let summary = text::summary(
            &std::mem::take(&mut self.summary),
            &killed.name,
            self.cause.oom_memcg.as_deref(),
        );
        let mut kill = Kill {
            report: self.report,
            sequence: record.sequence,
            micros: record.micros,
            pid: killed.pid,
            process: None,
            name: text::lossy(&killed.name),
            uid: killed.uid,
            sizes: killed.sizes,
            cause: Cause::default(),
        };
        if let Some(Summary {
            constraint,
            oom_memcg,
            task_memcg,
            pid,
            uid,
        }) = summary
        {
            self.cause.constraint = Some(constraint);
            self.cause.oom_memcg = oom_memcg;
            self.cause.task_memcg = Some(task_memcg);
            kill.process = (pid != kill.pid).then_some(pid);
            kill.uid.get_or_insert(uid);
        }
        if let Some(memcg) = killed.memcg {
            self.choose(memcg);
        }
        kill.cause = self.cause.clone();
        Some(Told::Kill(Box::new(kill)))
    }
}
