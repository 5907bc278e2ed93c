//! Probes and lifecycle hooks of a container, read with Kubernetes' defaults and rules (1.37).
//!
//! What this node cannot do is told as a problem: a container that is not looked after as its author
//! meant must not run.

mod defaults;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Remark;
use crate::manifest::misfit::shown;
use crate::model::ContainerKind;
use crate::model::probe::{Action, Address, Hook, Http, PROBES, Probe, ProbeKind, Probes};

pub use defaults::fill_in;

/// Bytes of all words of a program that is run as a probe or hook. A bound of ours.
const MAX_COMMAND: usize = 64 << 10;
/// Headers of a request. A bound of ours.
const MAX_HEADERS: usize = 64;
/// Bytes of a path, and of a header's value. A bound of ours.
const MAX_TEXT: usize = 4096;
/// Bytes of a host's name.
const MAX_HOST: usize = 253;
/// `periodSeconds` unless given.
const PERIOD: u32 = 10;
/// `failureThreshold` unless given.
const FAILURES: u32 = 3;

/// A container's probes and hooks. `grace` is the pod's `terminationGracePeriodSeconds`.
pub(super) fn probes(
    from: &v1::Container,
    kind: ContainerKind,
    grace: u64,
    place: &str,
    problems: &mut Vec<Remark>,
) -> Probes {
    let mut probes = Probes::default();
    for which in PROBES {
        let given = match which {
            ProbeKind::Startup => &from.startup_probe,
            ProbeKind::Readiness => &from.readiness_probe,
            ProbeKind::Liveness => &from.liveness_probe,
        };
        let Some(given) = given else {
            continue;
        };
        let mut reader = Reader::new(from, format!("{place}.{}", which.field()), problems);
        if kind == ContainerKind::Init {
            reader.refuse("", FOR_SIDECARS);
            continue;
        }
        let probe = reader.probe(which, given);
        match which {
            ProbeKind::Startup => probes.startup = probe,
            ProbeKind::Readiness => probes.readiness = probe,
            ProbeKind::Liveness => probes.liveness = probe,
        }
    }
    let hooks = from.lifecycle.as_ref();
    let hook = |name: &str, given: Option<&v1::LifecycleHandler>, problems: &mut Vec<Remark>| {
        let place = format!("{place}.lifecycle.{name}");
        let mut reader = Reader::new(from, place, problems);
        let given = given?;
        if kind == ContainerKind::Init {
            reader.refuse("", FOR_SIDECARS);
            return None;
        }
        reader.hook(given, grace)
    };
    let given = hooks.and_then(|hooks| hooks.post_start.as_ref());
    probes.post_start = hook("postStart", given, problems);
    let given = hooks.and_then(|hooks| hooks.pre_stop.as_ref());
    probes.pre_stop = hook("preStop", given, problems);
    probes
}

const FOR_SIDECARS: &str =
    "Forbidden: may not be set for init containers without restartPolicy: Always";

/// Reads the parts of one probe or hook.
struct Reader<'a> {
    container: &'a v1::Container,
    place: String,
    problems: &'a mut Vec<Remark>,
}

impl<'a> Reader<'a> {
    fn new(container: &'a v1::Container, place: String, problems: &'a mut Vec<Remark>) -> Self {
        Self {
            container,
            place,
            problems,
        }
    }

    fn refuse(&mut self, field: &str, message: impl Into<String>) {
        let dot = if field.is_empty() { "" } else { "." };
        let field = format!("{}{dot}{field}", self.place);
        self.problems.push(Remark::new(field, message));
    }

    fn probe(&mut self, kind: ProbeKind, from: &v1::Probe) -> Option<Probe> {
        if from.grpc.is_some() {
            self.refuse(
                "grpc",
                "Forbidden: no gRPC is spoken here: probe with exec, httpGet or tcpSocket",
            );
            return None;
        }
        let (exec, http, tcp) = (&from.exec, &from.http_get, &from.tcp_socket);
        let is_one = self.is_one([exec.is_some(), http.is_some(), tcp.is_some()]);
        let action = match (exec, http, tcp) {
            _ if !is_one => None,
            (Some(exec), ..) => self.exec(exec).map(Action::Exec),
            (_, Some(http), _) => self.http(http).map(Action::Http),
            (.., tcp) => tcp.as_ref().and_then(|tcp| self.tcp(tcp)),
        };
        let initial_delay = self.number("initialDelaySeconds", from.initial_delay_seconds, 0);
        let timeout = self.number("timeoutSeconds", from.timeout_seconds, 1);
        let period = self.number("periodSeconds", from.period_seconds, PERIOD);
        let success_threshold = self.number("successThreshold", from.success_threshold, 1);
        let failure_threshold = self.number("failureThreshold", from.failure_threshold, FAILURES);
        if kind != ProbeKind::Readiness && success_threshold > 1 {
            let message = format!("Invalid value: {success_threshold}: must be 1");
            self.refuse("successThreshold", message);
        }
        let grace = from.termination_grace_period_seconds;
        let field = "terminationGracePeriodSeconds";
        let grace_seconds = match (kind, grace) {
            (_, None) => None,
            (ProbeKind::Readiness, Some(grace)) => {
                let message =
                    format!("Invalid value: {grace}: must not be set for readinessProbes");
                self.refuse(field, message);
                None
            }
            (_, Some(grace)) => {
                let read = u64::try_from(grace).ok().filter(|grace| *grace > 0);
                if read.is_none() {
                    let message = format!("Invalid value: {grace}: must be greater than 0");
                    self.refuse(field, message);
                }
                read
            }
        };
        Some(Probe {
            action: action?,
            initial_delay,
            period,
            timeout,
            success_threshold,
            failure_threshold,
            grace_seconds,
        })
    }

    /// To Kubernetes, nought is as good as nothing said.
    fn number(&mut self, field: &str, given: Option<i32>, default: u32) -> u32 {
        let given = given.unwrap_or_default();
        match u32::try_from(given) {
            Ok(0) => default,
            Ok(number) => number,
            Err(_) => {
                let message = format!("Invalid value: {given}: must be greater than or equal to 0");
                self.refuse(field, message);
                default
            }
        }
    }

    fn hook(&mut self, from: &v1::LifecycleHandler, grace: u64) -> Option<Hook> {
        if from.tcp_socket.is_some() {
            self.refuse(
                "tcpSocket",
                "Forbidden: no hook is a connection: say exec, httpGet or sleep",
            );
            return None;
        }
        if self.container.command.as_ref().is_none_or(Vec::is_empty) {
            self.refuse("", "Forbidden: a container without a command waits for a process of somebody else, which has no hooks");
            return None;
        }
        let (exec, http, sleep) = (&from.exec, &from.http_get, &from.sleep);
        let is_one = self.is_one([exec.is_some(), http.is_some(), sleep.is_some()]);
        match (exec, http, sleep) {
            _ if !is_one => None,
            (Some(exec), ..) => self.exec(exec).map(Hook::Exec),
            (_, Some(http), _) => self.http(http).map(Hook::Http),
            (.., sleep) => self.sleep(sleep.as_ref()?.seconds, grace),
        }
    }

    /// Whether exactly one handler is given.
    fn is_one(&mut self, given: [bool; 3]) -> bool {
        let message = match given.into_iter().filter(|given| *given).count() {
            0 => "Required value: must specify a handler type",
            1 => return true,
            _ => "Forbidden: may not specify more than 1 handler type",
        };
        self.refuse("", message);
        false
    }

    fn tcp(&mut self, from: &v1::TCPSocketAction) -> Option<Action> {
        let port = self.port("tcpSocket.port", &from.port);
        let host = self.host("tcpSocket.host", from.host.as_deref());
        let (port, host) = (port?, host?);
        Some(Action::Tcp(Address { host, port }))
    }

    fn sleep(&mut self, given: i64, grace: u64) -> Option<Hook> {
        let (field, must) = match u64::try_from(given) {
            Ok(seconds) if seconds <= grace => return Some(Hook::Sleep(seconds)),
            Ok(_) => (
                "sleep",
                format!("must not be greater than terminationGracePeriodSeconds, {grace}"),
            ),
            Err(_) => (
                "sleep.seconds",
                "must be greater than or equal to 0".to_owned(),
            ),
        };
        self.refuse(field, format!("Invalid value: {given}: {must}"));
        None
    }

    fn exec(&mut self, from: &v1::ExecAction) -> Option<Vec<String>> {
        let words = from.command.clone().unwrap_or_default();
        let bytes = words.iter().fold(0_usize, |sum, word| {
            sum.saturating_add(word.len()).saturating_add(1)
        });
        let field = "exec.command";
        if words.first().is_none_or(String::is_empty) {
            self.refuse(field, "Required value: the program to run");
        } else if bytes > MAX_COMMAND {
            self.refuse(
                field,
                format!("Too long: may not have more than {MAX_COMMAND} bytes"),
            );
        } else if words.iter().any(|word| word.contains('\0')) {
            self.refuse(field, "Invalid value: a word holds a zero byte");
        } else if self.container.command.as_ref().is_none_or(Vec::is_empty) {
            self.refuse(field, "Forbidden: a container without a command has no environment to run a program in: say httpGet or tcpSocket");
        } else {
            return Some(words);
        }
        None
    }

    fn http(&mut self, from: &v1::HTTPGetAction) -> Option<Http> {
        match from.scheme.as_deref() {
            None | Some("" | "HTTP") => {}
            Some("HTTPS") => {
                self.refuse("httpGet.scheme", "Forbidden: no TLS is spoken here: say HTTP, or run a client of the host with exec");
            }
            Some(other) => {
                let message = format!(
                    "Unsupported value: {:?}: supported values: \"HTTP\"",
                    shown(other)
                );
                self.refuse("httpGet.scheme", message);
            }
        }
        if from
            .protocol
            .as_deref()
            .is_some_and(|other| !["", "HTTP1", "HTTP/1.1"].contains(&other))
        {
            self.refuse(
                "httpGet.protocol",
                "Forbidden: HTTP/1.1 is spoken here: leave it out",
            );
        }
        let port = self.port("httpGet.port", &from.port);
        let host = self.host("httpGet.host", from.host.as_deref());
        let path = from.path.as_deref().unwrap_or_default();
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if path.len() > MAX_TEXT || !is_plain(path) {
            let message = format!(
                "Invalid value: {:?}: must be at most {MAX_TEXT} visible ASCII characters; %20 stands for a space",
                shown(path)
            );
            self.refuse("httpGet.path", message);
        }
        let given = from.http_headers.as_deref().unwrap_or_default();
        if given.len() > MAX_HEADERS {
            let message = format!(
                "Too many: {}: must have at most {MAX_HEADERS} items",
                given.len()
            );
            self.refuse("httpGet.httpHeaders", message);
            return None;
        }
        let mut headers = Vec::new();
        for (index, header) in given.iter().enumerate() {
            let field = format!("httpGet.httpHeaders[{index}]");
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
            if header.name.is_empty()
                || header.name.len() > MAX_HOST
                || !header.name.bytes().all(is_name)
            {
                let message = format!(
                    "Invalid value: {:?}: a valid HTTP header must consist of alphanumeric characters, '-' and '_'",
                    shown(&header.name)
                );
                self.refuse(&format!("{field}.name"), message);
            }
            let is_value = |c: char| c == '\t' || !c.is_control();
            if header.value.len() > MAX_TEXT || !header.value.chars().all(is_value) {
                let message =
                    format!("Invalid value: must be at most {MAX_TEXT} bytes of one line");
                self.refuse(&format!("{field}.value"), message);
            }
            headers.push((header.name.clone(), header.value.clone()));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        let (port, host) = (port?, host?);
        Some(Http {
            address: Address { host, port },
            path: format!("{slash}{path}"),
            headers,
        })
    }

    fn host(&mut self, field: &str, given: Option<&str>) -> Option<String> {
        let host = super::given(given).unwrap_or(Address::HERE);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:[]%".contains(&byte);
        if host.len() > MAX_HOST || !host.bytes().all(fits) {
            let message = format!(
                "Invalid value: {:?}: must be a name or an IP address",
                shown(host)
            );
            self.refuse(field, message);
            return None;
        }
        Some(host.trim_matches(['[', ']']).to_owned())
    }

    /// A number, or the name of one of the container's ports.
    fn port(&mut self, field: &str, given: &IntOrString) -> Option<u16> {
        let number = |number: i32| u16::try_from(number).ok().filter(|port| *port > 0);
        match given {
            IntOrString::Int(given) => {
                let port = number(*given);
                if port.is_none() {
                    let message =
                        format!("Invalid value: {given}: must be between 1 and 65535, inclusive");
                    self.refuse(field, message);
                }
                port
            }
            IntOrString::String(name) => {
                let named = self.container.ports.iter().flatten();
                let mut named = named.filter(|port| port.name.as_ref() == Some(name));
                // Kubernetes takes a number in quotes for one, too.
                let port = named.next().map(|port| port.container_port);
                let port = port.or_else(|| name.parse().ok()).and_then(number);
                if port.is_none() {
                    let message = format!(
                        "Invalid value: {:?}: must be a number, or the name of one of the container's ports",
                        shown(name)
                    );
                    self.refuse(field, message);
                }
                port
            }
        }
    }
}

#[cfg(test)]
mod tests;
