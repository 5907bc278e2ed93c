//! Process 1 of the test machine: sets the machine up, does the one thing it was booted for, powers off.
//!
//! The first serial port belongs to the kernel's console and to the two marks `scripts/vm` looks for (`allot-vm: init`
//! and `allot-vm: exit N`). The second carries what a person wants to read.

use crate::Outcome;
use crate::runner::{self, supervise};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::termios::{self, OutputFlags, SetArg};
use std::error::Error;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where the person reads.
const TERMINAL: &str = "/dev/ttyS1";
/// What is mounted where, with its options. Those of cgroup2 are the ones systemd uses.
const MOUNTS: &[(&str, &str, &str)] = &[
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devtmpfs", "/dev", ""),
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", ""),
    ("tmpfs", "/run", "mode=755"),
    ("tmpfs", "/tmp", ""),
    (
        "cgroup2",
        "/sys/fs/cgroup",
        "nsdelegate,memory_recursiveprot",
    ),
];

/// Runs the machine from start to power-off. `arguments` come from the kernel's command line, after `--`:
/// `tests PART/PARTS [FILTER]`, `script` or `shell`.
pub fn run(arguments: &[String]) -> ! {
    let status = set_up()
        .and_then(|()| work(arguments))
        .unwrap_or_else(|error| {
            println!("allot-vm: {error}");
            1
        });
    mark(&format!("exit {status}"));
    let refusal = reboot(RebootMode::RB_POWER_OFF);
    // Process 1 must not return. Its panic makes the kernel panic, which ends the machine as well.
    panic!("the machine does not power off: {refusal:?}");
}

fn set_up() -> Outcome {
    for (kind, target, options) in MOUNTS {
        fs::create_dir_all(target)?;
        mount(
            Some(*kind),
            *target,
            Some(*kind),
            MsFlags::empty(),
            Some(*options),
        )
        .map_err(|error| format!("cannot mount {kind} on {target}: {error}"))?;
    }
    mark("init");
    for (name, target) in [
        ("fd", "fd"),
        ("stdin", "fd/0"),
        ("stdout", "fd/1"),
        ("stderr", "fd/2"),
    ] {
        symlink(format!("/proc/self/{target}"), format!("/dev/{name}"))?;
    }
    name_disks()?;
    nix::unistd::sethostname("allot-vm")?;
    let loopback = supervise(
        command("/bin/ip").args(["link", "set", "lo", "up"]),
        Duration::from_secs(10),
    )?;
    match loopback.exit_code() {
        0 => Ok(()),
        _ => Err(format!("cannot bring the loopback interface up: ip {loopback}").into()),
    }
}

/// The disks by what is on them: which of them the kernel finds first is a matter of chance.
fn name_disks() -> Outcome {
    for (number, name) in [("1", "ext4"), ("2", "xfs")] {
        let started = Instant::now();
        let device = loop {
            if let Some(device) = disk(number)? {
                break device;
            }
            if started.elapsed() > Duration::from_secs(10) {
                return Err(format!("the disk for {name} does not appear").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        symlink(device, format!("/dev/{name}"))?;
    }
    Ok(())
}

/// The name of the disk that `scripts/vm` has given this number.
fn disk(number: &str) -> io::Result<Option<OsString>> {
    for entry in fs::read_dir("/sys/block")? {
        let entry = entry?;
        let own = fs::read_to_string(entry.path().join("nsid"));
        let is_there = || Path::new("/dev").join(entry.file_name()).exists();
        if own.is_ok_and(|own| own.trim_end() == number) && is_there() {
            return Ok(Some(entry.file_name()));
        }
    }
    Ok(None)
}

/// Does what the machine was booted for and returns the status `scripts/vm` ends with.
fn work(arguments: &[String]) -> Result<i32, Box<dyn Error>> {
    let mut terminal = File::options().read(true).write(true).open(TERMINAL)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let status = match arguments.as_slice() {
        ["tests", share, filter @ ..] => {
            end_lines_as_written(&terminal)?;
            let filter = filter.first().copied().unwrap_or_default();
            let all_passed = runner::run_all(&terminal, share.parse()?, filter)?;
            i32::from(!all_passed)
        }
        ["script", ..] => {
            end_lines_as_written(&terminal)?;
            run_on(&terminal, script()?)?
        }
        ["shell", ..] => {
            writeln!(
                terminal,
                "allot and allotd are in /bin; `exit` or ctrl-a x ends the machine"
            )?;
            let mut shell = command("/bin/setsid");
            shell.args(["-c", "/bin/sh"]).stdin(terminal.try_clone()?);
            run_on(&terminal, shell)?
        }
        _ => return Err(format!("init knows tests, script and shell, not {arguments:?}").into()),
    };
    // Opened anew, because the end of a shell hangs up its terminal.
    termios::tcdrain(File::options().write(true).open(TERMINAL)?)?;
    Ok(status)
}

/// A command with the environment that every process of the machine gets.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs([("PATH", "/bin"), ("HOME", "/root"), ("TERM", "linux")])
        .current_dir("/root")
        .stdin(Stdio::null());
    command
}

/// `/script`, where `scripts/vm` put it: a program is executed, anything else is read by the shell.
fn script() -> io::Result<Command> {
    let mut magic = [0; 4];
    let length = File::open("/script")?.read(&mut magic)?;
    if magic.get(..length) == Some(b"\x7fELF") {
        return Ok(command("/script"));
    }
    let mut shell = command("/bin/sh");
    shell.arg("/script");
    Ok(shell)
}

fn run_on(terminal: &File, mut command: Command) -> io::Result<i32> {
    command
        .stdout(terminal.try_clone()?)
        .stderr(terminal.try_clone()?);
    Ok(supervise(&mut command, Duration::MAX)?.exit_code())
}

/// The other side of the port is a file then, not a screen.
fn end_lines_as_written(terminal: &File) -> Outcome {
    let mut settings = termios::tcgetattr(terminal)?;
    settings.output_flags.remove(OutputFlags::OPOST);
    termios::tcsetattr(terminal, SetArg::TCSANOW, &settings)?;
    Ok(())
}

/// Puts one line on the console, whole whatever the kernel prints meanwhile.
fn mark(text: &str) {
    if let Err(error) = fs::write("/dev/kmsg", format!("<1>allot-vm: {text}")) {
        println!("allot-vm: cannot write /dev/kmsg: {error}");
    }
}
