//! The kernel's cgroup texts as values: flat-keyed files, single numbers, lists of processes and
//! pressure.
//!
//! Pure and total: any text has an answer, and what cannot be understood is absent, never zero.
//! Keys are looked up by name because the kernel adds and moves them between versions.

use super::Pid;

/// The value of `key` in a flat-keyed file such as `memory.events` or `cpu.stat`: one `KEY VALUE`
/// per line. The first line with the key counts.
pub fn value(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == key)
        .and_then(|(_, value)| number(value))
}

/// A file with a single number, such as `memory.current`. Signs, `max` and trailing words are
/// refused.
pub fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end();
    // `u64::from_str` takes a leading plus sign, which the kernel never prints.
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())
        .flatten()
}

/// `cgroup.procs`: one process per line. A `0` stands for a process outside our PID namespace and
/// is passed over, as is anything that is no process id.
pub fn processes(text: &str) -> Vec<Pid> {
    text.lines()
        .filter_map(|line| line.parse().ok())
        .filter(|pid| *pid > 0)
        .map(Pid)
        .collect()
}

/// A pressure file (PSI), such as `memory.pressure`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Time in which at least one task waited.
    pub some: Option<Stall>,
    /// Time in which all tasks waited; `cpu.pressure` has it since Linux 5.13.
    pub full: Option<Stall>,
}

/// One line of a pressure file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stall {
    /// Share of the last 10 seconds, in hundredths of a per cent (0..=10000).
    pub avg10: u32,
    /// Share of the last 60 seconds, in hundredths of a per cent.
    pub avg60: u32,
    /// Share of the last 300 seconds, in hundredths of a per cent.
    pub avg300: u32,
    /// All time since the cgroup was made (µs).
    pub total_usec: u64,
}

/// Reads a pressure file; a line with a missing or unreadable field is absent as a whole.
pub fn pressure(text: &str) -> Pressure {
    let line = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(head, _)| *head == name)
            .and_then(|(_, fields)| stall(fields))
    };
    Pressure {
        some: line("some"),
        full: line("full"),
    }
}

fn stall(fields: &str) -> Option<Stall> {
    let field = |key: &str| {
        fields
            .split_ascii_whitespace()
            .filter_map(|field| field.split_once('='))
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value)
    };
    Some(Stall {
        avg10: hundredths(field("avg10")?)?,
        avg60: hundredths(field("avg60")?)?,
        avg300: hundredths(field("avg300")?)?,
        total_usec: number(field("total")?)?,
    })
}

/// `12.34` as 1234: the kernel always prints two decimals, and at most 100 % (`kernel/sched/psi.c`).
fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.')?;
    if part.len() != 2 {
        return None;
    }
    let whole = u32::try_from(number(whole)?).ok()?;
    let part = u32::try_from(number(part)?).ok()?;
    let share = whole.checked_mul(100)?.checked_add(part)?;
    (share <= 10_000).then_some(share)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVENTS: &str = "low 0\nhigh 0\nmax 31\noom 2\noom_kill 3\noom_group_kill 1\n";

    #[test]
    fn keys_are_found_by_their_whole_name() {
        assert_eq!(value(EVENTS, "oom"), Some(2));
        assert_eq!(value(EVENTS, "oom_kill"), Some(3));
        assert_eq!(value(EVENTS, "sock_throttled"), None);
        assert_eq!(value("max max\n", "max"), None);
        assert_eq!(value("oom 1 2\n", "oom"), None);
        assert_eq!(value("oom\n", "oom"), None);
    }

    #[test]
    fn a_number_is_digits_and_nothing_else() {
        assert_eq!(number("4096\n"), Some(4096));
        assert_eq!(number("18446744073709551615"), Some(u64::MAX));
        for bad in ["", "max", "-1", "+1", "1 2", "0x10", "18446744073709551616"] {
            assert_eq!(number(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn processes_of_other_namespaces_are_passed_over() {
        assert_eq!(processes("12\n0\n7\n"), [Pid(12), Pid(7)]);
        assert_eq!(processes("-4\nx\n99999999999\n"), []);
    }

    #[test]
    fn pressure_is_read_in_hundredths() {
        let text = "some avg10=1.53 avg60=0.87 avg300=100.00 total=123456\n\
                    full avg10=0.00 avg60=0.00 avg300=0.05 total=99\n";
        let read = pressure(text);
        assert_eq!(
            read.some,
            Some(Stall {
                avg10: 153,
                avg60: 87,
                avg300: 10_000,
                total_usec: 123_456,
            })
        );
        assert_eq!(read.full.map(|stall| stall.avg300), Some(5));
        for bad in [
            "some avg10=1.5 avg60=0.00 total=1\n",
            "some avg10=100.01 avg60=0.00 avg300=0.00 total=1\n",
        ] {
            assert_eq!(pressure(bad), Pressure::default(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,400}", key in "\\PC{0,8}") {
            let _ = (value(&text, &key), number(&text), processes(&text), pressure(&text));
        }

        #[test]
        fn what_the_kernel_prints_is_read(pairs in prop::collection::btree_map("[a-z_]{1,12}", any::<u64>(), 1..20)) {
            let lines: Vec<_> = pairs.iter().map(|(key, value)| format!("{key} {value}")).collect();
            let text = lines.join("\n");
            for (key, expected) in &pairs {
                prop_assert_eq!(value(&text, key), Some(*expected));
            }
        }

        #[test]
        fn printed_pressure_is_read(avg in 0_u32..=10_000, total in any::<u64>()) {
            let share = format!("{}.{:02}", avg / 100, avg % 100);
            let text = format!("some avg10={share} avg60={share} avg300={share} total={total}\n");
            let stall = Stall { avg10: avg, avg60: avg, avg300: avg, total_usec: total };
            prop_assert_eq!(pressure(&text), Pressure { some: Some(stall), full: None });
        }
    }
}
