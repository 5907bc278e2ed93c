//! The tree of one document: what stands where, before anything has a type.
//!
//! Text stays text, exactly as it was written, and every node knows its line; whether `1e3` is a
//! number, a quantity or a name is decided later, where the type is known.

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Where it begins, from 1.
    pub line: usize,
    /// What it is.
    pub content: Content,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A single value.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// A map, in the order of the text, with keys that are given twice still in it.
    Map(Vec<Entry>),
}

/// A single value as it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scalar {
    /// Its text, without quotes and with escapes resolved.
    pub text: String,
    /// Whether it may be something else than text: it is not quoted.
    pub plain: bool,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The key.
    pub key: String,
    /// The key's line, from 1.
    pub line: usize,
    /// The value.
    pub value: Node,
}

/// How much a node holds, itself included.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weight {
    /// Nodes.
    pub nodes: usize,
    /// Bytes of text.
    pub bytes: usize,
    /// Levels.
    pub depth: usize,
}

impl Node {
    /// The entries of a map, none of anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key; the last one, if it is given twice.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().rev().find(|entry| entry.key == key)
    }

    /// The text of a single value.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// How much it holds. The tree is at most [`super::build::MAX_DEPTH`] levels deep.
    pub fn weight(&self) -> Weight {
        let mut weight = Weight {
            nodes: 1,
            ..Weight::default()
        };
        let mut add = |bytes: usize, child: Weight| {
            weight.nodes = weight.nodes.saturating_add(child.nodes);
            weight.bytes = weight
                .bytes
                .saturating_add(bytes)
                .saturating_add(child.bytes);
            weight.depth = weight.depth.max(child.depth);
        };
        match &self.content {
            Content::Scalar(scalar) => add(scalar.text.len(), Weight::default()),
            Content::List(items) => items.iter().for_each(|item| add(0, item.weight())),
            Content::Map(entries) => entries
                .iter()
                .for_each(|entry| add(entry.key.len(), entry.value.weight())),
        }
        weight.depth = weight.depth.saturating_add(1);
        weight
    }

    /// The line of the field with this path, such as `spec.containers[0].resources.limits[cpu]`,
    /// or of the nearest parent that is in the text.
    pub fn line_of(&self, path: &str) -> usize {
        let mut node = self;
        let mut line = self.line;
        let mut rest = path;
        while let Some(step) = node.step(rest) {
            (line, node, rest) = step;
        }
        line
    }

    /// The child that the path begins with: its line, itself, and the path from there on.
    fn step<'n, 'p>(&'n self, path: &'p str) -> Option<(usize, &'n Self, &'p str)> {
        if let Content::List(items) = &self.content {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            let item = items.get(index.parse::<usize>().ok()?)?;
            return Some((item.line, item, rest));
        }
        // A key may hold dots and brackets: the longest one that fits is meant.
        self.entries()
            .iter()
            .filter_map(|entry| Some((entry, after_key(path, &entry.key)?)))
            .min_by_key(|(_, rest)| rest.len())
            .map(|(entry, rest)| (entry.line, &entry.value, rest))
    }
}

/// What follows the key at the beginning of a path, if it stands there: `key`, `.key` or `[key]`.
fn after_key<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    if let Some(rest) = path.strip_prefix('[') {
        return rest.strip_prefix(key)?.strip_prefix(']');
    }
    let rest = path.strip_prefix('.').unwrap_or(path).strip_prefix(key)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}
