//! Builds the tree of one document from the parser's events: aliases become copies, merge keys
//! (`<<`) the entries they stand for.
//!
//! Everything a text can make grow is counted: values, copies made by aliases, and levels.

use std::collections::{HashMap, HashSet};

use serde_saphyr::granit_parser::{Event, ScalarStyle, Tag};

use super::parse::Flaw;
use super::tree::{Content, Entry, Node, Scalar, Weight};

/// Levels of nesting. Kubernetes' own objects have fewer than 30.
pub(super) const MAX_DEPTH: usize = 100;
/// Values in all, copies made by aliases included. A pod of 10,000 containers has about 300,000.
pub(super) const MAX_NODES: usize = 500_000;
/// The first document, empty ones counted, that is not read.
const MAX_DOCUMENTS: usize = 10_001;
/// Bytes of text that aliases may copy.
const MAX_COPIED_BYTES: usize = 8 << 20;

/// What is left of the bounds on one manifest.
pub(super) struct Budget {
    documents: usize,
    nodes: usize,
    copied_bytes: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            documents: MAX_DOCUMENTS,
            nodes: MAX_NODES,
            copied_bytes: MAX_COPIED_BYTES,
        }
    }
}

impl Budget {
    /// Whether a bound was met: nothing further is read.
    pub fn is_spent(&self) -> bool {
        self.documents == 0 || self.nodes == 0
    }

    /// One more document, from this line on.
    pub fn document(&mut self, line: usize) -> Result<(), Flaw> {
        self.documents = self.documents.saturating_sub(1);
        if self.documents == 0 {
            let message = format!("follows {} documents; split the text", MAX_DOCUMENTS - 1);
            return Err(Flaw::new(line, message));
        }
        Ok(())
    }

    fn spend(&mut self, weight: Weight, line: usize) -> Result<(), Flaw> {
        let (Some(nodes), Some(copied_bytes)) = (
            self.nodes.checked_sub(weight.nodes),
            self.copied_bytes.checked_sub(weight.bytes),
        ) else {
            let message = if self.nodes < weight.nodes {
                format!(
                    "holds more than {MAX_NODES} values, copies made by aliases included; split it"
                )
            } else {
                format!(
                    "its aliases copy more than {} MiB of text",
                    MAX_COPIED_BYTES >> 20
                )
            };
            self.nodes = 0;
            return Err(Flaw::new(line, message));
        };
        self.nodes = nodes;
        self.copied_bytes = copied_bytes;
        Ok(())
    }
}

/// One document in the making.
#[derive(Default)]
pub(super) struct Builder {
    lines_before: usize,
    open: Vec<Frame>,
    anchors: HashMap<usize, (Node, Weight)>,
    /// The finished tree.
    pub root: Option<Node>,
}

/// A list or map that is not yet closed.
struct Frame {
    line: usize,
    anchor: usize,
    kind: FrameKind,
}

enum FrameKind {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        merged: Vec<Node>,
        key: Option<Key>,
    },
}

struct Key {
    text: String,
    line: usize,
    is_merge: bool,
}

impl Builder {
    /// A builder for a part of a text that begins after so many lines.
    pub fn new(lines_before: usize) -> Self {
        Self {
            lines_before,
            ..Self::default()
        }
    }

    /// Takes one event, on this line of the part.
    pub fn take(&mut self, event: Event, line: usize, budget: &mut Budget) -> Result<(), Flaw> {
        let one = Weight {
            nodes: 1,
            ..Weight::default()
        };
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                budget.spend(one, line)?;
                let content = Content::Scalar(Scalar {
                    text: text.into_owned(),
                    plain: is_plain(style, tag.as_deref(), line)?,
                });
                self.put(content, line, anchor, budget)
            }
            Event::SequenceStart(_, anchor, tag) => {
                budget.spend(one, line)?;
                self.open(FrameKind::List(Vec::new()), line, anchor, tag.as_deref())
            }
            Event::MappingStart(_, anchor, tag) => {
                budget.spend(one, line)?;
                let kind = FrameKind::Map {
                    entries: Vec::new(),
                    merged: Vec::new(),
                    key: None,
                };
                self.open(kind, line, anchor, tag.as_deref())
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(frame) = self.open.pop() else {
                    return Ok(());
                };
                let content = match frame.kind {
                    FrameKind::List(items) => Content::List(items),
                    FrameKind::Map {
                        entries, merged, ..
                    } => Content::Map(merge(entries, merged, frame.line)?),
                };
                self.put(content, frame.line, frame.anchor, budget)
            }
            Event::Alias(anchor) => {
                let Some((node, weight)) = self.anchors.get(&anchor) else {
                    return Err(Flaw::new(line, "an alias stands inside what it repeats"));
                };
                budget.spend(*weight, line)?;
                check_depth(self.open.len().saturating_add(weight.depth), line)?;
                let content = node.content.clone();
                self.put(content, line, 0, budget)
            }
            _ => Ok(()),
        }
    }

    fn open(
        &mut self,
        kind: FrameKind,
        line: usize,
        anchor: usize,
        tag: Option<&Tag>,
    ) -> Result<(), Flaw> {
        check_depth(self.open.len().saturating_add(1), line)?;
        if let Some(tag) = tag
            && !matches!(tag.core_suffix(), Some("map" | "seq"))
        {
            return Err(unknown_tag(tag, line));
        }
        if let Some(Frame {
            kind: FrameKind::Map { key: None, .. },
            ..
        }) = self.open.last()
        {
            return Err(Flaw::new(line, "a key is a list or a map; keys are text"));
        }
        self.open.push(Frame { line, anchor, kind });
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn put(
        &mut self,
        content: Content,
        line: usize,
        anchor: usize,
        budget: &mut Budget,
    ) -> Result<(), Flaw> {
        let node = Node {
            line: line.saturating_add(self.lines_before),
            content,
        };
        if anchor != 0 {
            let weight = node.weight();
            budget.spend(weight, line)?;
            self.anchors.insert(anchor, (node.clone(), weight));
        }
        match self.open.last_mut().map(|frame| &mut frame.kind) {
            None => self.root = Some(node),
            Some(FrameKind::List(items)) => items.push(node),
            Some(FrameKind::Map {
                entries,
                merged,
                key,
            }) => match (key.take(), node.content) {
                (None, Content::Scalar(scalar)) => {
                    *key = Some(Key {
                        is_merge: scalar.plain && scalar.text == "<<",
                        text: scalar.text,
                        line: node.line,
                    });
                }
                (None, _) => {
                    return Err(Flaw::new(line, "a key is a list or a map; keys are text"));
                }
                (Some(key), content) => {
                    let value = Node {
                        line: node.line,
                        content,
                    };
                    if key.is_merge {
                        merged.push(value);
                    } else {
                        entries.push(Entry {
                            key: key.text,
                            line: key.line,
                            value,
                        });
                    }
                }
            },
        }
        Ok(())
    }
}

fn check_depth(levels: usize, line: usize) -> Result<(), Flaw> {
    if levels > MAX_DEPTH {
        return Err(too_deep(line));
    }
    Ok(())
}

/// What to say of a text with too many levels.
pub(super) fn too_deep(line: usize) -> Flaw {
    Flaw::new(line, format!("is nested more than {MAX_DEPTH} levels deep"))
}

/// Whether a value may be other than text. `!!str` quotes it, the other core tags unquote it.
fn is_plain(style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Result<bool, Flaw> {
    match tag.map(|tag| (tag, tag.core_suffix())) {
        None => Ok(style == ScalarStyle::Plain),
        Some((_, Some("str"))) => Ok(false),
        Some((_, Some("int" | "float" | "bool" | "null"))) => Ok(true),
        Some((tag, _)) => Err(unknown_tag(tag, line)),
    }
}

fn unknown_tag(tag: &Tag, line: usize) -> Flaw {
    Flaw::new(line, format!("tag {} has no meaning here", tag.original()))
}

/// The entries of a map with a merge key: its own, then those of the merged maps that it lacks, the
/// first map before the next.
fn merge(mut entries: Vec<Entry>, merged: Vec<Node>, line: usize) -> Result<Vec<Entry>, Flaw> {
    if merged.is_empty() {
        return Ok(entries);
    }
    let mut known: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    let maps = merged.into_iter().flat_map(|node| match node.content {
        Content::List(items) => items,
        content => vec![Node {
            line: node.line,
            content,
        }],
    });
    for map in maps {
        let Content::Map(more) = map.content else {
            return Err(Flaw::new(line, "<< takes a map or a list of maps"));
        };
        entries.extend(
            more.into_iter()
                .filter(|entry| known.insert(entry.key.clone())),
        );
    }
    Ok(entries)
}
