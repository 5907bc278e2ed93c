//! What is shown and what was seen: events in, a model out.
//!
//! Pure: no clock, no terminal, no socket. What it wants of the world outside comes back as `Wish`.

mod pane;

use std::time::Duration;

use super::history::History;
use super::keys::Key;
use super::rows::{Choice, Row, RowKey, Shown, Sort, rows};
use crate::report::explain::PodExplanation;
use crate::report::top::TopReport;

pub use pane::Pane;

/// The longest filter (characters).
const FILTER: usize = 64;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A key.
    Key(Key),
    /// The terminal has this size: columns and lines.
    Size(u16, u16),
    /// The daemon answered.
    Report(Box<TopReport>),
    /// It did not; why.
    Failed(String),
    /// What it said of a pod.
    Explained(PodName, Result<Box<PodExplanation>, Failure>),
    /// Time went by: since the start.
    Now(Duration),
}

/// A pod in the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The pod is not there any more.
    Gone,
    /// Anything else.
    Other(String),
}

/// What the model wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// End.
    Quit,
    /// Ask what this pod gets and why.
    Explain(PodName),
}

/// What fills the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// The table.
    #[default]
    Table,
    /// One pod.
    Pod(Box<Pane>),
    /// The keys.
    Help,
}

/// Everything that is shown.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The latest answer.
    pub report: Option<TopReport>,
    /// What was seen before.
    pub history: History,
    /// Which rows, in which order.
    pub choice: Choice,
    /// The namespace for whoever does not want all.
    pub namespace: String,
    /// A filter is being typed.
    pub typing: bool,
    /// What fills the screen.
    pub screen: Screen,
    /// The row with the cursor.
    pub cursor: usize,
    /// New answers are passed over.
    pub held: bool,
    /// Why there was no answer the last time.
    pub failure: Option<String>,
    /// When an answer came last, since the start.
    pub answered: Option<Duration>,
    /// The time since the start.
    pub now: Duration,
    /// Seconds between two looks.
    pub interval: u64,
    /// Columns and lines of the terminal.
    pub size: (u16, u16),
    /// What the cursor is at, so that it stays there when the order changes.
    at: Option<RowKey>,
}

impl Model {
    /// Nothing has been seen yet. Pods of `namespace` are shown, or with `all` those of every one.
    pub fn new(namespace: &str, all: bool, interval: u64) -> Self {
        Self {
            choice: Choice {
                namespace: (!all).then(|| namespace.to_owned()),
                ..Choice::default()
            },
            namespace: namespace.to_owned(),
            interval,
            ..Self::default()
        }
    }

    /// The rows in order.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let report = self.report.as_ref();
        report.map_or_else(Vec::new, |report| rows(report, &self.choice))
    }

    /// Seconds for which an answer is overdue: it should be here after the interval and the second
    /// that rates may take.
    pub fn overdue(&self) -> Option<u64> {
        let since = self.now.saturating_sub(self.answered.unwrap_or_default());
        let late = since.as_secs().saturating_sub(self.interval);
        (late >= 3).then_some(since.as_secs())
    }

    /// Takes in what happened.
    pub fn update(&mut self, event: Event) -> Option<Wish> {
        match event {
            Event::Key(Key::Interrupt) => return Some(Wish::Quit),
            Event::Key(key) if self.typing => self.type_key(key),
            Event::Key(key) => return self.press(key),
            Event::Size(columns, lines) => self.size = (columns, lines),
            Event::Report(report) => return self.take(*report),
            Event::Failed(why) => self.failure = Some(why),
            Event::Explained(name, result) => self.explain(&name, result),
            Event::Now(now) => self.now = now,
        }
        None
    }

    fn take(&mut self, report: TopReport) -> Option<Wish> {
        self.failure = None;
        self.answered = Some(self.now);
        if self.held {
            return None;
        }
        // Who asks too early gets the same look again.
        let is_new = self
            .report
            .as_ref()
            .is_none_or(|before| before.time != report.time);
        if is_new {
            self.history.add(&report);
        }
        self.report = Some(report);
        self.follow();
        let Screen::Pod(pane) = &mut self.screen else {
            return None;
        };
        let pods = self.report.iter().flat_map(|report| &report.pods);
        let found = pods.clone().find(|pod| pod.uid == pane.key.uid);
        pane.gone = found.is_none();
        if let Some(pod) = found {
            pane.pod = pod.clone();
        }
        (!pane.gone).then(|| Wish::Explain(pane.name.clone()))
    }

    /// The cursor goes where its row went; if that is gone it stays where it is.
    fn follow(&mut self) {
        let keys: Vec<_> = self.rows().iter().map(Row::key).collect();
        let place = keys.iter().position(|key| Some(key) == self.at.as_ref());
        self.cursor = match place {
            Some(place) => place,
            None => self.cursor.min(keys.len().saturating_sub(1)),
        };
        // Until somebody moves it, the cursor belongs to the first place, not to a row.
        if self.at.is_some() {
            self.at = keys.get(self.cursor).cloned();
        }
    }

    fn move_to(&mut self, place: usize) {
        let keys: Vec<_> = self.rows().iter().map(Row::key).collect();
        self.cursor = place.min(keys.len().saturating_sub(1));
        self.at = keys.get(self.cursor).cloned();
    }

    fn type_key(&mut self, key: Key) {
        match key {
            Key::Char(c) if self.choice.filter.chars().count() < FILTER => {
                self.choice.filter.push(c);
            }
            Key::Backspace => drop(self.choice.filter.pop()),
            Key::Enter => self.typing = false,
            Key::Esc => {
                self.typing = false;
                self.choice.filter.clear();
            }
            _ => {}
        }
        self.follow();
    }

    fn press(&mut self, key: Key) -> Option<Wish> {
        if key == Key::Char('q') {
            return Some(Wish::Quit);
        }
        match &mut self.screen {
            Screen::Help => self.screen = Screen::Table,
            Screen::Pod(pane) => {
                if !pane.scroll(key, usize::from(self.size.1)) {
                    match key {
                        Key::Char('?') => self.screen = Screen::Help,
                        Key::Esc | Key::Enter | Key::Backspace => self.screen = Screen::Table,
                        _ => {}
                    }
                }
            }
            Screen::Table => return self.press_in_table(key),
        }
        None
    }

    fn press_in_table(&mut self, key: Key) -> Option<Wish> {
        let page = usize::from(self.size.1 / 2).max(1);
        match key {
            Key::Esc if !self.choice.filter.is_empty() => {
                self.choice.filter.clear();
                self.follow();
            }
            Key::Esc => return Some(Wish::Quit),
            Key::Char('?' | 'h') => self.screen = Screen::Help,
            Key::Char('/') => self.typing = true,
            Key::Char(' ') => self.held = !self.held,
            Key::Char('a') => {
                self.choice.namespace = match self.choice.namespace {
                    Some(_) => None,
                    None => Some(self.namespace.clone()),
                };
                self.follow();
            }
            Key::Char('e') => {
                self.choice.shown = match self.choice.shown {
                    Shown::Several => Shown::All,
                    Shown::All => Shown::None,
                    Shown::None => Shown::Several,
                };
                self.follow();
            }
            Key::Char('r') => {
                self.choice.reversed = !self.choice.reversed;
                self.follow();
            }
            Key::Up | Key::Char('k') => self.move_to(self.cursor.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.move_to(self.cursor.saturating_add(1)),
            Key::PageUp => self.move_to(self.cursor.saturating_sub(page)),
            Key::PageDown => self.move_to(self.cursor.saturating_add(page)),
            Key::Home | Key::Char('g') => {
                self.move_to(0);
                self.at = None;
            }
            Key::End | Key::Char('G') => self.move_to(usize::MAX),
            Key::Enter => return self.open(),
            Key::Char(c) => {
                if let Some(sort) = Sort::of_key(c) {
                    self.choice.sort = sort;
                    self.choice.reversed = false;
                    self.follow();
                }
            }
            _ => {}
        }
        None
    }

    fn open(&mut self) -> Option<Wish> {
        let rows = self.rows();
        let row = rows.get(self.cursor)?;
        let pane = Pane::new(row);
        let name = pane.name.clone();
        self.screen = Screen::Pod(Box::new(pane));
        Some(Wish::Explain(name))
    }

    fn explain(&mut self, name: &PodName, result: Result<Box<PodExplanation>, Failure>) {
        if let Screen::Pod(pane) = &mut self.screen
            && pane.name == *name
        {
            pane.explain(result, usize::from(self.size.1));
        }
    }
}

impl Sort {
    /// What a key sorts by.
    pub fn of_key(key: char) -> Option<Self> {
        Some(match key {
            'n' => Self::Name,
            'c' => Self::Cpu,
            'm' => Self::Memory,
            't' => Self::Throttled,
            'p' => Self::Tasks,
            'd' => Self::Disk,
            's' => Self::Pressure,
            'o' => Self::Marks,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests;
