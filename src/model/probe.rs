//! Probes and lifecycle hooks of a container, and how single looks become a verdict.
//!
//! Plain data and pure counting: when to look, and what follows from a verdict, is decided elsewhere.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a container's probes and hooks are; most have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// `startupProbe`
    pub startup: Option<Probe>,
    /// `readinessProbe`
    pub readiness: Option<Probe>,
    /// `livenessProbe`
    pub liveness: Option<Probe>,
    /// `lifecycle.postStart`
    pub post_start: Option<Hook>,
    /// `lifecycle.preStop`
    pub pre_stop: Option<Hook>,
}

impl Probes {
    /// Whether somebody has to look after a run of the container from its start.
    pub fn is_needed(&self) -> bool {
        self.post_start.is_some() || PROBES.iter().any(|kind| self.probe(*kind).is_some())
    }

    /// The probe of this kind.
    pub fn probe(&self, kind: ProbeKind) -> Option<&Probe> {
        match kind {
            ProbeKind::Startup => self.startup.as_ref(),
            ProbeKind::Readiness => self.readiness.as_ref(),
            ProbeKind::Liveness => self.liveness.as_ref(),
        }
    }
}

/// All kinds of probe.
pub const PROBES: [ProbeKind; 3] = [
    ProbeKind::Startup,
    ProbeKind::Readiness,
    ProbeKind::Liveness,
];

/// What a probe is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// It holds back the others until it succeeds once; its failure ends the container.
    Startup,
    /// Whether the container is ready.
    Readiness,
    /// Its failure ends the container.
    Liveness,
}

impl ProbeKind {
    /// The field of a container.
    pub fn field(self) -> &'static str {
        match self {
            Self::Startup => "startupProbe",
            Self::Readiness => "readinessProbe",
            Self::Liveness => "livenessProbe",
        }
    }
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Startup => "Startup",
            Self::Readiness => "Readiness",
            Self::Liveness => "Liveness",
        })
    }
}

/// A probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What is done.
    pub action: Action,
    /// From the container's start to the first look (seconds).
    pub initial_delay: u32,
    /// From one look to the next (seconds), 1 or more.
    pub period: u32,
    /// What a look may take (seconds), 1 or more.
    pub timeout: u32,
    /// So many looks in a row must succeed for a success.
    pub success_threshold: u32,
    /// So many must fail for a failure.
    pub failure_threshold: u32,
    /// Between SIGTERM and SIGKILL after a failure (seconds); the pod's own unless given.
    pub grace_seconds: Option<u64>,
}

/// How a probe looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Runs a program as the container would; exit code 0 is success.
    Exec(Vec<String>),
    /// Asks by HTTP; a status of 200 to 399 is success.
    Http(Http),
    /// Connects.
    Tcp(Address),
}

/// What a hook does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Runs a program as the container would; exit code 0 is success.
    Exec(Vec<String>),
    /// Asks by HTTP; any answer is success.
    Http(Http),
    /// Waits so many seconds.
    Sleep(u64),
}

/// What is asked by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Whom.
    pub address: Address,
    /// The path with its query, a `/` in front.
    pub path: String,
    /// Headers, in order.
    pub headers: Vec<(String, String)>,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address; this machine unless given.
    pub host: String,
    /// 1 to 65535
    pub port: u16,
}

impl Address {
    /// Whom pods of this node are reached at: they have the node's network.
    pub const HERE: &str = "127.0.0.1";
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An IPv6 address among ports needs its brackets.
        if self.host.contains(':') && !self.host.starts_with('[') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The looks of one probe, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    last: Option<bool>,
    row: u32,
    verdict: Option<bool>,
}

impl Count {
    /// A count that begins with a verdict of an earlier agent: only looks change it.
    pub fn from(verdict: Option<bool>) -> Self {
        Self {
            verdict,
            ..Self::default()
        }
    }

    /// Takes a look. The verdict, where this look makes it another one.
    pub fn take(&mut self, probe: &Probe, success: bool) -> Option<bool> {
        if self.last == Some(success) {
            self.row = self.row.saturating_add(1);
        } else {
            self.last = Some(success);
            self.row = 1;
        }
        let needed = if success {
            probe.success_threshold
        } else {
            probe.failure_threshold
        };
        if self.row < needed || self.verdict == Some(success) {
            return None;
        }
        self.verdict = Some(success);
        self.verdict
    }

    /// Whether the last look is the first failure of its row.
    pub fn just_failed(&self) -> bool {
        self.last == Some(false) && self.row == 1
    }
}

/// How far the present run of a container has come, as its hook and its probes say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// Its `postStart` has ended well.
    pub hooked: bool,
    /// Its startup probe has succeeded.
    pub started: bool,
    /// Its readiness probe says yes.
    pub ready: bool,
}

impl Health {
    /// Whether it counts as started.
    pub fn has_started(&self, probes: &Probes) -> bool {
        (self.hooked || probes.post_start.is_none()) && (self.started || probes.startup.is_none())
    }

    /// Whether it is ready, as long as it runs.
    pub fn is_ready(&self, probes: &Probes) -> bool {
        self.has_started(probes) && (self.ready || probes.readiness.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(success_threshold: u32, failure_threshold: u32) -> Probe {
        Probe {
            action: Action::Exec(vec!["true".to_owned()]),
            initial_delay: 0,
            period: 10,
            timeout: 1,
            success_threshold,
            failure_threshold,
            grace_seconds: None,
        }
    }

    /// What each look (`+`, `-`) makes of the verdict: itself where it is a new one, `.` where it stays.
    fn verdicts(probe: &Probe, before: Option<bool>, looks: &str) -> String {
        let mut count = Count::from(before);
        let take = |look| match count.take(probe, look == '+') {
            None => '.',
            Some(true) => '+',
            Some(false) => '-',
        };
        looks.chars().map(take).collect()
    }

    #[test]
    fn a_verdict_needs_so_many_looks_in_a_row() {
        for (success, failure, before, looks, expected) in [
            (1, 3, None, "+++", "+.."),
            (1, 3, None, "---", "..-"),
            (1, 3, None, "--+--+---+", "..+.....-+"),
            (2, 1, None, "+-+--++-", ".-....+-"),
            (1, 3, Some(true), "+--+---", "......-"),
            (1, 3, Some(false), "---+", "...+"),
            (1, 1, Some(true), "-+", "-+"),
        ] {
            let found = verdicts(&probe(success, failure), before, looks);
            assert_eq!(found, expected, "{success} {failure} {before:?} {looks}");
        }
    }

    #[test]
    fn the_first_failure_of_a_row_is_known() {
        let (mut count, probe) = (Count::default(), probe(1, 3));
        let looks = [false, false, true, false];
        let told = looks.map(|look| {
            count.take(&probe, look);
            count.just_failed()
        });
        assert_eq!(told, [true, false, false, true]);
    }

    #[test]
    fn what_is_not_asked_for_holds_nothing_back() {
        let health = Health::default();
        assert!(health.is_ready(&Probes::default()));
        let of = |probes: &Probes, hooked, started, ready| {
            let health = Health {
                hooked,
                started,
                ready,
            };
            (health.has_started(probes), health.is_ready(probes))
        };
        let all = Probes {
            startup: Some(probe(1, 1)),
            readiness: Some(probe(1, 1)),
            post_start: Some(Hook::Sleep(1)),
            ..Probes::default()
        };
        assert_eq!(of(&all, false, true, true), (false, false));
        assert_eq!(of(&all, true, false, true), (false, false));
        assert_eq!(of(&all, true, true, false), (true, false));
        assert_eq!(of(&all, true, true, true), (true, true));
    }

    #[test]
    fn addresses_are_shown_as_they_are_dialled() {
        for (host, text) in [
            ("127.0.0.1", "127.0.0.1:80"),
            ("::1", "[::1]:80"),
            ("[::1]", "[::1]:80"),
        ] {
            let host = host.to_owned();
            assert_eq!(Address { host, port: 80 }.to_string(), text);
        }
    }
}
