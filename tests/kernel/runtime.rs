//! Programs started through the shim, in real cgroups.

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use allotd::model::PodUid;
use allotd::observation::storage::usage;
use allotd::runtime::record::LogBounds;
use allotd::runtime::{
    AttemptId, AttemptState, ContainerId, ContainerSpec, Errands, Exit, ExitReason, Runtime,
};
use nix::mount::{MsFlags, mount, umount};

use crate::Outcome;
use crate::support::{Cgroup, read};

tests![
    a_program_is_in_its_cgroup_from_its_first_instruction,
    a_program_is_in_its_cgroup_without_clone3,
    the_shim_survives_the_oom_kill_of_its_program,
    cgroup_kill_ends_the_program_and_its_children,
    a_cgroup_that_takes_no_process_is_named,
    a_mount_in_the_scratch_space_is_neither_counted_nor_removed,
];

const TOP: &str = "/sys/fs/cgroup";

/// A runtime with a cgroup for shims, and one container with a cgroup for its program.
struct Node {
    runtime: Runtime,
    app: Cgroup,
}

impl Node {
    fn new() -> Result<Self, Box<dyn Error>> {
        let root = Cgroup::root();
        root.enable(&["memory", "pids"])?;
        root.child("shims")?;
        let pod = root.child("pod1")?;
        pod.enable(&["memory", "pids"])?;
        let runtime = Runtime {
            state: "/tmp/state".into(),
            logs: "/tmp/logs".into(),
            errands: Errands::Own("/bin/allotd".into()),
            shim_cgroup: Some(Path::new(TOP).join("shims")),
        };
        let app = pod.child("app")?;
        Ok(Self { runtime, app })
    }

    fn spec(argv: &[&str]) -> Result<ContainerSpec, Box<dyn Error>> {
        Ok(ContainerSpec {
            id: id()?,
            argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
            env: Vec::new(),
            working_dir: None,
            cgroup: Some(Path::new(TOP).join("pod1/app")),
            oom_score_adj: 500,
            volumes: Vec::new(),
            mounts: Vec::new(),
            projects: Vec::new(),
            security: allotd::model::security::Security::default(),
            log: LogBounds::default(),
        })
    }

    fn start(&self, argv: &[&str]) -> Result<AttemptState, Box<dyn Error>> {
        Ok(self.runtime.start(&Self::spec(argv)?)?)
    }

    fn exit(&self) -> Result<Exit, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        match runtime.block_on(self.runtime.wait(&id()?))? {
            AttemptState::Exited(exit) => Ok(exit),
            other => Err(format!("{other:?}").into()),
        }
    }

    fn log(&self) -> Result<String, Box<dyn Error>> {
        Ok(read(self.runtime.log_path(&id()?))?)
    }
}

fn id() -> Result<AttemptId, Box<dyn Error>> {
    let uid = PodUid::new("u-1").ok_or("uid")?;
    Ok(ContainerId::new("default", "web", uid, "app")?.attempt(0))
}

fn of(pid: i32, file: &str) -> std::io::Result<String> {
    read(format!("/proc/{pid}/{file}"))
}

/// The shims, as the kernel lists them in their cgroup.
fn shims() -> std::io::Result<Vec<i32>> {
    let pids = read(Path::new(TOP).join("shims/cgroup.procs"))?;
    Ok(pids.lines().filter_map(|pid| pid.parse().ok()).collect())
}

/// The program reads where it is as the first thing it does; the shim is elsewhere, protected.
fn check_placement() -> Outcome {
    let node = Node::new()?;
    node.start(&["cat", "/proc/self/cgroup", "/proc/self/oom_score_adj", "-"])?;
    node.exit()?;
    let log = node.log()?;
    let lines: Vec<_> = log
        .lines()
        .filter_map(|line| line.split(" F ").nth(1))
        .collect();
    assert_eq!(lines, ["0::/pod1/app", "500"], "{log}");
    assert_eq!(node.app.read("cgroup.procs")?, "");

    let mut again = Node::spec(&["sleep", "1000"])?;
    again.id.attempt = 1;
    let AttemptState::Running(running) = node.runtime.start(&again)? else {
        return Err("it does not run".into());
    };
    let pid = running.process.pid;
    assert_eq!(node.app.read("cgroup.procs")?, pid.to_string());
    assert_eq!(of(pid, "comm")?, "sleep");
    let [shim] = shims()?[..] else {
        return Err(format!("shims: {:?}", shims()?).into());
    };
    assert_eq!(of(shim, "cgroup")?, "0::/shims");
    assert_eq!(of(shim, "oom_score_adj")?, "-999");
    assert_eq!(of(pid, "oom_score_adj")?, "500");
    Ok(())
}

fn a_program_is_in_its_cgroup_from_its_first_instruction() -> Outcome {
    check_placement()
}

/// A filter as container engines install it answers ENOSYS to clone3; placement must hold all the same.
fn a_program_is_in_its_cgroup_without_clone3() -> Outcome {
    forbid_clone3()?;
    check_placement()
}

#[allow(unsafe_code)] // no library here offers seccomp
fn forbid_clone3() -> Outcome {
    use nix::libc;
    let statement =
        |code: u32, k: u32, jt: u8, jf: u8| -> Result<libc::sock_filter, Box<dyn Error>> {
            let code = u16::try_from(code)?;
            Ok(libc::sock_filter { code, jt, jf, k })
        };
    let mut program = [
        // The number of the system call is the first word of the data.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)?,
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            u32::try_from(libc::SYS_clone3)?,
            0,
            1,
        )?,
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
            0,
            0,
        )?,
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0)?,
    ];
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len())?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the program during the call.
    let answer = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        )
    };
    nix::errno::Errno::result(answer)?;
    // SAFETY: with no arguments the call could only fail.
    let clone3 = unsafe { libc::syscall(libc::SYS_clone3, 0, 0) };
    assert_eq!((clone3, nix::errno::Errno::last_raw()), (-1, libc::ENOSYS));
    Ok(())
}

fn the_shim_survives_the_oom_kill_of_its_program() -> Outcome {
    let node = Node::new()?;
    node.app.write("memory.max", "16777216")?;
    node.start(&["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", "count=1"])?;
    let exit = node.exit()?;
    assert_eq!((exit.exit_code, exit.signal), (137, Some(9)), "{exit:?}");
    assert_eq!(exit.reason, ExitReason::Error);
    let events = node.app.read("memory.events.local")?;
    assert!(events.contains("oom_kill 1"), "{events}");
    // What the shim itself uses is not the program's.
    assert_eq!(
        read(Path::new(TOP).join("shims/memory.events.local"))?
            .matches("oom 0")
            .count(),
        1
    );
    Ok(())
}

fn cgroup_kill_ends_the_program_and_its_children() -> Outcome {
    let node = Node::new()?;
    let script = "trap '' TERM; sleep 1000 & sleep 1000 & echo here; wait; echo not here";
    node.start(&["sh", "-c", script])?;
    let deadline = Instant::now() + Duration::from_secs(20);
    while node.app.read("cgroup.procs")?.lines().count() < 3 || node.log()?.is_empty() {
        assert!(
            Instant::now() < deadline,
            "{}",
            node.app.read("cgroup.procs")?
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    node.app.write("cgroup.kill", "1")?;
    let exit = node.exit()?;
    assert_eq!((exit.exit_code, exit.signal), (137, Some(9)));
    assert!(node.log()?.ends_with("stdout F here"), "{}", node.log()?);
    while !node.app.read("cgroup.events")?.contains("populated 0") {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn a_cgroup_that_takes_no_process_is_named() -> Outcome {
    let node = Node::new()?;
    let ran = node.runtime.scratch_dir(&id()?.container).join("ran");
    let mut attempt = 0;
    let mut refused = |cgroup: PathBuf| -> Result<String, Box<dyn Error>> {
        let mut spec = Node::spec(&["touch", "ran"])?;
        spec.id.attempt = attempt;
        spec.cgroup = Some(cgroup);
        attempt += 1;
        match node.runtime.start(&spec)? {
            AttemptState::Exited(exit) => {
                assert_eq!((exit.exit_code, exit.reason), (128, ExitReason::StartError));
                assert!(!ran.exists(), "it ran");
                Ok(exit.message)
            }
            other => Err(format!("{other:?}").into()),
        }
    };
    let message = refused(Path::new(TOP).join("pod2/app"))?;
    assert!(message.contains("pod2/app: No such file"), "{message}");
    // Inner cgroups with controllers take no process.
    let message = refused(Path::new(TOP).join("pod1"))?;
    assert!(
        message.contains("controllers for its children"),
        "{message}"
    );
    node.app.write("pids.max", "0")?;
    let message = refused(Path::new(TOP).join("pod1/app"))?;
    assert!(
        message.contains("a limit of processes is reached"),
        "{message}"
    );
    Ok(())
}

fn a_mount_in_the_scratch_space_is_neither_counted_nor_removed() -> Outcome {
    let node = Node::new()?;
    node.start(&["sh", "-c", "mkdir mounted bound"])?;
    assert_eq!(node.exit()?.exit_code, 0);
    let container = id()?.container;
    let scratch = node.runtime.scratch_dir(&container);
    let nothing = None::<&str>;
    let (mounted, bound) = (scratch.join("mounted"), scratch.join("bound"));
    let flags = MsFlags::empty();
    mount(Some("tmpfs"), &mounted, Some("tmpfs"), flags, nothing)?;
    // The same file system seen again: only the mount tells.
    fs::create_dir("/tmp/elsewhere")?;
    let flags = MsFlags::MS_BIND;
    mount(Some("/tmp/elsewhere"), &bound, nothing, flags, nothing)?;
    let mut canaries = Vec::new();
    for dir in [&mounted, &bound] {
        fs::write(dir.join("canary"), vec![1; 1 << 20])?;
        canaries.push(fs::File::open(dir.join("canary"))?);
    }
    let seen = usage(&[&node.runtime.pod_dir(&container)])?;
    assert!(seen.bytes < 1 << 20 && !seen.partial, "{seen:?}");
    let refusal = node.runtime.remove_pod(&container);
    assert!(refusal.is_err());
    for canary in canaries {
        assert_eq!(canary.metadata()?.nlink(), 1, "a mounted file is gone");
    }
    // Directories may have moved by now, and mounts with them.
    let mounts = read("/proc/self/mounts")?;
    let targets = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    for target in targets.filter(|target| target.starts_with("/tmp/state/")) {
        umount(target)?;
    }
    node.runtime.remove_pod(&container)?;
    assert!(!node.runtime.pod_dir(&container).exists());
    assert!(Path::new("/tmp/elsewhere/canary").exists());
    Ok(())
}
