//! What happened to a value on its way from the spec to the file, in words.
//!
//! A note tells of a rounding, a clamp, a floor or a default, with its numbers. It must never be the
//! only place where something is decided: drop all notes and every value stays the same.

use std::fmt;

use crate::cgroup::{ControllerSet, InterfaceFile, Node, Setting};
use crate::units::PageSize;

/// Something worth knowing about a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file it is about; `None`: the whole cgroup.
    pub file: Option<InterfaceFile>,
    /// What happened, in lower case and with numbers.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.file {
            Some(file) => write!(f, "{file}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// A cgroup in the making: its values and what there is to say about them.
#[derive(Debug, Default)]
pub(super) struct Draft {
    node: Node,
    notes: Vec<Note>,
}

impl Draft {
    /// A cgroup whose children get these controllers.
    pub(super) fn above(controllers: ControllerSet) -> Self {
        let mut draft = Self::default();
        draft.node.enabled = controllers;
        draft
    }

    pub(super) fn set(&mut self, setting: Setting) {
        self.node.set(setting);
    }

    pub(super) fn note(&mut self, file: impl Into<Option<InterfaceFile>>, text: impl Into<String>) {
        self.notes.push(Note {
            file: file.into(),
            text: text.into(),
        });
    }

    /// The value of a file so far.
    pub(super) fn get(&self, file: InterfaceFile) -> Option<Setting> {
        self.node.get(file)
    }

    /// Takes back what was said of a file.
    pub(super) fn forget(&mut self, file: InterfaceFile) {
        self.notes.retain(|note| note.file != Some(file));
    }

    /// The cgroup, with a note for every value of which the kernel keeps less.
    pub(super) fn finish(mut self, page: PageSize) -> (Node, Vec<Note>) {
        let rounded: Vec<Note> = self
            .node
            .settings
            .values()
            .filter_map(|setting| rounding(*setting, page))
            .collect();
        self.notes.extend(rounded);
        (self.node, self.notes)
    }
}

fn rounding(setting: Setting, page: PageSize) -> Option<Note> {
    let kept = setting.kept(page);
    if kept == setting {
        return None;
    }
    let (value, kept) = (setting.value(), kept.value());
    let why = match setting {
        _ if kept == "max" => "the kernel counts no further".to_owned(),
        Setting::HugetlbMax(size, _) | Setting::HugetlbRsvdMax(size, _) => {
            format!("whole huge pages of {}", size.bytes())
        }
        _ => format!("whole pages of {}", page.bytes()),
    };
    Some(Note {
        file: Some(setting.file()),
        text: format!("{value} bytes are kept as {kept}: {why}"),
    })
}
