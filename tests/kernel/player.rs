//! Processes that play a part in a test: they wait, eat memory or start threads on command.
//!
//! A player is this very program. It does nothing until `go`, so that it can be put into a cgroup first.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, Stdio};

use allotd::cgroup::Pid;

/// A playing process. It is killed when dropped.
pub struct Player(Child);

impl Player {
    /// Starts a process that will eat `mib` MiB of memory and end.
    pub fn eats(mib: u32) -> io::Result<Self> {
        Self::start("eat", &mib.to_string())
    }

    /// Starts a process that will start `number` threads and end with status 1 if one was refused.
    pub fn starts_threads(number: u32) -> io::Result<Self> {
        Self::start("start-threads", &number.to_string())
    }

    /// Starts a process that stays until it is killed or `go` is called.
    pub fn waits() -> io::Result<Self> {
        Self::start("wait", "")
    }

    /// Starts a process that will take `mib` MiB and keep them until it is killed; see `take`.
    pub fn holds(what: Holding, mib: u32) -> io::Result<Self> {
        let part = match what {
            Holding::Memory => "hold-memory",
            Holding::Cache => "hold-cache",
            Holding::HugePages => "hold-huge-pages",
        };
        Self::start(part, &mib.to_string())
    }

    fn start(part: &str, amount: &str) -> io::Result<Self> {
        Command::new(std::env::current_exe()?)
            .args(["play", part, amount])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map(Self)
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        Pid(self.0.id().try_into().unwrap_or(i32::MAX))
    }

    /// Lets it begin.
    pub fn go(&mut self) {
        drop(self.0.stdin.take());
    }

    /// Lets one that holds begin, and waits until it has what it shall hold.
    pub fn take(&mut self) -> io::Result<()> {
        self.go();
        let output = self.0.stdout.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        match BufReader::new(output).read_line(&mut String::new())? {
            0 => Err(io::Error::other("it ended before it had everything")),
            _ => Ok(()),
        }
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> io::Result<bool> {
        self.0.try_wait().map(|status| status.is_none())
    }

    /// Waits for its end: its exit status, or the signal that ended it.
    pub fn ending(&mut self) -> io::Result<Ending> {
        let status = self.0.wait()?;
        Ok(Ending {
            status: status.code(),
            signal: status.signal(),
        })
    }

    /// The cgroup it is in, as the kernel tells it: a path from the root.
    pub fn cgroup(&self) -> io::Result<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/cgroup", self.pid()))?;
        Ok(text.trim_end().trim_start_matches("0::").to_owned())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a process can hold.
#[derive(Clone, Copy)]
pub enum Holding {
    /// Anonymous memory, which cannot be reclaimed without swap.
    Memory,
    /// The pages of `CACHED`, written back, which can be reclaimed.
    Cache,
    /// Huge pages of 2 MiB.
    HugePages,
}

/// The file that `Holding::Cache` writes. The test mounts a disk there.
pub const CACHED: &str = "/tmp/disk/cached";

/// How a player ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ending {
    pub status: Option<i32>,
    pub signal: Option<i32>,
}

impl Ending {
    pub const KILLED: Self = Self {
        status: None,
        signal: Some(libc::SIGKILL),
    };
}

/// Plays a part, in the process that `Player` started.
pub fn play(arguments: &[String]) -> ExitCode {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let begun = io::copy(&mut io::stdin(), &mut io::sink());
    let played = match (begun, arguments.as_slice()) {
        (Ok(_), ["wait", _]) => true,
        (Ok(_), ["eat", mib]) => mib.parse().is_ok_and(eat),
        (Ok(_), ["map-huge-pages", number]) => number.parse().is_ok_and(huge::map),
        (Ok(_), ["hold-memory", mib]) => hold(
            mib.parse()
                .map_err(io::Error::other)
                .map(|mib: usize| vec![1_u8; mib << 20]),
        ),
        (Ok(_), ["hold-cache", mib]) => hold(mib.parse().map_err(io::Error::other).and_then(cache)),
        (Ok(_), ["hold-huge-pages", mib]) => {
            hold(mib.parse().map_err(io::Error::other).and_then(huge_pages))
        }
        (Ok(_), ["make-files", number]) => number.parse().is_ok_and(make_files),
        (Ok(_), ["start-threads", number]) => number.parse().is_ok_and(start_threads),
        _ => false,
    };
    ExitCode::from(u8::from(!played))
}

fn eat(mib: usize) -> bool {
    // Written to, or the kernel would give no memory for it.
    let eaten: Vec<_> = (0..mib).map(|_| vec![1_u8; 1 << 20]).collect();
    std::hint::black_box(&eaten).len() == mib
}

/// Makes empty files where it is, tells so, and stays.
fn make_files(number: u32) -> bool {
    let made = (0..number).try_for_each(|file| File::create(format!("f{file}")).map(drop));
    made.is_ok() && hold(Ok(()))
}

fn start_threads(number: usize) -> bool {
    let threads = (0..number).map(|_| std::thread::Builder::new().spawn(std::thread::park));
    threads.filter_map(Result::ok).count() == number
}

/// Huge pages, which only `mmap` gives.
mod huge {
    #![allow(unsafe_code)]

    const SIZE: usize = 2 << 20;

    /// Maps and touches `number` huge pages one after the other, and says how many it got.
    pub fn map(number: usize) -> bool {
        let got = (0..number).take_while(|_| map_one()).count();
        println!("{got} of {number} huge pages");
        got == number
    }

    fn map_one() -> bool {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists; the
        // byte written lies in it.
        unsafe {
            let page = libc::mmap(std::ptr::null_mut(), SIZE, access, flags, -1, 0);
            if page == libc::MAP_FAILED {
                return false;
            }
            page.cast::<u8>().write_volatile(1);
        }
        true
    }
}
/// Says that it is there and keeps it; comes back only where it is not there.
fn hold<T>(taken: io::Result<T>) -> bool {
    let told = taken.and_then(|taken| writeln!(io::stdout(), "taken").map(|()| taken));
    let Ok(_taken) = told else { return false };
    loop {
        std::thread::park();
    }
}

fn cache(mib: usize) -> io::Result<File> {
    let mut file = File::create(CACHED)?;
    for _ in 0..mib {
        file.write_all(&vec![1_u8; 1 << 20])?;
    }
    // What is dirty cannot be reclaimed at once.
    file.sync_all()?;
    Ok(file)
}

fn huge_pages(mib: u64) -> io::Result<std::os::fd::OwnedFd> {
    use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
    let file = memfd_create(c"huge", MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB)?;
    fallocate(&file, FallocateFlags::empty(), 0, mib << 20)?;
    Ok(file)
}
