//! The texts of the kernel log: one record as `/dev/kmsg` hands it out, and the lines of an OOM report.
//!
//! Decides what a line says, taken alone. It must never trust a name in it: names of processes and of
//! cgroups are chosen by whoever owns them, so each line is anchored where no name can reach.

use super::{Constraint, Sizes};

/// A record that the kernel itself wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Counts all records since boot; a gap is records that were overwritten.
    pub sequence: u64,
    /// Microseconds since boot.
    pub micros: u64,
    /// A piece that continues the record before.
    pub continues: bool,
    /// The text, its escapes undone.
    pub text: Vec<u8>,
}

/// The head of a record: its sequence number, and the record if the kernel wrote it. Programs can write
/// records too, of any facility but the kernel's, which is 0.
pub(super) fn record(bytes: &[u8]) -> Option<(u64, Option<Record>)> {
    let (head, text) = split(bytes, b";")?;
    let mut fields = std::str::from_utf8(head).ok()?.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let sequence = fields.next()?.parse().ok()?;
    let micros = fields.next()?.parse().ok()?;
    let flags = fields.next().unwrap_or("-");
    // What follows the first line is a dictionary.
    let text = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let record = (priority <= 7).then(|| Record {
        sequence,
        micros,
        continues: flags == "c",
        text: unescaped(text),
    });
    Some((sequence, record))
}

/// Undoes `\xNN`, once: the kernel writes so every byte that is no printable ASCII, and the backslash.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.strip_prefix(b"x").and_then(|after| {
            let (digits, after) = after.split_at_checked(2)?;
            let value = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
            Some((value, after))
        });
        let (byte, after) = match escaped {
            Some(escaped) if byte == b'\\' => escaped,
            _ => (byte, after),
        };
        plain.push(byte);
        rest = after;
    }
    plain
}

/// What a line of an OOM report says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A report begins: who asked for memory.
    Invoked {
        name: String,
        gfp_mask: String,
        order: i32,
    },
    /// The cgroup whose limit was hit: what it uses (KiB), and the limit.
    Usage { usage_kib: u64, limit_kib: u64 },
    /// The cgroup whose limit was hit, by path.
    StatsOf(String),
    /// Before Linux 5.0: the victim's cgroup, and the one whose limit was hit.
    LimitOf { victim: String, limit: String },
    /// The report in one line.
    Summary(Vec<u8>),
    /// Before Linux 5.0: the victim is about to be chosen; whether for a cgroup's limit.
    Choosing { memcg: bool },
    /// A process was killed.
    Killed(Killed),
    /// Every process of this cgroup is killed.
    Group(String),
    /// Nobody could be killed.
    NoVictim,
}

/// A process that was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Killed {
    /// For the limit of a cgroup or not; `None` where the line does not say.
    pub memcg: Option<bool>,
    /// The thread that had the memory.
    pub pid: i32,
    /// Its name, any bytes.
    pub name: Vec<u8>,
    /// Its owner.
    pub uid: Option<u32>,
    /// How large it was.
    pub sizes: Sizes,
}

const MEMCG: &[u8] = b"Memory cgroup out of memory";
const GLOBAL: &[u8] = b"Out of memory";
const KILLED: &[u8] = b"Killed process ";

/// What a line says, if it belongs to an OOM report.
pub(super) fn line(text: &[u8]) -> Option<Line> {
    if let Some(summary) = text.strip_prefix(b"oom-kill:constraint=") {
        return Some(Line::Summary(summary.to_owned()));
    }
    if let Some(rest) = text.strip_prefix(b"memory: usage ") {
        let (usage, rest) = split(rest, b"kB, limit ")?;
        let (limit, _) = split(rest, b"kB")?;
        let (usage_kib, limit_kib) = (number(usage)?, number(limit)?);
        return Some(Line::Usage {
            usage_kib,
            limit_kib,
        });
    }
    if let Some(rest) = text.strip_prefix(b"Memory cgroup stats for /") {
        let path = rest.strip_suffix(b":").or_else(|| {
            // Before Linux 5.2 the figures stand behind the path.
            split_last(rest, b": cache:").map(|(path, _)| path)
        })?;
        return Some(Line::StatsOf(format!("/{}", lossy(path))));
    }
    if let Some(rest) = text.strip_prefix(b"Tasks in ") {
        let path = rest.strip_suffix(b" are going to be killed due to memory.oom.group set")?;
        return Some(Line::Group(lossy(path)));
    }
    if let Some(rest) = text.strip_prefix(b"Task in ") {
        let (victim, limit) = nested(rest, b" killed as a result of limit of ", None)?;
        return Some(Line::LimitOf { victim, limit });
    }
    killed(text).or_else(|| invoked(text))
}

/// Figures of `memory.stat` that say what kind of memory it was (bytes): what a leak, a tmpfs, a full page
/// cache or many sockets look like.
const STAT: [&str; 7] = [
    "anon",
    "file",
    "shmem",
    "kernel",
    "slab_unreclaimable",
    "sock",
    "pagetables",
];

/// Lines of `memory.stat`: one in a record since Linux 6.7, before that all in one, which is cut at about
/// 1000 bytes.
pub(super) fn stat(text: &[u8]) -> impl Iterator<Item = (&'static str, u64)> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(|line| {
        let (key, value) = split(line, b" ")?;
        let name = STAT.into_iter().find(|name| name.as_bytes() == key)?;
        Some((name, number(value)?))
    })
}

/// `PREFIX: Killed process PID (NAME) total-vm:NkB, …`, before Linux 5.0 without the prefix and after a
/// line `PREFIX: Kill process …`, whose process need not be the one that is killed.
fn killed(text: &[u8]) -> Option<Line> {
    let (memcg, rest) = if let Some(rest) = text.strip_prefix(MEMCG) {
        (Some(true), rest)
    } else if let Some(rest) = text.strip_prefix(GLOBAL) {
        if rest.starts_with(b" and no killable processes") {
            return Some(Line::NoVictim);
        }
        (Some(false), rest)
    } else {
        (None, text)
    };
    let rest = match memcg {
        None => rest,
        // `Out of memory (oom_kill_allocating_task)`: the kernel's own words, which hold no colon.
        Some(memcg) => {
            let (_, rest) = split(rest, b": ")?;
            if rest.starts_with(b"Kill process ") {
                return Some(Line::Choosing { memcg });
            }
            rest
        }
    };
    let (pid, rest) = split(rest.strip_prefix(KILLED)?, b" ")?;
    // The name is any bytes; behind it stand figures alone.
    let (_, rest) = split(rest, b"(")?;
    let (name, figures) = split_last(rest, b") total-vm:")?;
    let mut killed = Killed {
        memcg,
        pid: i32::try_from(number(pid)?).ok()?,
        name: name.to_owned(),
        uid: None,
        sizes: Sizes::default(),
    };
    let figures = [b"total-vm:", figures].concat();
    for figure in figures.split(|byte| matches!(byte, b' ' | b',')) {
        let Some((key, value)) = split(figure, b":") else {
            continue;
        };
        let kib = || number(value.strip_suffix(b"kB")?)?.checked_mul(1024);
        let sizes = &mut killed.sizes;
        match key {
            b"total-vm" => sizes.total_vm_bytes = kib(),
            b"anon-rss" => sizes.anon_rss_bytes = kib(),
            b"file-rss" => sizes.file_rss_bytes = kib(),
            b"shmem-rss" => sizes.shmem_rss_bytes = kib(),
            b"pgtables" => sizes.page_table_bytes = kib(),
            b"oom_score_adj" => sizes.oom_score_adj = parse(value),
            b"UID" => killed.uid = parse(value),
            _ => {}
        }
    }
    Some(Line::Killed(killed))
}

/// `NAME invoked oom-killer: gfp_mask=0x…(FLAGS), order=N, oom_score_adj=N`
fn invoked(text: &[u8]) -> Option<Line> {
    let (name, rest) = split(text, b" invoked oom-killer: gfp_mask=")?;
    let (mask, _) = split(rest, b", ")?;
    let (_, rest) = split(rest, b", order=")?;
    let order = rest.split(|byte| *byte == b',').next().unwrap_or_default();
    Some(Line::Invoked {
        name: lossy(name),
        gfp_mask: lossy(mask),
        order: parse(order)?,
    })
}

/// What the report's one line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Why memory could not be had.
    pub constraint: Constraint,
    /// The cgroup whose limit was hit; `None` where it was none.
    pub oom_memcg: Option<String>,
    /// The victim's cgroup.
    pub task_memcg: String,
    /// The victim's process.
    pub pid: i32,
    /// Its owner.
    pub uid: u32,
}

/// Whether a summary goes on to its end.
pub(super) fn is_whole(summary: &[u8]) -> bool {
    tail(summary).is_some()
}

/// The text before `,pid=N,uid=N`, and both numbers.
fn tail(summary: &[u8]) -> Option<(&[u8], i32, u32)> {
    let (rest, uid) = split_last(summary, b",uid=")?;
    let (rest, pid) = split_last(rest, b",pid=")?;
    Some((rest, parse(pid)?, parse(uid)?))
}

/// Reads a summary. The name of the process that the next line names tells where the victim's path
/// ends, and the path of the cgroup's figures where the first path does: both paths may hold any text.
pub(super) fn summary(text: &[u8], name: &[u8], hint: Option<&str>) -> Option<Summary> {
    let (rest, pid, uid) = tail(text)?;
    let (constraint, rest) = split(rest, b",nodemask=")?;
    let constraint = Constraint::of(constraint)?;
    let task = [b",task=", name].concat();
    let rest = match rest.strip_suffix(task.as_slice()) {
        Some(rest) => rest,
        None => split_last(rest, b",task=")?.0,
    };
    // `cpuset=` stands before: one component of a path, which can hold no slash.
    let memcg = find(rest, b",oom_memcg=/");
    let global = find(rest, b",global_oom,task_memcg=/");
    let (oom_memcg, task_memcg) = match (memcg, global) {
        (Some(at), global) if global.is_none_or(|global| at < global) => {
            let (_, paths) = rest.split_at_checked(at)?;
            let paths = paths.strip_prefix(b",oom_memcg=")?;
            let (limit, victim) = nested(paths, b",task_memcg=", hint)?;
            (Some(limit), victim)
        }
        (_, Some(at)) => {
            let (_, path) = rest.split_at_checked(at)?;
            (None, lossy(path.strip_prefix(b",global_oom,task_memcg=")?))
        }
        _ => return None,
    };
    Some(Summary {
        constraint,
        oom_memcg,
        task_memcg,
        pid,
        uid,
    })
}

/// So many places are tried at which one path may end and the next begin.
const SPLITS: usize = 64;

/// Two paths with a separator between them that either may contain: of one the other is the same or
/// below. Where several places are possible, the first path is `hint`.
fn nested(text: &[u8], separator: &[u8], hint: Option<&str>) -> Option<(String, String)> {
    let mut from = 0;
    let mut found = None;
    for _ in 0..SPLITS {
        let Some(at) = text.get(from..).and_then(|rest| find(rest, separator)) else {
            break;
        };
        let at = from + at;
        from = at + 1;
        let (first, rest) = text.split_at_checked(at)?;
        let second = rest.strip_prefix(separator)?;
        if is_within(second, first) || is_within(first, second) {
            let pair = (lossy(first), lossy(second));
            if hint == Some(pair.0.as_str()) {
                return Some(pair);
            }
            found.get_or_insert(pair);
        }
    }
    found
}

/// Whether a path is another one or lies below it.
fn is_within(path: &[u8], above: &[u8]) -> bool {
    above.starts_with(b"/")
        && path.starts_with(b"/")
        && (above == b"/"
            || path
                .strip_prefix(above)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/")))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn split<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (before, rest) = text.split_at_checked(find(text, at)?)?;
    Some((before, rest.strip_prefix(at)?))
}

fn split_last<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let position = text.windows(at.len()).rposition(|window| window == at)?;
    let (before, rest) = text.split_at_checked(position)?;
    Some((before, rest.strip_prefix(at)?))
}

fn parse<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn number(text: &[u8]) -> Option<u64> {
    parse(text)
}

/// Text for people: bytes that are no UTF-8 become U+FFFD.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
