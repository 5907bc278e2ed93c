//! One pod that somebody looks at: its figures and the explanation of its values.

use super::{Failure, PodName};
use crate::cli::explain::text;
use crate::cli::top::keys::Key;
use crate::cli::top::rows::{Row, RowKey};
use crate::report::explain::PodExplanation;
use crate::report::top::PodTop;

/// So far is scrolled sideways at once (columns).
const SIDEWAYS: usize = 8;
/// So many lines around the text are taken: figures and the line of keys.
const ABOVE: usize = 8;

/// One pod with its explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pane {
    /// Which.
    pub name: PodName,
    /// The row it was opened from.
    pub key: RowKey,
    /// As it was last seen.
    pub pod: PodTop,
    /// It is not there any more.
    pub gone: bool,
    /// The explanation, line by line.
    pub lines: Vec<String>,
    /// Files that hold something else than they shall, one in a line.
    pub differences: Vec<String>,
    /// Why there is none, or no newer one.
    pub failure: Option<String>,
    /// Lines and columns that are scrolled away.
    pub scrolled: (usize, usize),
}

impl Pane {
    /// The pane of a row, before anything is known of why.
    pub fn new(row: &Row<'_>) -> Self {
        Self {
            name: PodName {
                namespace: row.pod.namespace.clone(),
                name: row.pod.name.clone(),
            },
            key: row.key(),
            pod: row.pod.clone(),
            gone: false,
            lines: Vec::new(),
            differences: Vec::new(),
            failure: None,
            scrolled: (0, 0),
        }
    }

    /// Takes in what was said of the pod.
    pub fn explain(&mut self, result: Result<Box<PodExplanation>, Failure>, height: usize) {
        match result {
            // A new pod of the same name is another one.
            Ok(explanation) if explanation.uid == self.key.uid => {
                self.failure = None;
                let is_first = self.lines.is_empty();
                let text = format!("{}{}", text::head(&explanation), text::body(&explanation));
                self.lines = text.lines().map(str::to_owned).collect();
                self.differences = differences(&explanation);
                if is_first {
                    self.scrolled.0 = self.begin().min(self.last(height));
                }
            }
            Ok(_) | Err(Failure::Gone) => self.gone = true,
            Err(Failure::Other(why)) => self.failure = Some(why),
        }
    }

    /// Where to begin to read: who asks for a container wants its cgroup.
    fn begin(&self) -> usize {
        let Some(container) = &self.key.container else {
            return 0;
        };
        let head = format!("(container {container}");
        let place = self.lines.iter().position(|line| line.contains(&head));
        place.unwrap_or(0)
    }

    /// How far the text can be scrolled up on a terminal of this height: its end stays at the bottom.
    fn last(&self, height: usize) -> usize {
        let above = self.differences.len().saturating_add(ABOVE);
        let room = height.saturating_sub(above).max(1);
        self.lines.len().saturating_sub(room)
    }

    /// Moves what is seen of the text on a terminal of this height; whether the key did that.
    pub fn scroll(&mut self, key: Key, height: usize) -> bool {
        let page = (height / 2).max(1);
        let last = self.last(height);
        let (down, aside) = &mut self.scrolled;
        match key {
            Key::Up | Key::Char('k') => *down = down.saturating_sub(1),
            Key::Down | Key::Char('j') => *down = down.saturating_add(1).min(last),
            Key::PageUp => *down = down.saturating_sub(page),
            Key::PageDown | Key::Char(' ') => *down = down.saturating_add(page).min(last),
            Key::Home | Key::Char('g') => (*down, *aside) = (0, 0),
            Key::End | Key::Char('G') => *down = last,
            Key::Left => *aside = aside.saturating_sub(SIDEWAYS),
            Key::Right => *aside = aside.saturating_add(SIDEWAYS).min(512),
            _ => return false,
        }
        true
    }
}

/// What the kernel holds in place of what it shall, file by file.
fn differences(pod: &PodExplanation) -> Vec<String> {
    let mut lines = Vec::new();
    for cgroup in &pod.cgroups {
        // A cgroup that is not there holds nothing wrong: init containers that are done have none.
        let Some(kernel) = cgroup.kernel.as_ref().filter(|kernel| !kernel.is_empty()) else {
            continue;
        };
        for (file, wanted) in &cgroup.files {
            let held = kernel.get(file).map_or("nothing", String::as_str);
            if held != wanted {
                let whose = match &cgroup.container {
                    Some(name) => format!("container {name}"),
                    None => cgroup.level.clone(),
                };
                lines.push(format!("{whose} {file}: {held} in place of {wanted}"));
            }
        }
    }
    lines
}
