//! Events: what happened to a pod or the node, in Kubernetes' shape, counted where it repeats.
//!
//! Decides how events merge and how many are kept; the agent decides what is worth one.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};

use crate::store::{Change, Entry, Expect};

/// At the most so many events are kept; the oldest go first.
const KEPT: usize = 1000;

/// A longer message is cut (bytes), as the API server does.
const MESSAGE_LENGTH: usize = 1024;

/// Whether an event is good or bad news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// As it should be.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// `Pod` or `Node`
    pub kind: &'static str,
    /// The namespace; `default` for the node.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid; may be empty.
    pub uid: String,
    /// The part of it, such as `spec.containers{app}`; may be empty.
    pub field_path: String,
}

/// All events that are kept.
#[derive(Debug, Default)]
pub struct Events {
    /// By store key, each with its number in the order.
    kept: BTreeMap<String, (u64, v1::Event)>,
    /// The store keys by what is the same in repetitions.
    same: HashMap<String, String>,
    /// The store keys in order of their last occurrence, oldest first, by a number that only grows: of two
    /// times the later may be the smaller, if the clock was set back.
    order: BTreeMap<u64, String>,
    /// The last of these numbers.
    turn: u64,
    /// What the store does not have yet.
    pending: BTreeMap<String, Change>,
    /// Makes names unique.
    serial: u64,
    component: String,
}

impl Events {
    /// The events of an earlier run, from the store.
    pub fn restore(entries: Vec<Entry>) -> Self {
        let mut events = Self {
            component: "allotd".to_owned(),
            ..Self::default()
        };
        let read = |entry: Entry| {
            let event = serde_json::from_slice::<v1::Event>(&entry.value).ok()?;
            Some((entry, event))
        };
        let mut entries: Vec<_> = entries.into_iter().filter_map(read).collect();
        // Times tell only those apart that were committed together.
        entries.sort_by_key(|(entry, event)| {
            let at = event.last_timestamp.as_ref().map(|time| time.0);
            (entry.revision, at)
        });
        for (entry, event) in entries {
            events.serial = events.serial.max(entry.revision);
            events.keep(entry.key, event);
        }
        events
    }

    /// Notes an event; one that is the same but for its time is counted up.
    pub fn note(
        &mut self,
        subject: &Subject,
        severity: Severity,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) {
        let message = cut(message);
        let new = Self::event(&self.component, subject, severity, reason, message, now);
        let known = self.same.get(&identity(&new)).cloned();
        let known = known.and_then(|key| Some((self.take(&key)?, key)));
        let (event, key) = if let Some((mut event, key)) = known {
            event.last_timestamp = Some(Time(now));
            event.count = Some(event.count.unwrap_or(1).saturating_add(1));
            (event, key)
        } else {
            self.serial = self.serial.saturating_add(1);
            let name = format!(
                "{}.{:x}{:04x}",
                subject.name,
                now.as_microsecond(),
                self.serial & 0xffff
            );
            let key = format!("events/{}/{name}", subject.namespace);
            let mut event = new;
            event.metadata.name = Some(name);
            (event, key)
        };
        if let Ok(value) = serde_json::to_vec(&event) {
            let change = Change::Put(key.clone(), value, Expect::Any);
            self.pending.insert(key.clone(), change);
        }
        self.keep(key, event);
        self.forget_oldest();
    }

    /// Namespace, name and content of each event that the store does not have yet; none is one that is
    /// forgotten.
    pub fn news(&self) -> impl Iterator<Item = (&str, &str, Option<&v1::Event>)> {
        self.pending.keys().filter_map(|key| {
            let (namespace, name) = key.strip_prefix("events/")?.split_once('/')?;
            Some((namespace, name, self.kept.get(key).map(|(_, event)| event)))
        })
    }

    /// Namespace, name and content of all events.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str, &v1::Event)> {
        self.kept.iter().filter_map(|(key, (_, event))| {
            let (namespace, name) = key.strip_prefix("events/")?.split_once('/')?;
            Some((namespace, name, event))
        })
    }

    /// The events about objects of one namespace, or all, oldest first.
    pub fn list(&self, namespace: Option<&str>) -> Vec<v1::Event> {
        self.order
            .values()
            .filter_map(|key| self.kept.get(key))
            .map(|(_, event)| event)
            .filter(|event| {
                namespace.is_none_or(|wanted| event.metadata.namespace.as_deref() == Some(wanted))
            })
            .cloned()
            .collect()
    }

    /// Forgets the events of a namespace that is gone.
    pub fn forget(&mut self, namespace: &str) {
        let prefix = format!("events/{namespace}/");
        let of_it = self.kept.range(prefix.clone()..);
        let of_it = of_it.take_while(|(key, _)| key.starts_with(&prefix));
        let gone: Vec<_> = of_it.map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.drop(key);
        }
    }

    /// The changes that the store does not have yet; they belong into the next commit.
    pub fn pending(&self) -> impl Iterator<Item = Change> {
        self.pending.values().cloned()
    }

    /// The store has taken all that was pending.
    pub fn committed(&mut self) {
        self.pending.clear();
    }

    /// Whether there is anything for the store.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    fn forget_oldest(&mut self) {
        while self.kept.len() > KEPT {
            let Some((_, key)) = self.order.pop_first() else {
                return;
            };
            self.drop(key);
        }
    }

    /// It is the latest now.
    fn keep(&mut self, key: String, event: v1::Event) {
        self.turn = self.turn.saturating_add(1);
        self.order.insert(self.turn, key.clone());
        self.same.insert(identity(&event), key.clone());
        self.kept.insert(key, (self.turn, event));
    }

    fn take(&mut self, key: &str) -> Option<v1::Event> {
        let (turn, event) = self.kept.remove(key)?;
        self.order.remove(&turn);
        self.same.remove(&identity(&event));
        Some(event)
    }

    fn drop(&mut self, key: String) {
        self.take(&key);
        let change = Change::Delete(key.clone(), Expect::Any);
        self.pending.insert(key, change);
    }

    fn event(
        component: &str,
        subject: &Subject,
        severity: Severity,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) -> v1::Event {
        v1::Event {
            metadata: ObjectMeta {
                namespace: Some(subject.namespace.clone()),
                creation_timestamp: Some(Time(now)),
                ..ObjectMeta::default()
            },
            involved_object: v1::ObjectReference {
                api_version: Some("v1".to_owned()),
                kind: Some(subject.kind.to_owned()),
                namespace: Some(subject.namespace.clone()),
                name: Some(subject.name.clone()),
                uid: Some(subject.uid.clone()),
                field_path: (!subject.field_path.is_empty()).then(|| subject.field_path.clone()),
                ..v1::ObjectReference::default()
            },
            type_: Some(
                match severity {
                    Severity::Normal => "Normal",
                    Severity::Warning => "Warning",
                }
                .to_owned(),
            ),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            count: Some(1),
            event_time: Some(MicroTime(now)),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            reporting_component: Some(component.to_owned()),
            source: Some(v1::EventSource {
                component: Some(component.to_owned()),
                ..v1::EventSource::default()
            }),
            ..v1::Event::default()
        }
    }
}

/// What is the same in repetitions of an event. No part can hold the separator: names are DNS names, and
/// the message comes last.
fn identity(event: &v1::Event) -> String {
    let about = &event.involved_object;
    let parts = [
        &about.namespace,
        &about.name,
        &about.uid,
        &about.field_path,
        &event.reason,
        &event.message,
    ];
    parts
        .map(|part| part.as_deref().unwrap_or_default())
        .join("\0")
}

fn cut(message: &str) -> &str {
    let end = message.floor_char_boundary(MESSAGE_LENGTH);
    message.get(..end).unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str) -> Subject {
        Subject {
            kind: "Pod",
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: "u".to_owned(),
            field_path: String::new(),
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn repeated_events_are_counted_and_move_to_the_end() {
        let mut events = Events::default();
        events.note(&subject("a"), Severity::Normal, "Started", "m", at(1));
        events.note(&subject("b"), Severity::Normal, "Started", "m", at(2));
        events.note(&subject("a"), Severity::Normal, "Started", "m", at(3));
        let list = events.list(None);
        let names: Vec<_> = list
            .iter()
            .map(|e| (e.involved_object.name.clone().unwrap(), e.count.unwrap()))
            .collect();
        assert_eq!(names, [("b".to_owned(), 1), ("a".to_owned(), 2)]);
        assert_eq!(events.pending().count(), 2);
        assert!(events.has_pending(), "asking is no commit");
        events.committed();
        assert!(!events.has_pending());
    }

    #[test]
    fn no_more_than_a_bounded_number_is_kept() {
        let mut events = Events::default();
        for n in 0..1200 {
            events.note(
                &subject("a"),
                Severity::Warning,
                "R",
                &format!("{n}"),
                at(n),
            );
        }
        let list = events.list(Some("default"));
        assert_eq!(list.len(), KEPT);
        assert_eq!(list[0].message.as_deref(), Some("200"));
        assert!(events.list(Some("other")).is_empty());
    }

    /// A clock that is set back by years must not make each new event the oldest.
    #[test]
    fn new_events_stay_whatever_the_clock_says() {
        let mut events = Events::default();
        let note = |events: &mut Events, text: &str, at| {
            events.note(&subject("a"), Severity::Warning, "R", text, at);
        };
        for n in 0..1000 {
            note(&mut events, &n.to_string(), at(4_000_000_000 + n));
        }
        let mut revision = 0;
        let entries = events.order.values().map(|key| {
            revision += 1;
            let value = serde_json::to_vec(&events.kept[key].1).unwrap();
            let key = key.clone();
            Entry {
                key,
                revision,
                value,
            }
        });
        let mut events = Events::restore(entries.collect());
        note(&mut events, "after", at(5));
        note(&mut events, "999", at(4));
        let list = events.list(None);
        assert_eq!(list.len(), KEPT);
        let newest = list.iter().rev().take(3);
        let messages: Vec<_> = newest
            .map(|event| event.message.as_deref().unwrap())
            .collect();
        assert_eq!(messages, ["999", "after", "998"]);
        assert_eq!(list[0].message.as_deref(), Some("1"));
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        assert_eq!(cut(&"é".repeat(600)).len(), 1024);
        assert_eq!(cut("short"), "short");
    }
}
