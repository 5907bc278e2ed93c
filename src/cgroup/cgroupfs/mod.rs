//! The real kernel behind the seam: one cgroup2 directory that is ours, and nothing outside it.
//!
//! It does what it is told, one operation at a time, and says what the kernel answered. It never
//! decides a value, never retries, and never reports a value it has not read.

mod above;
mod dir;
mod lifecycle;
mod mount;
mod pools;
mod reader;
mod remove;

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

pub use mount::MountOptions;

use self::dir::Dir;
use self::mount::Mount;
use self::reader::OpenTop;
use super::{
    CgroupPath, ControllerSet, Counters, ErrorKind, Hierarchy, InterfaceFile, KernelError, Node,
    Op, Pid, Reader, Setting, Tree, parse,
};
use crate::units::{Bytes, HugePageSize, PageSize};

/// The top cgroup in the kernel.
#[derive(Debug)]
pub struct Cgroupfs {
    top: Arc<Dir>,
    shown: PathBuf,
    mount: Mount,
    /// Its path below the mount.
    below: String,
    refused: Vec<KernelError>,
    ours: fn(&CgroupPath) -> bool,
    page_size: PageSize,
    huge_page_sizes: Vec<HugePageSize>,
    files: Vec<(InterfaceFile, String)>,
}

impl Cgroupfs {
    /// Takes the directory `top`, such as `/sys/fs/cgroup/allot`, as the top cgroup. It is made if
    /// it is not there, and these controllers are enabled in every cgroup above it.
    ///
    /// `ours` names the cgroups that `found` reports: a cgroup it denies is passed over with all
    /// below it.
    ///
    /// # Errors
    /// A path that is not below a cgroup2 mount or leads through a symbolic link, and what the
    /// kernel answered when the top cgroup was made. A controller that could not be enabled is no
    /// error; see `refused`.
    pub fn open(
        top: &Path,
        controllers: &ControllerSet,
        ours: fn(&CgroupPath) -> bool,
    ) -> Result<Self, KernelError> {
        let (mount, below) = Mount::of(top)?;
        let refused = lifecycle::lay(&mount, &below, controllers)?;
        let dir = mount.root.below(&below);
        let dir =
            dir.map_err(|errno| KernelError::new("open", top.display().to_string(), errno))?;
        let huge_page_sizes = pools::huge_page_sizes()?;
        let files = InterfaceFile::all(&huge_page_sizes);
        Ok(Self {
            top: Arc::new(dir),
            shown: top.to_owned(),
            mount,
            below,
            refused,
            ours,
            page_size: PageSize::new(procfs::page_size()).unwrap_or(PageSize::FOUR_KIB),
            huge_page_sizes,
            files: files
                .into_iter()
                .map(|file| (file, file.to_string()))
                .collect(),
        })
    }

    /// Why the top cgroup lacks controllers: one refusal for each cgroup above that did not hand
    /// them down. Empty when it has all that it shall have.
    pub fn refused(&self) -> &[KernelError] {
        &self.refused
    }

    /// How cgroup2 is mounted.
    pub fn mount_options(&self) -> MountOptions {
        self.mount.options
    }

    /// Where a cgroup lies in the file system.
    pub fn directory(&self, path: &CgroupPath) -> PathBuf {
        if path.is_top() {
            self.shown.clone()
        } else {
            self.shown.join(path.as_str())
        }
    }

    fn shown(&self, path: &CgroupPath) -> String {
        self.directory(path).display().to_string()
    }

    fn failed(&self, operation: &str, path: &CgroupPath, errno: Errno) -> KernelError {
        KernelError::new(operation, self.shown(path), errno)
    }

    fn dir(&self, path: &CgroupPath) -> Result<Dir, KernelError> {
        let opened = self.top.below(path.as_str());
        opened.map_err(|errno| self.failed("open", path, errno))
    }

    /// All that `look` tells. A file that is not there is left out, as is one whose text is no
    /// setting, such as the weight 0 of an idle cgroup.
    fn node(&self, path: &CgroupPath, dir: &Dir) -> Result<Node, KernelError> {
        let mut node = Node::default();
        for (file, name) in &self.files {
            if let Some(text) = self.text(path, dir, name)? {
                node.settings
                    .extend(Setting::parse(*file, &text).map(|setting| (*file, setting)));
            }
        }
        // Read last: every cgroup has this file, so it proves that the files which were absent were
        // not absent because the whole cgroup went away.
        let subtree = dir.read("cgroup.subtree_control");
        let subtree = subtree.map_err(|errno| self.failed("read", path, errno))?;
        node.enabled = ControllerSet::parse(&subtree);
        Ok(node)
    }

    /// A file's text; `None` where the file is not there.
    fn text(
        &self,
        path: &CgroupPath,
        dir: &Dir,
        name: &str,
    ) -> Result<Option<String>, KernelError> {
        match dir.read(name) {
            Ok(text) => Ok(Some(text)),
            Err(Errno::NOENT | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => {
                let file = self.directory(path).join(name).display().to_string();
                Err(KernelError::new("read", file, errno))
            }
        }
    }

    fn write(&self, path: &CgroupPath, setting: &Setting) -> Result<(), KernelError> {
        let file = setting.file();
        let place = if path.is_top() {
            file.to_string()
        } else {
            format!("{path}/{file}")
        };
        let value = setting.value();
        // A write of no bytes at all never reaches the file.
        let text = if value.is_empty() { "\n" } else { &value };
        let Err(errno) = self.top.write(&place, text) else {
            return Ok(());
        };
        let operation = format!("write {value} to");
        let shown = self
            .directory(path)
            .join(file.to_string())
            .display()
            .to_string();
        if errno != Errno::NOENT {
            return Err(KernelError::new(operation, shown, errno));
        }
        // Either the cgroup is missing, or only the file.
        let dir = self.dir(path)?;
        let controller = file.controller();
        let has = dir.read("cgroup.controllers");
        let has = has.map_err(|errno| self.failed("read", path, errno))?;
        let why = if ControllerSet::parse(&has).contains(controller) {
            format!("the kernel has no {file}")
        } else {
            lifecycle::not_enabled(&dir, controller.name(), &self.shown(path))
        };
        Err(KernelError::explained(
            operation,
            shown,
            ErrorKind::Unsupported,
            why,
        ))
    }

    fn reclaim(&self, path: &CgroupPath, bytes: Bytes) -> Result<(), KernelError> {
        let operation = format!("reclaim {bytes} from");
        let answer = self.dir(path)?.write("memory.reclaim", &bytes.to_string());
        answer.map_err(|errno| match errno {
            Errno::NOENT => {
                let why = "there is no memory.reclaim";
                let kind = ErrorKind::Unsupported;
                KernelError::explained(operation, self.shown(path), kind, why)
            }
            errno => self.failed(&operation, path, errno),
        })
    }

    fn kill(&self, path: &CgroupPath) -> Result<(), KernelError> {
        self.below_top("kill", path)?;
        let Err(error) = lifecycle::kill(&self.top, path.as_str()) else {
            return Ok(());
        };
        if lifecycle::lacks_kill(&error) {
            self.dir(path)?;
            let why = "the kernel has no cgroup.kill";
            let kind = ErrorKind::Unsupported;
            return Err(KernelError::explained("kill", self.shown(path), kind, why));
        }
        Err(lifecycle::from_crate("kill", &self.shown(path), &error))
    }

    fn remove(&self, path: &CgroupPath) -> Result<(), KernelError> {
        self.below_top("remove", path)?;
        let failed = |errno| self.failed("remove", path, errno);
        let name = CString::new(path.name()).map_err(|_| failed(Errno::INVAL))?;
        let above = path.parent().unwrap_or_default();
        let answer = match self.top.below(above.as_str()) {
            Ok(above) => remove::remove(&above, &name),
            Err(Errno::NOENT | Errno::NODEV) => Ok(()),
            Err(errno) => Err(errno),
        };
        answer.map_err(failed)
    }

    /// The top cgroup stays, and others than us may live in it: systemd's holder, the shims.
    fn below_top(&self, operation: &str, path: &CgroupPath) -> Result<(), KernelError> {
        if path.is_top() {
            let why = "it is the top cgroup";
            let kind = ErrorKind::Invalid;
            return Err(KernelError::explained(
                operation,
                self.shown(path),
                kind,
                why,
            ));
        }
        Ok(())
    }
}

impl Hierarchy for Cgroupfs {
    fn found(&mut self, above: &CgroupPath) -> Result<Tree, KernelError> {
        let mut tree = Tree::default();
        let mut waiting = vec![above.clone()];
        while let Some(path) = waiting.pop() {
            let read = self.dir(&path).and_then(|dir| {
                let node = self.node(&path, &dir)?;
                let children = dir.children();
                let children = children.map_err(|errno| self.failed("read", &path, errno))?;
                Ok((node, children))
            });
            let (node, children) = match read {
                Ok(read) => read,
                Err(error) if error.kind == ErrorKind::Gone && path != *above => continue,
                Err(error) => return Err(error),
            };
            let ours = children
                .iter()
                .filter_map(|name| path.child(name.to_str().ok()?).ok())
                .filter(self.ours);
            waiting.extend(ours);
            tree.insert(path, node);
        }
        Ok(tree)
    }

    fn look(&mut self, path: &CgroupPath) -> Result<Option<Node>, KernelError> {
        match self.dir(path).and_then(|dir| self.node(path, &dir)) {
            Ok(node) => Ok(Some(node)),
            Err(error) if error.kind == ErrorKind::Gone => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn value(
        &mut self,
        path: &CgroupPath,
        file: InterfaceFile,
    ) -> Result<Option<Setting>, KernelError> {
        let text = self
            .dir(path)
            .and_then(|dir| self.text(path, &dir, &file.to_string()));
        match text {
            Ok(text) => Ok(text.and_then(|text| Setting::parse(file, &text))),
            Err(error) if error.kind == ErrorKind::Gone => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn counters(&mut self, path: &CgroupPath) -> Result<Counters, KernelError> {
        let dir = self.dir(path)?;
        let text = |name| self.text(path, &dir, name).map(Option::unwrap_or_default);
        let number = |name| text(name).map(|text| parse::number(&text));
        // In this order: see `Counters::oom`. With this mount option the file says nothing about the
        // cgroups below.
        let whole = text("memory.events")?;
        let whole =
            |key| parse::value(&whole, key).filter(|_| !self.mount.options.memory_localevents);
        let local = text("memory.events.local")?;
        let pids = text("pids.events")?;
        let cpu = text("cpu.stat")?;
        let counters = Counters {
            memory_current: number("memory.current")?.map(Bytes),
            memory_peak: number("memory.peak")?.map(Bytes),
            oom_local: parse::value(&local, "oom"),
            oom: whole("oom"),
            oom_kill_local: parse::value(&local, "oom_kill"),
            oom_kill: whole("oom_kill"),
            oom_group_kill_local: parse::value(&local, "oom_group_kill"),
            oom_group_kill: whole("oom_group_kill"),
            memory_max_local: parse::value(&local, "max"),
            pids_current: number("pids.current")?,
            pids_peak: number("pids.peak")?,
            pids_refused: parse::value(&pids, "max"),
            cpu_usage_usec: parse::value(&cpu, "usage_usec"),
            cpu_throttled_periods: parse::value(&cpu, "nr_throttled"),
            cpu_throttled_usec: parse::value(&cpu, "throttled_usec"),
            populated: None,
        };
        // Read last: it proves that the cgroup was there all the time (see `node`).
        let events = dir.read("cgroup.events");
        let events = events.map_err(|errno| self.failed("read", path, errno))?;
        Ok(Counters {
            populated: parse::value(&events, "populated").map(|populated| populated != 0),
            ..counters
        })
    }

    fn reader(&mut self) -> Arc<dyn Reader> {
        Arc::new(OpenTop {
            top: Arc::clone(&self.top),
            shown: self.shown.clone(),
            huge_page_sizes: self.huge_page_sizes.clone(),
        })
    }

    fn processes(&mut self, path: &CgroupPath) -> Result<Vec<Pid>, KernelError> {
        let text = self.dir(path)?.read_records("cgroup.procs");
        let text = text.map_err(|errno| self.failed("read processes of", path, errno))?;
        Ok(parse::processes(&text))
    }

    fn perform(&mut self, op: &Op) -> Result<(), KernelError> {
        match op {
            Op::Create(path) if path.is_top() => Ok(()),
            Op::Create(path) => match self.top.make(path.as_str()) {
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(errno) => Err(self.failed("create", path, errno)),
            },
            Op::Enable(path, controllers) => {
                lifecycle::enable(&self.dir(path)?, &self.shown(path), controllers)
            }
            Op::Write(path, setting) => self.write(path, setting),
            Op::Reclaim(path, bytes) => self.reclaim(path, *bytes),
            Op::Attach(path, pid) => {
                lifecycle::attach(&self.top, path.as_str(), &self.shown(path), *pid)
            }
            Op::Kill(path) => self.kill(path),
            Op::Remove(path) => self.remove(path),
        }
    }

    fn controllers(&mut self) -> Result<ControllerSet, KernelError> {
        let path = CgroupPath::top();
        let text = self.top.read("cgroup.controllers");
        let text = text.map_err(|errno| self.failed("read controllers of", &path, errno))?;
        Ok(ControllerSet::parse(&text))
    }

    fn page_size(&self) -> PageSize {
        self.page_size
    }

    fn huge_page_sizes(&self) -> &[HugePageSize] {
        &self.huge_page_sizes
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<_> = self.refused.iter().map(ToString::to_string).collect();
        if self.mount.options.memory_localevents {
            remarks.push(
                "cgroup2 is mounted with memory_localevents: OOM kills in cgroups that are gone are not counted"
                    .to_owned(),
            );
        }
        remarks.extend(above::bounds(&self.mount, &self.below));
        remarks
    }
}
